"""The founding document on consumption rewards, through the real intake: its formula's numbers, and one direction."""

import math

import pytest

from grading.reward import rewards
from grading.vocabulary import Reason, Source

BACKLOG = "idea-backlog.md"


def new_file(path: str, *lines: str) -> str:
    body = "".join(f"+{line}\n" for line in lines)
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}"


THINGS = (
    "replay failed sessions",
    "publish the calibration",
    "cache repository maps",
    "warn of idle lessons",
    "rank issues by age",
    "compare two judges",
    "mirror the feeds",
    "draw the backlog",
    "time the test runs",
    "sort notes by use",
)


def ideas(count: int) -> str:
    rows = "".join(f"+| {n} | Idea: {thing} | HN | 7 |\n" for n, thing in enumerate(THINGS[:count], 1))
    return (
        f"diff --git a/{BACKLOG} b/{BACKLOG}\n--- a/{BACKLOG}\n+++ b/{BACKLOG}\n"
        f"@@ -1,2 +1,{2 + count} @@\n | # | Idea | Source | Score |\n |---|---|---|---|\n{rows}"
    )


TWEET = new_file(
    "tweets/drafts/replay.md",
    "A failed agent run is a fixture you have already paid for. Record every answer of the API once, keep it beside",
    "the test, and replay it until the bug is gone: no key, no bill, no waiting, and the same failure each time.",
)
TASK = new_file(
    "tasks/look-into-replay.md",
    "# Look into replay",
    "Find out which of last month's failures could have been reproduced from their logs alone. Take ten at random,",
    "feed the recorded tool results back in, and count how many break at the same step. Report the share and the cost.",
)
NOTE = new_file(
    "knowledge/replay.md",
    "# Replay",
    "Harnesses differ in what they record: Claude Code keeps whole results, gptme cuts long output in the middle, and",
    "Codex writes the exit status apart. A replay therefore needs a reader for each, and says where it had to guess.",
)


def submitted(site, patch: str | None, *, category: str = "news", journal: str | None = None):
    return site.upload(patch=patch, journal=journal, category=category).session


def consumption(session) -> float | None:
    return session.grades.filter(source=Source.CONSUMPTION).last().value


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (ideas(1), 0.30),
        (ideas(2), round(0.4 * math.log(3) / math.log(4) + 0.1, 6)),
        (ideas(3), 0.50),
        (ideas(10), 0.50),
        (ideas(3) + TWEET, 0.60),
        (ideas(3) + TWEET + TASK, 0.70),
        (ideas(3) + TWEET + TASK + NOTE, 0.75),
    ],
)
def test_a_reading_session_gets_exactly_the_numbers_of_the_formula(site, patch, expected):
    session = submitted(site, patch)
    assert consumption(session) == expected
    assert rewards.live(session).value == expected


@pytest.mark.django_db
def test_a_productive_session_is_never_lowered_by_consumption(site):
    session = submitted(site, ideas(1))
    site.on(session).judged(0.85)
    assert rewards.settle(session).value == 0.85


@pytest.mark.django_db
def test_a_reading_session_is_not_punished_for_committing_nothing(site):
    session = submitted(site, ideas(3) + TWEET)
    site.on(session).judged(0.05)
    settlement = rewards.settle(session)
    assert (settlement.value, settlement.source) == (0.60, Source.CONSUMPTION)


@pytest.mark.django_db
def test_max_does_not_lift_an_honest_verdict_to_the_floor(site):
    session = submitted(site, new_file("src/empty.py", "pass"), category="code")
    site.on(session).judged(0.05)
    assert rewards.settle(session).value == 0.05


@pytest.mark.django_db
def test_an_edited_or_header_row_is_no_idea(site):
    edited = (
        f"diff --git a/{BACKLOG} b/{BACKLOG}\n--- a/{BACKLOG}\n+++ b/{BACKLOG}\n@@ -1,3 +1,3 @@\n"
        "-| # | Idea | Source | Score |\n+| No | Idea | Source | Score |\n |---|---|---|---|\n"
        "-| 1 | Idea: thing number one | HN | 7 |\n+| 1 | Idea: thing number one | HN | 8 |\n"
    )
    session = submitted(site, edited)
    assert consumption(session) is None
    assert session.grades.get(source=Source.CONSUMPTION).reason == Reason.NO_ARTIFACTS
