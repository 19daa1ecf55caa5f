"""The judge's digest of a transcript: the task, the actions with their results, the agent's messages.

One pass over the events in bounded memory; the same events give the same text. Scaffold text and thinking are
left out. Every entry begins with its event number in brackets, which a verdict cites.

Room is given by kind: first what is confirmed (commits, pull requests, merges, test runs and other effects), then what
failed, then the last third of the session, then the rest. Similar failures become one entry with their count, and so
do repeats of a call with the same result. If the first kinds are too long, all entries of a kind are shortened before
one is left out. An entry is written (redacted, quoted) only when there is room for it.
"""

import hashlib
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from grading.formats.events import ApiError, Boundary, Event, Message, PullRequestLink, Role, ToolCall, ToolResult
from grading.judging.core.sanitise import QUOTE, ends, inline, quoted
from grading.redaction import MARGIN
from grading.signals import EffectKind, Signals
from grading.signals.looks import call_worked

# Entries in memory while reading: the first and the last of each kind. Far more than fit any budget.
KEEP_HEAD, KEEP_TAIL = 100, 500
CALL_CHARS, RESULT_CHARS, MESSAGE_CHARS = 500, 700, 6000
# The least characters of a shortened entry (our own lines included), quotation and message.
LEAST, LEAST_QUOTED, LEAST_WORDS = 280, 100, 600
CALL_SHARE = 0.4
# The limit of an entry that is not shortened: its quotations have limits of their own.
FULL = 1_000_000
CHANGING = frozenset({"write", "edit", "shell", "plan"})
# Confirmed actions by weight: first the main effects, commits and each runner's last test run; then other effects; then
# other test runs.
MAIN_EFFECTS = frozenset({EffectKind.PR_OPENED, EffectKind.PR_MERGED})
MAIN_WEIGHT, EFFECT_WEIGHT, RUN_WEIGHT = 3, 2, 1
# The share of the room for confirmed actions, and the share of the rest for failures.
CONFIRMED_SHARE, FAILED_SHARE = 0.55, 0.6
# The weight of an unconfirmed action that changes something; 1 is added for success.
CHANGE_WEIGHT = 2
# Weights of messages: any, the last of a turn, the last of the session, the task.
ANY_MESSAGE, ENDS_TURN, ENDS_SESSION, TASK = 1, 2, 3, 8
ENDING_SHARE = 0.8
# The most event numbers of folded entries that the entry which stands for them lists.
NAMED = 40
# How much of a command and of an error is compared to find similar ones.
LIKE_CHARS = 200
UNCONFIRMED = "  no result on record: unconfirmed"
OUTCOMES = {True: ", failed", False: ", ok", None: ""}
# The length of a line for a gap, and of the line about failures, each with its newline.
GAP = len("(100000 left out)\n")
FAILURES = "({count} results failed; {shown} of them are above, alone or with others like them)"
FAILURES_ROOM = len(FAILURES) + 1
LIKE = "  and {count} like it, events {numbers}"
NUMBER = re.compile(r"0x[0-9a-f]{1,16}|\b(?=[a-f]{0,39}\d)[0-9a-f]{7,40}\b|\d+")
STATUS_LINE = re.compile(
    r"(?:Error: )?(?:(?:Exit|Return) code|Process exited with code|exit status):? ?\d*\W*$", re.IGNORECASE
)


@dataclass(slots=True, kw_only=True)
class DigestEntry:
    """One event, or a call and its result, as the judge reads them.

    `numbers` are the numbers of its events. `write(limit)` returns the text with its quotations shortened to about
    `limit` characters in all; `size` is about the full length. Entries of a higher `weight` go first within a kind.
    `position` is the entry's place in its section.

    The entry stands for `folded` similar ones. `like` has the (event number, position) of the last of these, and
    `failures` counts the failed results of this entry and all of these.
    """

    numbers: tuple[int, ...]
    write: Callable[[int], str]
    size: int
    weight: int
    position: int
    like: tuple[tuple[int, int], ...] = ()
    folded: int = 0
    failures: int = 0

    def text(self, limit: int) -> str:
        """The text in about `limit` characters, with a line about the folded entries if there are any."""
        if not self.folded:
            return self.write(limit)
        numbers = ", ".join(str(number) for number, _position in self.like)
        unnamed = self.folded - len(self.like)
        line = LIKE.format(count=self.folded, numbers=numbers) + (f" and {unnamed} more" if unnamed else "")
        return f"{self.write(limit - len(line) - 1)}\n{line}"

    def with_like(self, earlier: "DigestEntry") -> "DigestEntry":
        """A copy of this entry that also stands for `earlier`, a similar one, and for all that was folded into it."""
        last_folded = (*earlier.like, (earlier.numbers[-1], earlier.position))[-NAMED:]
        # About the length of the line that lists them: its words, and each number with ", ".
        line_size = 2 * len(LIKE) + sum(len(str(number)) + 2 for number, _position in last_folded)
        return replace(
            self,
            like=last_folded,
            folded=earlier.folded + 1,
            failures=self.failures + earlier.failures,
            size=self.size + line_size,
        )


