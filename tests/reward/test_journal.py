"""What a journal claims, and what only sounds like a claim (seed 001, I03)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.reward.journal import CAP, grade, hits
from grading.vocabulary import Reason

pytestmark = pytest.mark.pure

SUBMITTED = "Submitted PR gptme-contrib#619 with the fallback."


def counted(text: str) -> list[str]:
    return [hit.kind for hit in hits(text) if hit.counted]


def test_a_submitted_pull_request_is_worth_what_the_founding_document_says():
    assert grade(SUBMITTED).value == pytest.approx(0.32, abs=0.005)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Opened PR #12 against main.", ["submitted"]),
        ("Opened [PR #12](https://github.com/o/r/pull/12).", ["submitted"]),
        ("PR #12 created; CI green.", ["submitted"]),
        ("- **Fixed**: the race in the log path", ["fixed"]),
        ("Merged #3 and pushed.", ["merged", "pushed"]),
        ("All 14 tests pass, task completed.", ["completed"]),
        ("Fixed the failing tests.", ["fixed"]),
        ("Implemented it but could not deploy.", ["completed", "blocked"]),
        ("- [x] completed the docs", ["completed"]),
        ("Nothing to do today.", ["noop"]),
        ("Blocked on credentials.", ["blocked"]),
        ("## Summary\nBlocked on credentials.", ["blocked"]),
    ],
)
def test_an_outcome_is_recognised(text, kinds):
    assert counted(text) == kinds


@pytest.mark.parametrize(
    "text",
    [
        "I did not merge it.",
        "The PR was not merged.",
        "The PR was not yet merged.",
        "The PR isn't merged.",
        "I didn’t get it merged.",
        "Nothing was fixed.",
        "The work was never completed.",
        "No PR submitted.",
        "Work on it ended without anything submitted.",
        "Merged: no",
        "Completed: 0",
        "Fixed?",
        "It will be merged tomorrow.",
        "It should be fixed.",
        "Once merged, deploy.",
        "PR 5 was already merged.",
        "Waiting for it to be merged.",
        "The merged branch is stale.",
        "- [ ] submitted PR",
        "> Submitted PR #5",
        'He wrote: "I merged it and fixed it".',
        "See `fixed` and `merged`.",
        "See [how we fixed and merged it](https://example.org/fixed).",
        "## Merged, fixed and completed",
        "```\nSubmitted PR #5\n```",
        "~~~\nSubmitted PR #5\n~~~",
        "## Next steps\nFixed things get released.",
        "---\noutcome: completed\ndeliverables:\n- merged PR #5\n---\nHello.",
        "Merged main into the branch",
        "I fix and merge things.",
        "It was unblocked.",
        "We are not blocked.",
        "## Context\nThe deploy was blocked.",
        "| Fixed | yes |",
    ],
)
def test_what_only_sounds_like_an_outcome_is_none(text):
    assert counted(text) == []


def test_failure_words_count_only_where_the_session_assesses_itself():
    assert counted("# Today\nThe article says the deploy was blocked.\n## Outcome\nSubmitted PR #5") == ["submitted"]


def test_could_not_fix_is_bad_news_not_good():
    result = grade("Couldn't fix the build.")
    assert counted("Couldn't fix the build.") == ["blocked"]
    assert result.value < 0.08


def test_no_journal_and_no_outcome_are_two_reasons():
    assert grade(None).reason is grade(" \n").reason is Reason.NO_JOURNAL
    assert grade("It rained.").reason is Reason.NO_SIGNAL


def test_a_denied_outcome_is_listed_with_its_line():
    (hit,) = grade("Hello.\n\nI did not merge; it was not merged.").evidence["hits"]
    assert (hit["line"], hit["counted"], hit["why"]) == (3, False, "negated")


def test_boasting_does_not_pass_the_cap():
    result = grade("Merged it. Fixed it. Submitted it. Pushed it. Completed it.\n" * 50)
    assert 0.5 < result.value <= CAP


def test_saying_it_ten_times_is_saying_it_three_times():
    assert grade("Fixed a.\n" * 10).value == grade("Fixed a.\n" * 3).value


WORDS = st.sampled_from(
    [
        "merged",
        "fixed",
        "submitted PR",
        "completed",
        "blocked",
        "failed to",
        "unable to",
        "timeout",
        "oops",
        "not",
        "no-op",
    ]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
QUOTED = st.one_of(
    SENTENCES.map(lambda words: f"```\n{words}\n```"),
    SENTENCES.map(lambda words: f"> {words}\n> {words}"),
    SENTENCES.map(lambda words: f'The article says "{words}".'),
    SENTENCES.map(lambda words: f"It says “{words}”."),
    SENTENCES.map(lambda words: f"See [{words}](https://example.org/x)."),
    SENTENCES.map(lambda words: f"The name is `{words}`."),
    SENTENCES.map(lambda words: f"### {words}\n\n## Outcome"),
)


@given(st.lists(QUOTED, min_size=1, max_size=5), st.integers(0, 3))
def test_somebody_elses_words_change_nothing(quoted, where):
    """I03, words of failure counted wherever they stand: impossible. A journal that writes about failures is graded as
    if it did not; they count only where it assesses itself.
    """
    own = ["## Outcome", SUBMITTED, "Fixed the log path.", "Blocked on the key."]
    mixed = [*own[: where + 1], "", *quoted, "", *own[where + 1 :]]
    assert grade("\n".join(mixed)).value == grade("\n".join(own)).value


@given(st.text(max_size=300))
def test_no_text_breaks_the_grader(text):
    value = grade(text).value
    assert value is None or 0 <= value <= CAP


@pytest.mark.parametrize(
    "unit", ["did not ", "merged ", "`", "[", "<", '"a', "a, ", "PR opened ", "x\n", "'", "---\n", "# ", "“"]
)
def test_hostile_text_costs_little(unit):
    start = time.process_time()
    grade(unit * (400_000 // len(unit)))
    assert time.process_time() - start < 3
