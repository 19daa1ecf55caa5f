"""The fact sheet: what the site itself has confirmed about a session. The prompt has it before the evidence.

Whatever comes from a log or an agent (hashes, addresses, subjects, names of branches and test runners) is
quoted behind a bar and cleaned like all evidence. Numbers in brackets are events of the transcript.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from grading.judging.core.sanitise import quoted
from grading.reward.production import FACTS, NAMES, PATCH, TRANSCRIPT, Production, Thing, by_kind
from grading.signals import Commit, Signals, TestRun, TestState

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
# These are only counted: the patch and the actions name them.
COUNTED = frozenset({"file", "bookkeeping_file"})
# The kinds that are listed first; the others follow in the order of `by_kind`.
FIRST = ("pr_merged", "pr_opened", "commit")
QUOTED = 160
# The share of the room for test runs, of which the last are listed.
RUNS_SHARE = 0.4
LEFT_OUT = "({count} left out)"
GAP = len(LEFT_OUT) + 1
# The least length of a block. Blocks beyond the number that could fit are not written at all.
LEAST = 20
FAILED = "Failed results: events "
# About the length of an event's number in a list.
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
    """The fact sheet: the counts, always, then as many confirmed things and test runs as fit in `limit` characters.

    `failures` is the number of failed results, `failed_at` the event numbers of the last of them.
    """
    signals = signals or Signals()
    counts = "\n".join(_counts(signals, production)) or NOTHING
    failed = _failed_results(failed_at, failures, (limit - len(counts)) // 4)
    room = limit - len(counts) - _size(failed) - 2 * GAP
    most = max(limit, 0) // LEAST
    things = _listed_things(production)
    commits = {commit.hash: commit for commit in signals.commits}
    thing_blocks = [_thing_block(thing, commits.get(thing.key)) for thing in things[:most]]
    # Consecutive runs of one test runner with the same outcome are one block.
    runs = [list(rows) for _, rows in groupby(signals.test_runs, lambda run: (run.runner, run.passed))]
    latest_run_blocks = [_run_block(rows) for rows in runs[::-1][:most]]
    # The runs may take what the things do not need.
    room_for_runs = max(int(room * RUNS_SHARE), room - _size(block.text for block in thing_blocks))
    latest_run_blocks = _fitting(latest_run_blocks, room_for_runs)
    thing_blocks = _fitting(thing_blocks, room - _size(block.text for block in latest_run_blocks))
    lines = [
        counts,
        *failed,
        *(block.text for block in thing_blocks),
        *_gap(len(things) - len(thing_blocks)),
        *_gap(len(runs) - len(latest_run_blocks)),
        *(block.text for block in reversed(latest_run_blocks)),
    ]
    numbers = frozenset(block.number for block in (*thing_blocks, *latest_run_blocks) if block.number is not None)
    return Sheet(text="\n".join(lines), numbers=numbers)


def _failed_results(failed_at: Collection[int], failures: int, room: int) -> list[str]:
    """A line with the event numbers of the last failed results that fit in `room` characters; no line if that is too
    little.
    """
    if not failed_at or room < 2 * len(FAILED):
        return []
    latest = list(failed_at)[-max(room // NUMBER_CHARS, 1) :]
    earlier = failures - len(latest)
    return [FAILED + ", ".join(map(str, latest)) + (f", and {earlier} before them" if earlier else "")]


def _listed_things(production: Production) -> list[Thing]:
    """The confirmed things that are listed one by one, by kind: those of FIRST, then the others."""
    things_by_kind = by_kind(production.things)
    first = [kind for kind in FIRST if kind in things_by_kind]
    others = [kind for kind in things_by_kind if kind not in (*FIRST, *COUNTED)]
    return [thing for kind in (*first, *others) for thing in things_by_kind[kind]]


def _thing_block(thing: Thing, commit: Commit | None) -> _Block:
    text = thing.key if commit is None else f"{commit.hash} {commit.subject}"
    places = " and ".join(SEEN[place] for place in thing.seen_in)
    head = f"{_at(thing.at)} {NAMES[thing.kind][0]}, seen in {places}"
    return _Block(text=f"{head}\n{quoted(text, QUOTED)}", number=thing.at)


def _run_block(runs: Sequence[TestRun]) -> _Block:
    """Test runs of one runner with the same outcome, as the last of them."""
    last = runs[-1]
    outcome = "passed" if last.passed else "failed"
    repeats = "" if len(runs) == 1 else f", as did the {len(runs) - 1} before it"
    head = f"{_at(last.at)} test run {outcome}{repeats}"
    return _Block(text=f"{head}\n{quoted(last.runner, QUOTED)}", number=last.at)


def _size(texts: Iterable[str]) -> int:
    """The characters that the texts take, each with a newline."""
    return sum(len(text) + 1 for text in texts)


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
    """The first blocks that fit in `room` characters."""
    fitting: list[_Block] = []
    for block in blocks:
        room -= len(block.text) + 1
        if room < 0:
            break
        fitting.append(block)
    return fitting


def _gap(count: int) -> list[str]:
    return [LEFT_OUT.format(count=count)] if count else []