@dataclass(slots=True)
class Pile:
    """The first and the last entries of one kind. Similar entries are folded into the latest of them."""

    head: dict[object, DigestEntry] = field(default_factory=dict)
    tail: OrderedDict[object, DigestEntry] = field(default_factory=OrderedDict)

    def add(self, entry: DigestEntry, key: object = None) -> DigestEntry:
        """Add an entry. An earlier entry with the same `key` is folded into this one. Returns the stored entry."""
        key = entry.position if key is None else key
        earlier = self.head.pop(key, None) or self.tail.pop(key, None)
        entry = entry if earlier is None else entry.with_like(earlier)
        if len(self.head) < KEEP_HEAD:
            self.head[key] = entry
        else:
            self.tail[key] = entry
            if len(self.tail) > KEEP_TAIL:
                self.tail.popitem(last=False)
        return entry

    def entries(self) -> list[DigestEntry]:
        return [*self.head.values(), *self.tail.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Entries that get room before those of the next tier: up to `share` of it, or more if later tiers need less.

    Each may be shortened to `least` characters. None means that entries of this tier are not shortened.
    """

    entries: Sequence[DigestEntry]
    share: float = 1.0
    least: int | None = None


@dataclass(slots=True)
class Digest:
    """A transcript, sorted into piles; that of confirmed actions is a pile for each weight.

    The counts include entries that the piles have dropped. `failures` counts the failed results, and `failed_at` has
    the event numbers of the last of them. `last_words` is the agent's last message so far.
    """

    requests: Pile = field(default_factory=Pile)
    messages: Pile = field(default_factory=Pile)
    confirmed: dict[int, Pile] = field(default_factory=dict)
    failed: Pile = field(default_factory=Pile)
    other: Pile = field(default_factory=Pile)
    requests_count: int = 0
    messages_count: int = 0
    actions_count: int = 0
    failures: int = 0
    failed_at: deque[int] = field(default_factory=lambda: deque(maxlen=NAMED))
    last_words: DigestEntry | None = None

    def request_tiers(self) -> list[Tier]:
        return [Tier(entries=self.requests.entries())]

    def message_tiers(self) -> list[Tier]:
        """The messages that ended the session or a turn, then all others."""
        entries = self.messages.entries()
        ending = [entry for entry in entries if entry.weight > ANY_MESSAGE]
        others = [entry for entry in entries if entry.weight == ANY_MESSAGE]
        return [Tier(entries=ending, share=ENDING_SHARE, least=LEAST_WORDS), Tier(entries=others)]

    def action_tiers(self) -> list[Tier]:
        """Confirmed actions; failed actions; other actions of the last third of the session; all others. In each of the
        last two groups, actions that change something go first.
        """
        last_third_start = self.actions_count * 2 // 3
        others = self.other.entries()
        late = [entry for entry in others if entry.position >= last_third_start]
        early = [entry for entry in others if entry.position < last_third_start]
        tiers = [
            Tier(entries=self.confirmed_entries(), share=CONFIRMED_SHARE, least=LEAST),
            Tier(entries=self.failed.entries(), share=FAILED_SHARE, least=LEAST),
        ]
        for entries in (late, early):
            changing = [entry for entry in entries if entry.weight >= CHANGE_WEIGHT]
            not_changing = [entry for entry in entries if entry.weight < CHANGE_WEIGHT]
            tiers += [Tier(entries=changing), Tier(entries=not_changing, least=LEAST)]
        return tiers

    def confirmed_entries(self) -> list[DigestEntry]:
        return [entry for pile in self.confirmed.values() for entry in pile.entries()]

    def last_actions(self, count: int) -> list[DigestEntry]:
        """The last `count` confirmed actions without test runs, or if nothing else is confirmed, of all actions."""
        entries = [entry for entry in self.confirmed_entries() if entry.weight > RUN_WEIGHT]
        entries = entries or [*self.confirmed_entries(), *self.failed.entries(), *self.other.entries()]
        return sorted(entries, key=lambda entry: entry.position)[-count:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Entries as text, with a line for every gap.

    `numbers` are the event numbers of the entries, `failures` is the number of failed results that they stand for.
    `is_complete`: nothing is left out or shortened.
    """

    text: str
    numbers: frozenset[int]
    failures: int
    is_complete: bool


def read(events: Iterable[Event], signals: Signals | None = None, *, message_chars: int = MESSAGE_CHARS) -> Digest:
    """Sort a transcript's events into a digest. A call without a result is unconfirmed.

    `signals` are those of the same events: what they confirm goes first. `message_chars` limits each message. Events
    before the last change of session are left out: the log copied them from another session.
    """
    weights = confirmed_weights(signals or Signals())
    digest = Digest()
    waiting: dict[str, ToolCall] = {}
    for event in events:
        match event:
            case Boundary(kind="session_change"):
                digest = Digest()
                waiting = {}
            case Message():
                _add_message(digest, event, message_chars)
            case ToolCall(call_id=call_id):
                # Calls wait for their result. If the id is taken, the call that had it is added as unconfirmed; if too
                # many wait, the oldest.
                is_full = call_id not in waiting and len(waiting) >= KEEP_TAIL
                stale = next(iter(waiting)) if is_full else call_id
                if stale in waiting:
                    _add_action(digest, waiting.pop(stale), None)
                waiting[call_id] = event
            case ToolResult():
                _add_action(digest, waiting.pop(event.call_id, None), event, weights.get(event.number, 0))
            case PullRequestLink() | ApiError() | Boundary(kind="compaction"):
                _add_note(digest, event)
            case _:
                pass
    for call in waiting.values():
        _add_action(digest, call, None)
    if digest.last_words is not None:
        digest.last_words.weight = ENDS_SESSION
    return digest


def confirmed_weights(signals: Signals) -> dict[int, int]:
    """The weight of each event that confirms an action, by event number. If it confirms several, the highest counts."""
    weights = {run.at: RUN_WEIGHT for run in signals.test_runs}
    weights |= {effect.at: EFFECT_WEIGHT for effect in signals.effects}
    weights |= {commit.at: MAIN_WEIGHT for commit in signals.commits}
    weights |= {effect.at: MAIN_WEIGHT for effect in signals.effects if effect.kind in MAIN_EFFECTS}
    last_run_by_runner = {run.runner: run.at for run in signals.test_runs}
    return weights | dict.fromkeys(last_run_by_runner.values(), MAIN_WEIGHT)


def fit(tiers: Sequence[Tier], budget: int, *, total: int) -> Fitted:
    """The entries that fit in `budget` characters, chosen tier by tier and joined in their order.

    Within a tier, entries are chosen by weight and then the latest first, up to the first that does not fit. `total` is
    the number of entries of the section, including those that its pile has dropped.
    """
    if budget < GAP:
        return Fitted(text="", numbers=frozenset(), failures=0, is_complete=total == 0)
    texts: dict[int, str] = {}  # by position
    entries: list[DigestEntry] = []
    remaining = budget - GAP
    is_unshortened = True
    tier_sizes = [sum(entry.size + 1 + GAP for entry in tier.entries) for tier in tiers]
    for index, tier in enumerate(tiers):
        room = max(int(remaining * tier.share), remaining - sum(tier_sizes[index + 1 :]))
        limit = _entry_limit(tier, room)
        is_unshortened = is_unshortened and limit == FULL
        for entry in sorted(tier.entries, key=lambda entry: (entry.weight, entry.position), reverse=True):
            text = entry.text(limit)
            cost = len(text) + 1 + GAP
            if cost > room:
                break
            room -= cost
            remaining -= cost
            texts[entry.position] = text
            entries.append(entry)
    folded = {position for entry in entries for _number, position in entry.like} - texts.keys()
    return Fitted(
        text="\n".join(_with_gaps(texts, folded, total)),
        numbers=frozenset(number for entry in entries for number in entry.numbers),
        failures=sum(entry.failures for entry in entries),
        is_complete=is_unshortened and len(texts) + len(folded) == total,
    )


def _with_gaps(texts: Mapping[int, str], folded: Collection[int], total: int) -> Iterator[str]:
    """The texts in their order, with a line for each gap between them.

    `texts` is by position, and `folded` has positions; positions go from 0 to `total`. A folded entry is no gap,
    because another entry stands for it.
    """
    skipped = 0
    for position in range(total):
        if position in texts:
            if skipped:
                yield f"({skipped} left out)"
            skipped = 0
            yield texts[position]
        elif position not in folded:
            skipped += 1
    if skipped:
        yield f"({skipped} left out)"


def _entry_limit(tier: Tier, room: int) -> int:
    """The length in characters to which the entries of a tier are cut so that all fit in `room`, at least `tier.least`.

    FULL if all fit uncut, or if entries of this tier are never cut.
    """
    sizes = [entry.size for entry in tier.entries]
    room -= len(sizes) * (1 + GAP)
    if tier.least is None or sum(sizes) <= room:
        return FULL
    low, high = tier.least, max(sizes)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) for size in sizes) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _add_message(digest: Digest, event: Message, message_chars: int) -> None:
    """Add a message of the user or the agent; scaffold text, thinking and blank messages are left out."""
    if event.role is Role.SCAFFOLD or event.thinking or not event.text.strip():
        return
    is_request = event.role is Role.USER
    count = digest.requests_count if is_request else digest.messages_count
    head = f"[{event.number}] {event.role}{_subagent_mark(event)}"
    text = _truncated(event.text, message_chars)

    def write(limit: int) -> str:
        return f"{head}\n{quoted(text, max(min(message_chars, limit - len(head) - 1), LEAST_QUOTED))}"

    entry = DigestEntry(
        numbers=(event.number,),
        write=write,
        size=len(head) + 1 + _quoted_size(text, message_chars),
        # The first request is the task, and the last message is the agent's claim: they weigh more.
        weight=TASK if is_request and count == 0 else ANY_MESSAGE,
        position=count,
    )
    if is_request:
        digest.requests.add(entry)
        digest.requests_count += 1
    else:
        digest.messages.add(entry)
        digest.messages_count += 1
    if is_request and not event.sidechain and digest.last_words is not None:
        digest.last_words.weight = ENDS_TURN
    elif not is_request and not event.sidechain:
        digest.last_words = entry


