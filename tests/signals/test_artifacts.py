"""The founding table of artifacts: what is one, what only looks like one."""

from dataclasses import replace

import pytest

from grading.signals import patch
from grading.signals.artifacts import DEFAULT_RULES, MAX_OF_A_KIND, ArtifactDefinition, InvalidRule, find_artifacts
from tests.transcript import Transcript

pytestmark = pytest.mark.pure

HEADER = "+| # | Idea | Score |\n+|---|:--|---|\n"


def diff(path: str, body: str, *, new: bool = False) -> str:
    removed, kept, added = (sum(line.startswith(mark) for line in body.splitlines()) for mark in ("-", " ", "+"))
    source = "/dev/null" if new else f"a/{path}"
    mode = "new file mode 100644\n" if new else ""
    old = f"{0 if new else 1},{removed + kept}"
    return f"diff --git a/{path} b/{path}\n{mode}--- {source}\n+++ b/{path}\n@@ -{old} +1,{added + kept} @@\n{body}"


# Rules for which any text will do.
ANY_TEXT = [replace(rule, least_characters=0) for rule in DEFAULT_RULES]
NOTE = (
    "Thompson sampling draws one sample from the posterior of every arm and plays the arm whose sample is largest.\n"
    "An arm that is rarely played keeps a wide posterior, and so its turn comes now and then by itself.\n"
    "Decay is applied when the posterior is read, so that an idle arm is not eroded by what the others do.\n"
)


def kinds(text: str) -> list[str]:
    return [artifact.kind for artifact in find_artifacts(ANY_TEXT, patch=patch.parse(text)) if not artifact.left_out]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("+| 1 | Idea: voice notes | 8 |\n", 1),
        ("+| 1 | Idea: voice notes | 8 |\n+| 2 | idea: offline maps | 5 |\n+| 3 | IDEAS for tea | 1 |\n", 3),
        (HEADER + "+| 1 | Idea: voice notes | 8 |\n", 1),
        (HEADER, 0),
        ("-| 1 | Idea: voice notes | 8 |\n+| 1 | Idea: voice notes | 9 |\n", 0),
        ("-| 1 | Idea: voice notes | 8 |\n+| 1 | Idea: voice notes | 9 |\n+| 2 | Idea: offline maps | 5 |\n", 1),
        ("-| 1 | Idea: voice notes | 8 |\n+| 2 | Idea: sell lemonade at fairs | 3 |\n", 1),
        ("+| 2 | Idea: b | 1 |\n+| 2 | Idea: b | 1 |\n", 1),
        ("+Some idea in prose\n", 0),
        ("+| 1 | An ideal row | 8 |\n", 0),
        ("-| 1 | Idea: voice notes | 8 |\n", 0),
        (" | 1 | Idea: voice notes | 8 |\n+\n", 0),
    ],
)
def test_an_idea_is_an_added_row_that_names_one(body, count):
    assert kinds(diff("notes/idea-backlog.md", body)) == ["idea"] * count


def test_edits_of_a_file_belong_to_the_rule_that_its_creation_matched():
    created = ArtifactDefinition(kind="task", path_glob="tasks/**", new_files_only=True, weight=0.2)
    edited = ArtifactDefinition(kind="idea", path_glob="tasks/*.md", line_pattern="(?i)idea", weight=0.4)
    transcript = Transcript().write("tasks/a.md", NOTE).edit("tasks/a.md", "An arm", "An idea")
    assert [artifact.kind for artifact in find_artifacts([created, edited], signals=transcript.signals)] == ["task"]


def test_a_row_outside_the_backlog_is_no_idea():
    assert kinds(diff("notes/other.md", "+| 1 | Idea: voice notes | 8 |\n")) == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("tasks/a.md", "task"),
        ("tasks/deep/a.md", "task"),
        ("src/app/tasks/a.py", None),
        ("tweets/2026/a.md", "engagement"),
        ("content/posts/a.md", "engagement"),
        ("drafts/a.txt", "engagement"),
        ("app/posts/page.tsx", None),
        ("knowledge/a.md", "knowledge"),
        ("knowledge/drafts/a.md", "engagement"),
        ("README.md", None),
    ],
)
def test_a_new_file_counts_by_where_it_is_and_once(path, kind):
    assert kinds(diff(path, "+hello\n", new=True)) == ([kind] if kind else [])
    assert kinds(diff(path, "-hi\n+hello\n")) == []


