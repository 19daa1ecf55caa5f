"""What the judge reads of a transcript: the task, confirmed actions with results, the last words.

One pass over the events in bounded memory; the same events give the same text. Scaffold text (I20) and thinking are
left out. Every entry begins with its event number in brackets: that is what a verdict cites. An entry is written out
(redacted, quoted) only when there is room for it.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from grading.core.events import ApiError, Boundary, Event, Message, PullRequestLink, Role, ToolCall, ToolResult
from grading.core.sanitise import MARGIN, ends, inline, quoted
from grading.core.signals.intents import commands_of, of_call

# Entries kept while reading: the first and the last of each kind. Far more than any budget can show.
KEEP_HEAD, KEEP_TAIL = 100, 500
CALL_CHARS, RESULT_CHARS, WORDS_CHARS = 500, 700, 6000
CHANGING = frozenset({"write", "edit", "shell", "plan"})
# How much of the end counts as the final state, beside the last test run, commit, push and pull request.
LAST_RESULTS = 3
FINAL, TASK, CONFIRMED_CHANGE, NOTE = 9, 8, 3, 2
UNCONFIRMED = "  no result on record: unconfirmed"
# What a line for a gap takes, with its newline.
GAP = len("(100000 left out)\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One or two events (a call and its result) as the judge reads them; `weight` decides what goes first."""

    numbers: tuple[int, ...]
    write: Callable[[], str]
    weight: int
    order: int


@dataclass(slots=True)
class Window:
    """The first and the last entries of a stream, and how many there were; `order` is an entry's place in it."""

    head: list[Entry] = field(default_factory=list)
    tail: deque[Entry] = field(default_factory=lambda: deque(maxlen=KEEP_TAIL))
    seen: int = 0

    def add(self, numbers: tuple[int, ...], write: Callable[[], str], weight: int) -> Entry:
        entry = Entry(numbers=numbers, write=write, weight=weight, order=self.seen)
        self.seen += 1
        (self.head if len(self.head) < KEEP_HEAD else self.tail).append(entry)
        return entry

    def entries(self) -> list[Entry]:
        return [*self.head, *self.tail]