def _add_note(digest: Digest, event: PullRequestLink | ApiError | Boundary) -> None:
    """Add an event that the harness itself recorded. Repeated errors are folded."""
    pile = digest.other
    key: object = None
    match event:
        case PullRequestLink():
            what = f"the harness recorded a pull request: {inline(event.url)}"
            pile = digest.confirmed.setdefault(EFFECT_WEIGHT, Pile())
            key = event.url
        case ApiError():
            what = f"the harness's model call failed ({inline(event.reason, 40)}): {inline(event.text)}"
            pile = digest.failed
            key = ("", event.reason, *_error_lines(event.text))
        case Boundary():
            what = "the harness compacted its context here"
    text = f"[{event.number}] {what}"

    def write(_limit: int) -> str:
        return text

    entry = DigestEntry(
        numbers=(event.number,),
        write=write,
        size=len(text),
        weight=EFFECT_WEIGHT,
        position=digest.actions_count,
    )
    digest.actions_count += 1
    pile.add(entry, key)


def _add_action(digest: Digest, call: ToolCall | None, result: ToolResult | None, confirmed_weight: int = 0) -> None:
    """Add a call with its result, either of which may be missing. `confirmed_weight` is 0 if it is not confirmed."""
    call_text = result_text = head = ""
    outcome = UNCONFIRMED
    has_failed = False
    if call is not None:
        call_text = _truncated(_content(call), CALL_CHARS)
        head = f"[{call.number}] {call.kind} {inline(call.name, 60)}{_subagent_mark(call)}"
    if result is not None:
        result_text = _truncated(result.text, RESULT_CHARS)
        has_failed = call_worked(result, call) is False
        code = "" if result.exit_code is None else f", exit {result.exit_code}"
        outcome = f"[{result.number}] result{OUTCOMES[result.failed]}{code}"
    sizes = [0 if call is None else _quoted_size(call_text, CALL_CHARS), _quoted_size(result_text, RESULT_CHARS)]
    # Confirmed changes first, then what failed to change anything, then reading.
    changes = call is not None and call.kind in CHANGING
    succeeded = result is not None and not result.failed
    weight = (CHANGE_WEIGHT if changes else 0) + (1 if succeeded else 0)
    entry = DigestEntry(
        numbers=tuple(event.number for event in (call, result) if event is not None),
        write=partial(_write_action, [head, outcome], call_text, None if result is None else result_text, sizes),
        size=len(head) + len(outcome) + sum(sizes) + 4,
        weight=confirmed_weight or weight,
        position=digest.actions_count,
        failures=int(has_failed),
    )
    digest.actions_count += 1
    if has_failed and result is not None:
        digest.failures += 1
        digest.failed_at.append(result.number)
    if confirmed_weight:
        digest.confirmed.setdefault(confirmed_weight, Pile()).add(entry)
    elif has_failed and result is not None:
        # Similar failures have the same tool, beginning of the command and error, except for numbers.
        tool, command = ("", "") if call is None else (call.name, call.command)
        digest.failed.add(entry, (tool, NUMBER.sub("0", command[:LIKE_CHARS]), *_error_lines(result.text)))
    else:
        key = None
        if call is not None and result is not None:  # folded only if exactly the same
            body = f"{call.name}\0{call.command}\0{call.path}\0{_content(call)}\0{result.failed}\0{result.text}"
            key = hashlib.blake2b(body.encode(errors="surrogatepass"), digest_size=16).digest()
        digest.other.add(entry, key)


