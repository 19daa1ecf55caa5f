"""Does what matters in a session reach its judge? Real logs, and the prompts that the product makes of them.

Each log is read as the product reads it. Its prompt is made for 24,000 tokens beside a long rubric, with nothing but
the log. For each kind of event that the extractor finds (commits, pull requests opened, merges, last runs of each test
runner, final messages), the figure is the share of which the prompt's evidence shows the very event. A failed result
also counts if the prompt lists its number beside one like it. What only the fact sheet says doesn't count. Final
messages are the last messages of a session that have any text.

The logs are those of GRADING_DATA_DIR, else of `../shared/data` beside the checkout, else the few in the repository.

    python benchmarks/digest.py [--quick | --smoke]
"""

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size

# The judge's prompt is pure, but importing its package needs the site's settings.
STATE = tempfile.TemporaryDirectory()
scratch.code(STATE.name)

from grading.formats import EmptyTranscript, UnknownFormat, read  # noqa: E402 - see above
from grading.formats.events import Boundary, Event, Message, Role, ToolCall, ToolResult  # noqa: E402 - see above
from grading.judging.core import prompt  # noqa: E402 - see above
from grading.judging.core.prompt import Case, Prompt, RubricText  # noqa: E402 - see above
from grading.reward.production import collect  # noqa: E402 - see above
from grading.signals import EffectKind, Signals, extract  # noqa: E402 - see above
from grading.signals.looks import call_worked  # noqa: E402 - see above

BUDGET_TOKENS = 24_000
# As long as a rubric gets: it leaves the least room for evidence.
RUBRIC = RubricText(sha256="", text="x" * 10_000, dimensions=(), bands=())
MAX_BYTES = {Size.FULL: None, Size.QUICK: 1024 * 1024, Size.SMOKE: 60_000}
SMOKE_SESSIONS = 12
KINDS = ("commits", "prs", "merges", "last_tests", "final_messages", "failures")
SHOWN_EVENT = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
LISTED_EVENTS = re.compile(r"^  and \d+ like it, events ([\d, ]+)", re.MULTILINE)


def main() -> None:
    parser = scratch.parser(
        __doc__, quick="only logs of at most 1 MiB", smoke=f"{SMOKE_SESSIONS} logs of at most 60 kB"
    )
    size = parser.parse_args().size
    total, reached = Counter[str](), Counter[str]()
    sessions, seconds, most_tokens = 0, 0.0, 0
    for path in log_paths(size):
        events = read_events(path)
        if events is None:
            continue
        signals = extract(events)
        started = time.perf_counter()
        made = make_prompt(path, events, signals)
        seconds += time.perf_counter() - started
        sessions, most_tokens = sessions + 1, max(most_tokens, made.tokens)
        shown_events, listed_events = events_in_prompt(made)
        for kind, important in important_events(events, signals).items():
            missing = important - shown_events
            if kind == "failures":
                missing -= listed_events
            total[kind] += len(important)
            reached[kind] += len(important) - len(missing)
            if missing:
                numbers = sorted(missing)[:8]
                print(f"{kind:14} {len(missing):4} of {len(important):4} missing in {path.name}: {numbers}")
    print(f"{sessions} sessions; the largest prompt has {most_tokens} tokens; {seconds:.1f} s to make them all")
    figures = {kind: round(reached[kind] / total[kind], 4) if total[kind] else None for kind in KINDS}
    rows = [[kind, total[kind], reached[kind], scratch.percent(figures[kind])] for kind in KINDS]
    print(scratch.table(["events", "in the logs", "in the prompts", "share"], rows))
    print(json.dumps(figures))


def log_paths(size: Size) -> list[Path]:
    """The logs, by name, without the largest in a smaller run."""
    folder = scratch.data_folder() / "transcripts"
    if not folder.is_dir():
        print(f"{folder} is not there: only the logs in the repository are read. Set GRADING_DATA_DIR to read all.")
        folder = scratch.ROOT / "tests" / "data" / "transcripts"
    limit = MAX_BYTES[size]
    paths = [path for path in sorted(folder.rglob("*.json*")) if limit is None or path.stat().st_size <= limit]
    return paths[:: max(len(paths) // SMOKE_SESSIONS, 1)] if size is Size.SMOKE else paths


def read_events(path: Path) -> list[Event] | None:
    """A log's events; None if no reader knows its format."""
    with path.open("rb") as stream:
        try:
            return list(read(stream, path.name))
        except (EmptyTranscript, UnknownFormat):
            return None


def make_prompt(path: Path, events: Sequence[Event], signals: Signals) -> Prompt:
    case = Case(metadata={"title": path.stem}, events=events, signals=signals, production=collect(signals))
    return prompt.build(case, RUBRIC, budget=BUDGET_TOKENS)


def events_in_prompt(made: Prompt) -> tuple[set[int], set[int]]:
    """The numbers of the events that the prompt's evidence shows, and of those that it only lists."""
    evidence = made.user.split("\n<evidence-", 1)[1]
    listed = [number for numbers in LISTED_EVENTS.findall(evidence) for number in re.findall(r"\d+", numbers)]
    return {int(number) for number in SHOWN_EVENT.findall(evidence)}, {int(number) for number in listed}


def important_events(events: Iterable[Event], signals: Signals) -> dict[str, set[int]]:
    """The numbers of the events that a judge should see, by kind."""
    calls: dict[str, ToolCall] = {}
    failures: set[int] = set()
    final_messages: set[int] = set()
    for event in events:
        if isinstance(event, Boundary) and event.kind == "session_change":
            calls, failures, final_messages = {}, set(), set()
        elif isinstance(event, ToolCall):
            calls[event.call_id] = event
        elif isinstance(event, ToolResult) and call_worked(event, calls.get(event.call_id)) is False:
            failures.add(event.number)
        elif isinstance(event, Message) and event.role is Role.ASSISTANT and not (event.thinking or event.sidechain):
            final_messages = {event.number} if event.text.strip() else final_messages
    return {
        "commits": {commit.at for commit in signals.commits},
        "prs": {effect.at for effect in signals.effects if effect.kind is EffectKind.PR_OPENED},
        "merges": {effect.at for effect in signals.effects if effect.kind is EffectKind.PR_MERGED},
        "last_tests": {*{run.runner: run.at for run in signals.test_runs}.values()},
        "final_messages": final_messages,
        "failures": failures,
    }


if __name__ == "__main__":
    main()
