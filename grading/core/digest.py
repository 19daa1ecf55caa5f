"""What the judge reads of a transcript: the task, the plan, confirmed actions with results, the last words.

One pass over the events in bounded memory; the same events give the same text. Scaffold text (I20) and thinking are
left out. Every entry begins with its event number in brackets: that is what a verdict cites.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from grading.core.events import ApiError, Boundary, Event, Message, PullRequestLink, Role, ToolCall, ToolResult
from grading.core.sanitise import clip, inline, quoted

# Entries kept while reading: the first and the last of each kind. Far more than any budget can show.
KEEP_HEAD, KEEP_TAIL = 200, 800
CALL_CHARS, RESULT_CHARS, WORDS_CHARS = 500, 700, 6000
CHANGING = frozenset({"write", "edit", "shell", "plan"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One or two events (a call and its result) as the judge reads them; `weight` decides what goes first."""

    numbers: tuple[int, ...]
    text: str
    weight: int


@dataclass(slots=True)
class Window:
    """The first and the last entries of a stream, and how many there were."""

    head: list[Entry] = field(default_factory=list)
    tail: deque[Entry] = field(default_factory=lambda: deque(maxlen=KEEP_TAIL))
    seen: int = 0

    def add(self, entry: Entry) -> None:
        self.seen += 1
        (self.head if len(self.head) < KEEP_HEAD else self.tail).append(entry)

    def entries(self) -> list[Entry]:
        return [*self.head, *self.tail]


@dataclass(slots=True)
class Digest:
    """A transcript in four piles, each in the order of events."""

    asked: Window = field(default_factory=Window)
    actions: Window = field(default_factory=Window)
    said: Window = field(default_factory=Window)
    events: int = 0


def read(events: Iterable[Event], *, words: int = WORDS_CHARS) -> Digest:
    """Sort a transcript's events into a digest. Calls wait for their result; one without is shown as unconfirmed.

    `words` bounds each message, in characters. What the log copied from another session is left out (L11).
    """
    digest = Digest()
    waiting: dict[str, ToolCall] = {}
    for event in events:
        digest.events += 1
        match event:
            case Boundary(kind="session_change"):
                digest, waiting = Digest(events=digest.events), {}
            case Message():
                _add_message(digest, event, words)
            case ToolCall():
                _await(digest, waiting, event)
            case ToolResult():
                digest.actions.add(_action(waiting.pop(event.call_id, None), event))
            case PullRequestLink() | ApiError() | Boundary(kind="compaction"):
                digest.actions.add(_note(event))
            case _:
                pass
    for call in waiting.values():
        digest.actions.add(_action(call, None))
    return digest


def fit(entries: Iterable[Entry], budget: int) -> tuple[str, frozenset[int]]:
    """The weightiest entries (later ones first among equals) that fit `budget` characters, in the order of events.

    Returns the text, with a line for every gap, and the numbers of the events that are in it.
    """
    ordered = sorted(entries, key=lambda entry: entry.numbers)
    chosen: set[int] = set()
    left = budget
    for index in sorted(range(len(ordered)), key=lambda i: (ordered[i].weight, i), reverse=True):
        cost = len(ordered[index].text) + 1
        if cost <= left:
            chosen.add(index)
            left -= cost
    lines: list[str] = []
    skipped = 0
    for index, entry in enumerate(ordered):
        if index not in chosen:
            skipped += 1
            continue
        lines += [_gap(skipped), entry.text] if skipped else [entry.text]
        skipped = 0
    lines += [_gap(skipped)] if skipped else []
    return "\n".join(lines), frozenset(n for i in chosen for n in ordered[i].numbers)


def _await(digest: Digest, waiting: dict[str, ToolCall], call: ToolCall) -> None:
    """Hold a call until its result comes; one whose id is taken, or too many at once, is given up as unconfirmed."""
    stale = call.call_id if call.call_id in waiting else next(iter(waiting)) if len(waiting) >= KEEP_TAIL else None
    if stale is not None:
        digest.actions.add(_action(waiting.pop(stale), None))
    waiting[call.call_id] = call


def _gap(count: int) -> str:
    return f"({count} left out)"


def _add_message(digest: Digest, event: Message, words: int) -> None:
    if event.role is Role.SCAFFOLD or event.thinking or not event.text.strip():
        return
    pile = digest.asked if event.role is Role.USER else digest.said
    # The first request is the task, and the last words are the claim: what came first or last is weightier.
    first = event.role is Role.USER and pile.seen == 0
    head = f"[{event.number}] {event.role}{_aside(event)}"
    entry = Entry((event.number,), f"{head}\n{quoted(event.text, words)}", weight=2 if first else 1)
    pile.add(entry)


def _action(call: ToolCall | None, result: ToolResult | None) -> Entry:
    parts: list[str] = []
    numbers: list[int] = []
    if call is not None:
        numbers.append(call.number)
        parts.append(f"[{call.number}] {call.kind} {inline(call.name, 60)}{_aside(call)}")
        parts.append(quoted(_what(call), CALL_CHARS))
    if result is None:
        parts.append("  no result on record: unconfirmed")
    else:
        numbers.append(result.number)
        parts.append(f"[{result.number}] result{_verdict(result)}")
        parts.append(quoted(result.text, RESULT_CHARS))
    return Entry(tuple(numbers), "\n".join(parts), _weight(call, result))


def _what(call: ToolCall) -> str:
    if call.command:
        return call.command
    arguments = "\n".join(f"{key}: {clip(str(value), CALL_CHARS)}" for key, value in call.arguments.items())
    return f"{call.path}\n{arguments}"


def _weight(call: ToolCall | None, result: ToolResult | None) -> int:
    """Confirmed changes first, then what failed to change anything, then reading."""
    changes = call is not None and call.kind in CHANGING
    confirmed = result is not None and not result.failed
    return 2 * changes + confirmed


def _verdict(result: ToolResult) -> str:
    code = "" if result.exit_code is None else f", exit {result.exit_code}"
    return {True: ", failed", False: ", ok", None: ""}[result.failed] + code


def _note(event: PullRequestLink | ApiError | Boundary) -> Entry:
    match event:
        case PullRequestLink():
            what = f"the harness recorded a pull request: {inline(event.url)}"
        case ApiError():
            what = f"the harness's model call failed ({inline(event.reason, 40)}): {inline(event.text)}"
        case Boundary():
            what = "the harness compacted its context here"
    return Entry((event.number,), f"[{event.number}] {what}", weight=3)


def _aside(event: Event) -> str:
    return " (subagent)" if event.sidechain else ""
