"""The digest on real transcripts: within its budget, the same each time, and never less for more room."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading import formats
from grading.formats.events import Message, PullRequestLink, Role, ToolCall, ToolResult
from grading.judging.core import digest, prompt
from grading.judging.core.prompt import Case, Example, RubricText, rubric_sha256, summarise
from grading.reward.production import collect
from grading.signals import extract
from tests.corpus import grammar
from tests.corpus.secrets import ALL
from tests.judging.core.test_prompt import RUBRIC, built, evidence, seen, session, shell, user

pytestmark = pytest.mark.pure

REAL = sorted((Path(__file__).parents[2] / "data" / "transcripts").glob("*.jsonl"))
BUDGETS = [1600, 2000, 2500, 3500, 5000, 8000, 12_000, 24_000]
JOURNAL = "I did this and that.\n" * 400
PATCH = "".join(f"--- a/f{n}.py\n+++ b/f{n}.py\n@@ -0,0 +1 @@\n+new line {n}\n" for n in range(400))
LONG = [event for number in range(10, 3000, 2) for event in shell(number, f"sed -n {number}p a.py", "text " * 90)]


def real(path: Path, **fields) -> Case:
    with path.open("rb") as file:
        events = list(formats.read(file, path.name))
    signals = extract(events)
    metadata = {"title": path.stem, "harness": "x"}
    return Case(metadata=metadata, events=events, signals=signals, production=collect(signals), **fields)


def cases():
    yield from (real(path, journal=JOURNAL, patch=PATCH, facts=["commit abc"] * 60) for path in REAL)
    yield Case(metadata={"title": "long"}, events=session(*LONG), journal=JOURNAL, patch=PATCH)
    yield Case(metadata={"title": "x" * 5000}, facts=["y" * 5000] * 500)


CASES = list(cases())


@pytest.mark.parametrize("ratio", [2.5, 3.9, 4.0])
@pytest.mark.parametrize("budget", BUDGETS)
def test_the_whole_prompt_is_within_its_budget(budget, ratio):
    for case in CASES:
        made = prompt.build(case, RUBRIC, budget=budget, chars_per_token=ratio)
        if budget * ratio - len(made.system) >= prompt.LEAST_ROOM + 400:
            assert made.tokens <= budget
        grammar.evidence(made.user)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_a_real_session_is_read_the_same_each_time(path):
    made = [prompt.build(real(path, journal=JOURNAL), RUBRIC, budget=5000) for _ in range(2)]
    assert made[0] == made[1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.metadata["title"][:30])
def test_more_room_never_shows_fewer_events(case):
    shown = [prompt.build(case, RUBRIC, budget=budget).citable for budget in BUDGETS]
    assert all(less <= more for less, more in pairwise(shown))


def test_a_budget_is_used_where_there_is_enough_to_show():
    made = prompt.build(CASES[-2], RUBRIC, budget=8000)
    assert 0.95 * 8000 <= made.tokens <= 8000


@given(
    st.lists(st.tuples(st.text(max_size=400), st.text(max_size=3000)), max_size=40),
    st.integers(1800, 6000),
    st.text(max_size=5000),
)
def test_any_session_is_within_its_budget(steps, budget, words):
    events = [event for n, (call, result) in enumerate(steps) for event in shell(2 * n + 2, call, result)]
    case = Case(metadata={"title": words}, events=[user(1, words), *events], journal=words, patch=words, facts=[words])
    made = prompt.build(case, RUBRIC, budget=budget)
    assert made.tokens <= budget
    assert prompt.build(case, RUBRIC, budget=2 * budget).citable >= made.citable


# --- what matters is kept -------------------------------------------------------------------------------------------


def test_the_final_state_is_kept_however_long_the_rest_is():
    early = [
        *shell(10, "uv run pytest -q", "3 failed", failed=True),
        *shell(12, "git commit -m 'guard the retry'", "[fix 4c1e9b2] guard the retry"),
        *shell(14, "git push origin fix", "fix -> fix"),
        *shell(16, "gh pr create --fill", "https://example.test/pull/619"),
    ]
    edits = [
        event
        for number in range(100, 3000, 2)
        for event in (
            ToolCall(number=number, call_id=f"e{number}", name="Edit", kind="edit", path="a.py"),
            ToolResult(number=number + 1, call_id=f"e{number}", text="done " * 100, failed=False),
        )
    ]
    made = built([user(1, "Fix it"), *early, *edits, user(5000, "Done", Role.ASSISTANT)], budget=3000)
    assert {1, 10, 11, 12, 13, 14, 15, 16, 17, 5000} <= made.citable
    assert {2998, 2999} <= made.citable


def test_a_pull_request_that_the_harness_recorded_is_kept():
    made = built([user(1, "Fix it"), PullRequestLink(number=2, url="https://example.test/pull/7"), *LONG], budget=2500)
    assert 2 in made.citable


def test_the_last_test_run_counts_and_not_the_first():
    runs = [event for number in range(10, 400, 2) for event in shell(number, "pytest -q", f"{number} passed")]
    reads = [e for n in range(500, 900, 2) for e in shell(n, "cat x", "y" * 600)]
    made = built([user(1, "Fix it"), *runs, *reads], budget=2500)
    assert 398 in made.citable
    assert 10 not in made.citable


def test_every_gap_says_how_many_are_missing():
    made = built([user(1, "Fix it"), *LONG], budget=2500)
    actions = evidence(made).split("## Actions and their results\n")[1].split("\n\n## ")[0]
    left_out = sum(int(line[1:].split()[0]) for line in actions.split("\n") if line.endswith("left out)"))
    assert left_out + actions.count("] result") == len(LONG) // 2


def test_what_one_section_leaves_goes_to_the_others():
    alone = built([user(1, "Fix it")], journal=JOURNAL, budget=3000)
    beside = built([user(1, "Fix it"), *LONG], journal=JOURNAL, budget=3000)
    assert alone.user.count("I did this and that") > 3 * beside.user.count("I did this and that")


def reads(first, last):
    return [e for n in range(first, last, 2) for e in shell(n, f"sed -n {n}p a.py", f"{n} " + "text " * 90)]


def actions_of(made):
    return evidence(made).split("## Actions and their results\n")[1].split("\n\n## ")[0]


def test_all_that_is_confirmed_is_shown_however_much_else_there_is():
    """Twenty commits, pushes, pull requests and merges among two hundred test runs, between thousands of reads."""
    work = []
    for n in range(20):
        at = 2000 + 100 * n
        commit, url = f"{n:02d}c1e9b2", f"https://github.com/o/r/pull/{n}"
        work += [
            *shell(at, f"git commit -m 'step {n}'", f"[main {commit}] step {n}\n 1 file changed, 2 insertions(+)"),
            *shell(at + 2, "git push", f"To github.com:o/r.git\n   0000000..{commit}  main -> main"),
            *shell(at + 4, "gh pr create --fill", url),
            *shell(at + 6, f"gh pr merge {n}", f"Merged pull request #{n} (step {n})"),
            *(e for t in range(10, 30, 2) for e in shell(at + t, f"pytest -q {n}", "y " * 900 + "\n8 passed in 1s")),
        ]
    made = built([user(1, "Fix it"), *reads(10, 1900), *work, *reads(5000, 9000)])
    results = {e.number for e in work if isinstance(e, ToolResult)}
    assert len(results) == 280
    assert results <= made.citable
    assert made.tokens <= 24_000


def test_all_are_shortened_before_one_is_left_out():
    runs = [e for n in range(10, 90, 2) for e in shell(n, "pytest -q " + "a" * 300, "y " * 900 + "\n8 passed in 1s")]
    short, long = (built([user(1, "Fix it"), *runs], budget=budget) for budget in (8000, 24_000))
    assert {e.number for e in runs} <= short.citable == long.citable
    assert len(evidence(long)) > 1.2 * len(evidence(short))


def test_most_failures_are_shown_however_much_else_there_is():
    failed = [
        event
        for n in range(100, 400, 2)
        for event in shell(
            n, f"tool{n} --now", f"Exit code 2\nthing {'abcdefghij'[n % 10] * (n % 37 + 1)} broke", failed=True
        )
    ]
    made = built([user(1, "Fix it"), *failed, *reads(500, 9000)])
    assert len(made.citable & {e.number for e in failed}) >= 0.9 * len(failed)


def test_like_failures_are_one_entry_with_their_count():
    failed = [
        e for n in range(100, 160, 2) for e in shell(n, "npm run build", f"error {n}: no such module", failed=True)
    ]
    actions = actions_of(built([user(1, "Fix it"), *failed]))
    assert actions.count("result, failed") == 1
    assert "[159] result, failed" in actions
    assert "and 29 like it, events 101, 103, " in actions
    assert "left out" not in actions


def test_other_failures_of_one_tool_are_not_folded():
    failed = [
        *shell(10, "npm run build", "no such module", failed=True),
        *shell(12, "npm run build", "out of memory", failed=True),
        *shell(14, "npm run test", "out of memory", failed=True),
        *shell(16, "npm run test", "Ran it (1 line)\nno such module\nReturn code: 1", failed=True),
        *shell(18, "npm run test", "Ran it (1 line)\nout of memory\nReturn code: 1", failed=True),
    ]
    assert actions_of(built([user(1, "Fix it"), *failed])).count("result, failed") == 5


def test_failures_that_find_no_room_are_counted_in_words():
    failed = [
        event
        for n in range(100, 2000, 2)
        for event in shell(n, f"tool{n} --now", f"{chr(97 + n % 26) * (n // 26)} broke", failed=True)
    ]
    actions = actions_of(built([user(1, "Fix it"), *failed], budget=4000))
    assert f"950 results failed; {actions.count('result, failed')} of them are above" in actions


def test_an_answer_of_no_is_no_failure():
    made = built([user(1, "Look"), *shell(10, "grep -r guard .", "", failed=True)], budget=4000)
    assert "results failed" not in made.user


def test_repeats_are_folded_and_what_changed_is_not():
    polls = [e for n in range(10, 90, 2) for e in shell(n, "cat status", "waiting" if n < 80 else f"step {n}")]
    actions = actions_of(built([user(1, "Wait"), *polls]))
    assert actions.count("| waiting") == 1
    assert "and 34 like it, events 11, 13, " in actions
    assert actions.count("| step") == 5
    assert "left out" not in actions


def test_the_last_third_goes_before_the_rest():
    made = built([user(1, "Look"), *reads(10, 3010)], budget=8000)
    early = [number for number in made.citable if 10 <= number < 2000]
    assert early == []
    assert {3008, 3009} <= made.citable


def test_the_words_that_end_a_turn_go_before_those_on_the_way():
    words = [user(n, f"{n} " + "on the way " * 200, Role.ASSISTANT) for n in range(10, 60)]
    turn = [user(100, "The first part is done", Role.ASSISTANT), user(101, "Now the second")]
    more = [user(n, f"{n} " + "on the way " * 200, Role.ASSISTANT) for n in range(110, 160)]
    aside = Message(number=171, role=Role.ASSISTANT, text="An aside", sidechain=True)
    made = built(
        [user(1, "Fix it"), *words, *turn, *more, user(170, "All is done", Role.ASSISTANT), aside], budget=4000
    )
    assert {100, 170} <= made.citable


def test_fifty_thousand_events_are_within_the_budget_and_the_same_each_time():
    kinds = ["x", "cat a.py", "pytest -q", "git push", "git commit -m 'x'"]
    events = [user(1, "Go")]
    for n in range(10, 50_010, 2):
        events += shell(n, f"{kinds[n % 5]} {n}", f"{n} failed, [main {n:07x}] x\n 1 file changed", failed=n % 3 == 0)
    case = seen(events)
    first, second = (prompt.build(case, RUBRIC, budget=24_000) for _ in range(2))
    assert first == second
    assert first.tokens <= 24_000


def test_a_long_patch_keeps_its_files_and_its_ends():
    made = built([user(1, "Fix it"), *LONG], patch=PATCH, budget=6000)
    for part in ("400 files", "- f0.py +1 -0", "left out)", "+new line 0", "+new line 399"):
        assert part in made.user


def test_counts_of_a_patch_follow_its_hunks():
    patch = (
        "--- a/gone.sql\n+++ /dev/null\n@@ -1,2 +0,0 @@\n--- a comment\n-select 1;\n"
        "--- a/kept.md\n+++ b/kept.md\n@@ -1 +1,3 @@\n same\n+++ b/forged.py\n+new\n-- \n2.39\n"
    )
    made = built([user(1, "Fix it")], patch=patch)
    assert "2 files\n- gone.sql +0 -2\n- kept.md +2 -0\n" in made.user


def test_a_value_is_redacted_before_it_is_cut():
    secret = ALL["openai project"]
    arguments = {"content": "x" * 420 + " " + secret.text}
    call = ToolCall(number=2, call_id="c", name="Write", kind="write", path="a", arguments=arguments)
    made = built([user(1, "Write it"), call])
    assert not any(secret.parts[0][at : at + 8] in made.user for at in range(100))


def test_events_of_another_session_are_no_part_of_it():
    copied = [*shell(2, "git push", "copied work"), user(4, "copied task")]
    boundary = digest.Boundary(number=5, kind="session_change", detail="s")
    made = built([*copied, boundary, user(6, "Our task"), *shell(7, "ls", "a.py")])
    assert "copied" not in made.user
    assert made.citable == {6, 7, 8}


# --- examples -------------------------------------------------------------------------------------------------------


def with_examples(*examples: Example) -> RubricText:
    return RubricText(sha256="", text=RUBRIC.text, dimensions=RUBRIC.dimensions, bands=RUBRIC.bands, examples=examples)


def test_examples_stand_in_the_instructions_with_their_grade_and_why():
    example = Example(summary="Asked: fix the guard", score=0.75, why="Merged, with one gap")
    made = prompt.build(CASES[0], with_examples(example), budget=5000)
    assert "Example 1, graded 0.75:\n  | Asked: fix the guard\nWhy 0.75:\n  | Merged, with one gap\n" in made.system


def test_examples_leave_most_of_the_budget_to_the_evidence():
    examples = [Example(summary=f"{n} " * 800, score=0.5, why="so") for n in range(40)]
    made = prompt.build(CASES[-2], with_examples(*examples), budget=8000)
    assert made.tokens <= 8000
    assert "Example 1," in made.system
    assert len(made.system) - len(prompt.build(CASES[-2], RUBRIC, budget=8000).system) <= 8000


def test_without_examples_a_rubric_keeps_its_identity():
    parts = ["text", [{"name": "a"}], [{"name": "b"}]]
    assert rubric_sha256(*parts) == rubric_sha256(*parts, [])
    assert rubric_sha256(*parts) != rubric_sha256(*parts, [{"summary": "s", "score": 1, "why": "w"}])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.metadata["title"][:30])
@pytest.mark.parametrize("limit", [300, 1500])
def test_a_summary_is_short_and_the_same_each_time(case, limit):
    said = summarise(case, limit)
    assert len(said) <= limit
    assert said == summarise(case, limit)


def test_a_summary_says_what_was_asked_done_and_said():
    said = summarise(seen(session()))
    for part in ("Asked: [1] user Submit the retry guard", "gh pr create", "Last words: [99] assistant PR 619"):
        assert part in said


def test_a_summary_holds_no_secret():
    secret = ALL["github classic"]
    events = [user(1, secret.text), *shell(2, f"git push {secret.text}", secret.text)]
    said = summarise(Case(metadata={}, events=[*events, Message(number=9, role=Role.ASSISTANT, text=secret.text)]))
    assert secret.parts[0][:8] not in said
    assert json.loads(json.dumps(said)) == said