def test_without_a_patch_confirmed_writes_are_the_source():
    transcript = Transcript().write("/repo/tasks/a.md", "x").write("tasks/b.md", "x", "denied", failed=True)
    transcript.edit("/repo/idea-backlog.md", "| 1 | Idea: a |", "| 1 | Idea: a |\n| 2 | Idea: offline maps |")
    transcript.run("gh issue comment 5 -b x", "https://github.com/o/r/issues/5#issuecomment-77")
    found = find_artifacts(ANY_TEXT, signals=transcript.signals)
    assert [(artifact.kind, artifact.key) for artifact in found if not artifact.left_out] == [
        ("task", "/repo/tasks/a.md"),
        ("idea", "| 2 | Idea: offline maps |"),
        ("engagement", "https://github.com/o/r/issues/5#issuecomment-77"),
    ]
    assert found[0].where == "/repo/tasks/a.md, event 1"


def test_the_patch_is_believed_before_the_transcript():
    signals = Transcript().write("tasks/a.md", "x").signals
    assert find_artifacts(DEFAULT_RULES, patch=patch.parse(""), signals=signals) == ()


def test_the_root_says_where_a_relative_glob_begins():
    signals = Transcript().write("/repo/src/tasks/a.md", "x").signals
    assert find_artifacts(DEFAULT_RULES, signals=signals, root="/repo") == ()
    assert len(find_artifacts(DEFAULT_RULES, signals=signals, root="/elsewhere")) == 1


def test_an_overwritten_backlog_is_no_harvest():
    rows = "\n".join(f"| {n} | Idea {n} |" for n in range(10))
    assert find_artifacts(DEFAULT_RULES, signals=Transcript().write("idea-backlog.md", rows, "Saved").signals) == ()


def test_a_file_whose_text_no_call_shows_does_not_count():
    (found,) = find_artifacts(DEFAULT_RULES, signals=Transcript().run("cp a.md tasks/a.md; date > tasks/b.md").signals)
    assert found.left_out == "no call shows its text, 60 characters needed"


@pytest.mark.parametrize("said", ["File created successfully", "Saved to knowledge/a.md"])
def test_a_write_whose_text_is_shown_counts_by_it(said):
    signals = Transcript().write("knowledge/a.md", NOTE, said).write("knowledge/b.md", "x", said).signals
    assert [artifact.left_out for artifact in find_artifacts(DEFAULT_RULES, signals=signals)] == [
        "",
        "1 character of text, 120 needed; 119 missing",
    ]


def test_what_later_edits_add_to_a_new_file_is_its_text_too():
    first, rest = NOTE.split("\n", 1)
    begun = Transcript().write("knowledge/a.md", first)
    assert (
        find_artifacts(DEFAULT_RULES, signals=begun.signals)[0].left_out
        == "108 characters of text, 120 needed; 12 missing"
    )
    assert find_artifacts(DEFAULT_RULES, signals=begun.edit("knowledge/a.md", "", rest).signals)[0].left_out == ""
    taken_back = begun.edit("knowledge/a.md", rest, "")
    assert find_artifacts(DEFAULT_RULES, signals=taken_back.signals)[0].left_out != ""


def test_a_comment_is_not_held_to_the_length_of_a_file():
    transcript = Transcript().run("gh issue comment 5 -b x", "https://github.com/o/r/issues/5#issuecomment-77")
    assert [artifact.left_out for artifact in find_artifacts(DEFAULT_RULES, signals=transcript.signals)] == [""]


def test_the_text_of_a_bounded_number_of_files_is_looked_at():
    text = "".join(diff(f"tasks/{number:03}.md", f"+word{number}\n", new=True) for number in range(MAX_OF_A_KIND + 5))
    found = find_artifacts(ANY_TEXT, patch=patch.parse(text))
    assert [artifact.left_out for artifact in found[MAX_OF_A_KIND:]] == [
        "only the first 50 of a kind are looked at"
    ] * 5


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"weight": 1.5}, "weight"),
        ({"weight": float("nan")}, "weight"),
        ({"scale": 0}, "scale"),
        ({"least_characters": -1}, "least characters"),
        ({"path_glob": "a", "line_pattern": "("}, "does not compile"),
        ({"path_glob": "a", "line_pattern": "a(?=b)"}, "Lookaheads"),
        ({"path_glob": "a", "line_pattern": r"(a)\1"}, "backreferences"),
        ({"path_glob": "a", "line_pattern": "\ud800"}, "no text"),
        ({"path_glob": "{a,b"}, "braces"),
        ({"line_pattern": "x"}, "no path glob"),
        ({"path_glob": "a", "line_pattern": "x" * 301}, "shorten"),
    ],
)
def test_a_rule_that_cannot_work_says_why(fields, says):
    with pytest.raises(InvalidRule, match=says):
        ArtifactDefinition(**{"kind": "x", "weight": 0.1, **fields})
