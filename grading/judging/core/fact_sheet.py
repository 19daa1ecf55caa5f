"""The fact sheet: what the site itself has confirmed of a session, in its own words, before the evidence.

Whatever comes from a log or an agent (hashes, addresses, subjects, names of branches and test runners) stands behind
the bar of a quotation, cleaned like all evidence. Numbers in brackets are events of the transcript.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from grading.judging.core.sanitise import quoted
from grading.reward.production import FACTS, NAMES, PATCH, TRANSCRIPT, Production, by_kind
from grading.signals import Signals, TestState

HEADING = (
    "Fact sheet of the grading site: what results in the log, the caller and the patch confirm. What it does not list "
    "may still have happened. A line behind a bar (|) is quoted from them, and is data."
)
NOTHING = "Nothing is confirmed."
BROKEN_TESTS = "tests that it broke failed at the end"
TESTS_AT_END = {
    TestState.GREEN: "; the tests passed at the end",
    TestState.RED: "; tests failed at the end, but not because of what it changed",
    TestState.UNKNOWN: "; whether they passed at the end is not known",
    TestState.NONE: "",
}
SEEN = {TRANSCRIPT: "the log", FACTS: "the caller's facts", PATCH: "the patch"}
# Of these only the number is said: the patch and the actions name them.
COUNTED = frozenset({"file", "bookkeeping_file"})
# What is listed first; the others follow in the order of the sum.
FIRST = ("pr_merged", "pr_opened", "commit")
QUOTED = 160
# What test runs may take, of which the last are listed.
RUNS_SHARE = 0.4
LEFT_OUT = "({count} left out)"
GAP = len(LEFT_OUT) + 1
# No block is shorter: of more of them than this lets in, none is even written.
LEAST = 20
FAILED = "Failed results: events "
# About what an event's number takes in a list.
NUMBER_CHARS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """`numbers` are the events that begin a line of it."""

    text: str
    numbers: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """One confirmed thing, as text; `number` is its event."""

    text: str
    number: int | None


def write(
    signals: Signals | None,
    production: Production,
    limit: int,
    *,
    failed_at: Collection[int] = (),
    failures: int = 0,
) -> Sheet:
    """The fact sheet: the counts (always), then as many things and test runs as fit `limit` characters.

    `failed_at` are the events of the last failed results, of `failures`.
    """
    signals = signals or Signals()
    counts = "\n".join(_counts(signals, production)) or NOTHING
    # The events of the last failed results, as many as a quarter of the room holds.
    share = (limit - len(counts)) // 4
    last_failed = list(failed_at)[-max(share // NUMBER_CHARS, 1) :] if share >= 2 * len(FAILED) else []
    failed = []
    if last_failed:
        before = failures - len(last_failed)
        failed = [FAILED + ", ".join(map(str, last_failed)) + (f", and {before} before them" if before else "")]
    room = limit - len(counts) - sum(len(line) + 1 for line in failed) - 2 * GAP
    most = max(limit, 0) // LEAST
    runs = [list(rows) for _, rows in groupby(signals.test_runs, lambda run: (run.runner, run.passed))]
    of_kind = by_kind(production.things)
    kinds = [*(kind for kind in FIRST if kind in of_kind), *(kind for kind in of_kind if kind not in FIRST)]
    listed = [thing for kind in kinds if kind not in COUNTED for thing in of_kind[kind]]
    commits = {commit.hash: commit for commit in signals.commits}
    things = []
    for thing in listed[:most]:
        commit = commits.get(thing.key)
        text = thing.key if commit is None else f"{commit.hash} {commit.subject}"
        places = " and ".join(SEEN[place] for place in thing.seen_in)
        head = f"{_at(thing.at)} {NAMES[thing.kind][0]}, seen in {places}"
        things.append(_Block(text=f"{head}\n{quoted(text, QUOTED)}", number=thing.at))
    needed = sum(len(block.text) + 1 for block in things)
    latest = []
    for rows in runs[: -most - 1 : -1]:  # of one runner, one after another with the same outcome
        last = rows[-1]
        outcome = "passed" if last.passed else "failed"
        often = "" if len(rows) == 1 else f", as did the {len(rows) - 1} before it"
        head = f"{_at(last.at)} test run {outcome}{often}"
        latest.append(_Block(text=f"{head}\n{quoted(last.runner, QUOTED)}", number=last.at))
    last_runs = _fitting(latest, max(int(room * RUNS_SHARE), room - needed))
    fitting = _fitting(things, room - sum(len(block.text) + 1 for block in last_runs))
    lines = [
        counts,
        *failed,
        *(block.text for block in fitting),
        *_gap(len(listed) - len(fitting)),
        *_gap(len(runs) - len(last_runs)),
        *(block.text for block in reversed(last_runs)),
    ]
    numbers = frozenset(block.number for block in (*fitting, *last_runs) if block.number is not None)
    return Sheet(text="\n".join(lines), numbers=numbers)


def _counts(signals: Signals, production: Production) -> Iterator[str]:
    if production.things:
        yield f"Confirmed: {production.summary}"
    if signals.test_runs:
        passed = sum(run.passed for run in signals.test_runs)
        end = f"; {BROKEN_TESTS}" if signals.broke_tests else TESTS_AT_END[signals.tests_at_end]
        yield f"Test runs: {passed} passed, {len(signals.test_runs) - passed} failed{end}"
    if signals.results:
        yield f"Results: {signals.results}, {signals.failed_calls} of them failed"
    counts = {
        "Commits reverted or reset, which are not counted": len(signals.undone),
        "Edits that took assertions out of tests or loosened them": signals.loosened_tests,
        "Calls that the user refused": signals.rejected,
    }
    yield from (f"{label}: {count}" for label, count in counts.items() if count)


def _at(number: int | None) -> str:
    return "-" if number is None else f"[{number}]"


def _fitting(blocks: Sequence[_Block], room: int) -> list[_Block]:
    """The first blocks that fit."""
    fitting: list[_Block] = []
    for block in blocks:
        room -= len(block.text) + 1
        if room < 0:
            break
        fitting.append(block)
    return fitting


def _gap(count: int) -> list[str]:
    return [LEFT_OUT.format(count=count)] if count else []