@dataclass(slots=True)
class Digest:
    """A transcript in three piles, each in the order of events. `last` are the final acts of each kind."""

    asked: Window = field(default_factory=Window)
    actions: Window = field(default_factory=Window)
    said: Window = field(default_factory=Window)
    last: dict[str, Entry] = field(default_factory=dict)
    events: int = 0

    def done(self) -> list[Entry]:
        """The actions, those of the final state with the greatest weight."""
        entries = {entry.order: entry for entry in (*self.actions.entries(), *self.last.values())}
        confirmed = [order for order in sorted(entries) if entries[order].weight == CONFIRMED_CHANGE]
        final = {*confirmed[-LAST_RESULTS:], *(entry.order for entry in self.last.values())}
        return [replace(e, weight=FINAL) if e.order in final else e for e in entries.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Entries as text, with a line for every gap; the numbers of the events in it; whether all of them are."""

    text: str
    numbers: frozenset[int]
    is_all: bool


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
                _add_action(digest, waiting.pop(event.call_id, None), event)
            case PullRequestLink() | ApiError() | Boundary(kind="compaction"):
                entry = digest.actions.add((event.number,), partial(_note, event), NOTE)
                if isinstance(event, PullRequestLink):
                    digest.last["pull request"] = entry
            case _:
                pass
    for call in waiting.values():
        _add_action(digest, call, None)
    return digest


def fit(entries: Iterable[Entry], budget: int, *, of: int) -> Fitted:
    """The weightiest of `of` entries (later ones first among equals) that fit `budget` characters, in their order.

    It stops at the first that does not fit: more room never shows less.
    """
    chosen: dict[int, tuple[Entry, str]] = {}
    left = budget - GAP
    for entry in sorted(entries, key=lambda entry: (entry.weight, entry.order), reverse=True):
        text = entry.write()
        left -= len(text) + 1 + GAP
        if left < 0:
            break
        chosen[entry.order] = entry, text
    numbers = frozenset(number for entry, _ in chosen.values() for number in entry.numbers)
    text = _laid_out({order: text for order, (_, text) in chosen.items()}, of) if budget >= GAP else ""
    return Fitted(text=text, numbers=numbers, is_all=len(chosen) == of)


def _laid_out(texts: dict[int, str], count: int) -> str:
    """The texts in their order, and how many of `count` are missing where."""
    lines: list[str] = []
    before = -1
    for order in [*sorted(texts), count]:
        skipped = order - before - 1
        lines += [f"({skipped} left out)"] * (skipped > 0)
        lines += [texts[order]] if order in texts else []
        before = order
    return "\n".join(lines)


def _await(digest: Digest, waiting: dict[str, ToolCall], call: ToolCall) -> None:
    """Hold a call until its result comes; one whose id is taken, or too many at once, is given up as unconfirmed."""
    stale = call.call_id if call.call_id in waiting else next(iter(waiting)) if len(waiting) >= KEEP_TAIL else None
    if stale is not None:
        _add_action(digest, waiting.pop(stale), None)
    waiting[call.call_id] = call


def _add_message(digest: Digest, event: Message, words: int) -> None:
    if event.role is Role.SCAFFOLD or event.thinking or not event.text.strip():
        return
    pile = digest.asked if event.role is Role.USER else digest.said
    # The first request is the task, and the last words are the claim: what came first or last is weightier.
    is_task = event.role is Role.USER and pile.seen == 0
    head = f"[{event.number}] {event.role}{_aside(event)}"
    text = _kept(event.text, words)
    write = partial(_message, head, text, words)
    pile.add((event.number,), write, TASK if is_task else 1)


def _message(head: str, text: str, words: int) -> str:
    return f"{head}\n{quoted(text, words)}"


def _add_action(digest: Digest, call: ToolCall | None, result: ToolResult | None) -> None:
    numbers = tuple(event.number for event in (call, result) if event is not None)
    said = "" if call is None else _kept(_what(call), CALL_CHARS)
    shown = "" if result is None else _kept(result.text, RESULT_CHARS)
    bare_call = call and replace(call, arguments={}, command="", path="")
    bare_result = result and replace(result, text="")
    write = partial(_action, bare_call, said, bare_result, shown)
    entry = digest.actions.add(numbers, write, _weight(call, result))
    digest.last |= dict.fromkeys(_kinds(call), entry)


def _action(call: ToolCall | None, said: str, result: ToolResult | None, shown: str) -> str:
    parts = [] if call is None else [_call_line(call), quoted(said, CALL_CHARS)]
    parts += [UNCONFIRMED] if result is None else [_result_line(result), quoted(shown, RESULT_CHARS)]
    return "\n".join(parts)


def _kinds(call: ToolCall | None) -> set[str]:
    """What an action is the last of, so far: a test run, a commit, a push, a pull request."""
    if call is None:
        return set()
    intents = of_call(call, commands_of(call))
    return {"commit" if intent.is_commit else str(intent.kind) for intent in intents if not intent.opaque}


def _kept(text: str, limit: int) -> str:
    """As much of a text as will ever be looked at, so that a long log takes little memory."""
    return ends(text, limit + MARGIN)


def _what(call: ToolCall) -> str:
    if call.command:
        return call.command
    arguments = "\n".join(f"{key}: {_kept(str(value), CALL_CHARS)}" for key, value in call.arguments.items())
    return f"{call.path}\n{arguments}"


def _weight(call: ToolCall | None, result: ToolResult | None) -> int:
    """Confirmed changes first, then what failed to change anything, then reading."""
    changes = call is not None and call.kind in CHANGING
    confirmed = result is not None and not result.failed
    return 2 * changes + confirmed


def _call_line(call: ToolCall) -> str:
    return f"[{call.number}] {call.kind} {inline(call.name, 60)}{_aside(call)}"


def _result_line(result: ToolResult) -> str:
    code = "" if result.exit_code is None else f", exit {result.exit_code}"
    return f"[{result.number}] result" + {True: ", failed", False: ", ok", None: ""}[result.failed] + code


def _note(event: PullRequestLink | ApiError | Boundary) -> str:
    match event:
        case PullRequestLink():
            what = f"the harness recorded a pull request: {inline(event.url)}"
        case ApiError():
            what = f"the harness's model call failed ({inline(event.reason, 40)}): {inline(event.text)}"
        case Boundary():
            what = "the harness compacted its context here"
    return f"[{event.number}] {what}"


def _aside(event: Event) -> str:
    return " (subagent)" if event.sidechain else ""