def _write_action(
    heads: Sequence[str], call_text: str, result_text: str | None, sizes: Sequence[int], limit: int
) -> str:
    """The text of a call and its result in about `limit` characters. A missing result has the text None.

    `heads` are the lines before the call's text and the result's text, and `sizes` are the quoted lengths of these two
    texts. If they are shortened, each gets the room that the other does not need.
    """
    call_head, result_head = heads
    call_size, result_size = sizes
    room = limit - sum(map(len, heads)) - 4
    room_for_call = max(int(room * CALL_SHARE), room - result_size)
    room_for_result = max(room - min(call_size, room_for_call), LEAST_QUOTED)
    parts = []
    if call_head:
        parts += [call_head, quoted(call_text, max(min(CALL_CHARS, room_for_call), LEAST_QUOTED))]
    parts.append(result_head)
    if result_text is not None:
        parts.append(quoted(result_text, min(RESULT_CHARS, room_for_result)))
    return "\n".join(parts)


def _error_lines(text: str) -> tuple[str, str]:
    """The first and the last line of an error, without its exit status and numbers, to compare errors."""
    lines = [line.strip() for line in ends(text, 2000).splitlines()]
    lines = [line for line in lines if line and not STATUS_LINE.match(line)] or [""]
    return NUMBER.sub("0", lines[0][:LIKE_CHARS]), NUMBER.sub("0", lines[-1][-LIKE_CHARS:])


def _quoted_size(text: str, limit: int) -> int:
    """About the length of a quoted text."""
    return min(limit, len(text) + len(QUOTE) * (text.count("\n") + 1))


def _truncated(text: str, limit: int) -> str:
    """The two ends of a text: all that `quoted` needs for `limit` characters. Saves memory."""
    return ends(text, limit + MARGIN)


def _content(call: ToolCall) -> str:
    """The command of a call, or its path and arguments."""
    if call.command:
        return call.command
    arguments = "\n".join(f"{key}: {_truncated(str(value), CALL_CHARS)}" for key, value in call.arguments.items())
    return f"{call.path}\n{arguments}"


def _subagent_mark(event: Event) -> str:
    return " (subagent)" if event.sidechain else ""
