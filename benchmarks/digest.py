"""Does what matters in a session reach its judge? Real logs, and the prompts that the product makes of them.

Each log is read as the product reads it, and its prompt made for 24,000 tokens beside a long rubric, without anything
but the log. Held against what the extractor finds: the share of commits, pull requests opened, merges, last runs of
each test runner and final messages of which the prompt's evidence shows the very event, and of failed results that it
shows, or lists by number beside one like them. What only the fact sheet says does not count. Final messages are the
last words of a session that has any text in them.

Beside them are the figures of the digest before this one (`digest/2`), as measured on all logs when quotas came in.
The logs are those of GRADING_DATA_DIR, else of `../shared/data` beside the checkout, else the few of the repository.

    python benchmarks/digest.py [--quick | --smoke]
"""

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size

# The judge's prompt is pure, but the door that it is behind opens with the site's settings only.
STATE = tempfile.TemporaryDirectory()
scratch.code(STATE.name)

from grading.formats import EmptyTranscript, UnknownFormat, read  # noqa: E402 - see above
from grading.formats.events import Boundary, Event, Message, Role, ToolCall, ToolResult  # noqa: E402 - see above
from grading.judging.core import prompt  # noqa: E402 - see above
from grading.judging.core.prompt import Case, Prompt, RubricText  # noqa: E402 - see above
from grading.reward.production import collect  # noqa: E402 - see above
from grading.signals import EffectKind, Signals, extract  # noqa: E402 - see above
from grading.signals.looks import call_worked  # noqa: E402 - see above

BUDGET = 24_000
# As long as a rubric gets: what it takes, the evidence cannot.
RUBRIC = RubricText(sha256="", text="x" * 10_000, dimensions=(), bands=())
MIB = 1024 * 1024
QUICK_BYTES, SMOKE_BYTES, SMOKE_SESSIONS = MIB, 60_000, 12
KINDS = ("commits", "prs", "merges", "last_tests", "final_messages", "failures")
BEFORE = {
    "commits": 0.8602,
    "prs": 0.7647,
    "merges": 0.3333,
    "last_tests": 0.9811,
    "final_messages": 1.0,
    "failures": 0.4338,
}
SHOWN = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
LIKE = re.compile(r"^  and \d+ like it, events ([\d, ]+)", re.MULTILINE)


def main() -> None:
    parser = scratch.parser(
        __doc__, quick="only logs of at most 1 MiB", smoke=f"{SMOKE_SESSIONS} logs of at most {SMOKE_BYTES // 1000} kB"
    )
    size = parser.parse_args().size
    there, reached = Counter[str](), Counter[str]()
    sessions, seconds, largest = 0, 0.0, 0
    for path in logs(size):
        events = parsed(path)
        if events is None:
            continue
        signals = extract(events)
        started = time.perf_counter()
        made = made_of(path, events, signals)
        seconds += time.perf_counter() - started
        sessions, largest = sessions + 1, max(largest, made.tokens)
        shown, listed = numbers(made)
        for kind, wanted in matters(events, signals).items():
            missing = sorted(wanted - (shown | listed if kind == "failures" else shown))
            there[kind] += len(wanted)
            reached[kind] += len(wanted) - len(missing)
            if missing:
                print(f"{kind:14} {len(missing):4} of {len(wanted):4} missing in {path.name}: {missing[:8]}")
    print(f"{sessions} sessions; the largest prompt is of {largest} tokens; {seconds:.1f} s to make them all")
    figures = {kind: share(reached[kind], there[kind]) for kind in KINDS}
    for line in report(figures, there, reached):
        print(line)
    print(json.dumps(figures))


def logs(size: Size) -> Iterator[Path]:
    """The logs, by name; the largest are left out where less is asked for."""
    folder = scratch.data_folder() / "transcripts"
    if not folder.is_dir():
        print(f"{folder} is not there: only the logs that the repository has are read. Set GRADING_DATA_DIR for all.")
        folder = scratch.ROOT / "tests" / "data" / "transcripts"
    most = {Size.FULL: None, Size.QUICK: QUICK_BYTES, Size.SMOKE: SMOKE_BYTES}[size]
    paths = [path for path in sorted(folder.rglob("*.json*")) if most is None or path.stat().st_size <= most]
    yield from paths[:: max(len(paths) // SMOKE_SESSIONS, 1)] if size is Size.SMOKE else paths


def parsed(path: Path) -> list[Event] | None:
    """A log's events; None where it is no log of a harness that is read."""
    with path.open("rb") as stream:
        try:
            return list(read(stream, path.name))
        except (EmptyTranscript, UnknownFormat):
            return None


def made_of(path: Path, events: Sequence[Event], signals: Signals) -> Prompt:
    case = Case(metadata={"title": path.stem}, events=events, signals=signals, production=collect(signals))
    return prompt.build(case, RUBRIC, budget=BUDGET)


def numbers(made: Prompt) -> tuple[set[int], set[int]]:
    """The events that the prompt's evidence shows, and those that it only lists."""
    evidence = made.user.split("\n<evidence-", 1)[1]
    listed = [number for found in LIKE.findall(evidence) for number in re.findall(r"\d+", found)]
    return {int(number) for number in SHOWN.findall(evidence)}, {int(number) for number in listed}


def matters(events: Iterable[Event], signals: Signals) -> dict[str, set[int]]:
    """The events of a log that its judge should see, by kind."""
    of_kind = {
        kind: {effect.at for effect in signals.effects if effect.kind is kind}
        for kind in (EffectKind.PR_OPENED, EffectKind.PR_MERGED)
    }
    calls: dict[str, ToolCall] = {}
    failures: set[int] = set()
    last_words: set[int] = set()
    for event in events:
        if isinstance(event, Boundary) and event.kind == "session_change":
            calls, failures, last_words = {}, set(), set()
        elif isinstance(event, ToolCall):
            calls[event.call_id] = event
        elif isinstance(event, ToolResult) and call_worked(event, calls.get(event.call_id)) is False:
            failures.add(event.number)
        elif isinstance(event, Message) and event.role is Role.ASSISTANT and not (event.thinking or event.sidechain):
            last_words = {event.number} if event.text.strip() else last_words
    return {
        "commits": {commit.at for commit in signals.commits},
        "prs": of_kind[EffectKind.PR_OPENED],
        "merges": of_kind[EffectKind.PR_MERGED],
        "last_tests": {*{run.runner: run.at for run in signals.test_runs}.values()},
        "final_messages": last_words,
        "failures": failures,
    }


def share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def report(figures: dict[str, float | None], there: Counter[str], reached: Counter[str]) -> Iterator[str]:
    yield f"{'':15} {'there':>6} {'reach':>6} {'share':>7} {'before':>7}"
    for kind in KINDS:
        now, before = _percent(figures[kind]), _percent(BEFORE[kind])
        yield f"{kind:15} {there[kind]:6} {reached[kind]:6} {now:>7} {before:>7}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


if __name__ == "__main__":
    main()
