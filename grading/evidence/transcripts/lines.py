"""The line that shows an event. Its untrusted text is truncated and redacted here, and escaped by the template."""

import datetime as dt
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from grading.formats.events import (
    ApiError,
    Boundary,
    Event,
    Message,
    PullRequestLink,
    Role,
    ToolCall,
    ToolResult,
    Usage,
)
from grading.redaction import MARGIN, MARK, redact

# Characters of a text that are shown at once, less of the harness's own; and those that are stored, behind a fold.
SHOWN, SHOWN_OF_HARNESS, FOLDED = 1_200, 240, 20_000
# At least as long as any redaction mark (`redaction.MARK`).
MAX_MARK_LENGTH = 60
WHO = {Role.ASSISTANT: "Agent", Role.USER: "Task", Role.SCAFFOLD: "harness"}
# Calls whose results are awaited. In a log with more open calls, some results don't show their call's number.
OPEN_CALLS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptLine:
    """One event. `head` is code (a command, a path or an address), `told` the stored text, from whose end `cut`
    characters were cut.

    `of`: for a result, the number of the event of its call, or None if that is the event before or isn't known.
    """

    number: int
    at: dt.datetime | None = None
    kind: str
    css: str = ""
    head: str = ""
    told: str = ""
    cut: int = 0
    failed: bool = False
    of: int | None = None

    @property
    def text(self) -> str:
        """The part of the text that is shown at once."""
        return self.told[: self._shown_length]

    @property
    def rest(self) -> str:
        """The part of the text that is behind a fold."""
        return self.told[self._shown_length :]

    @property
    def _shown_length(self) -> int:
        """The number of characters shown at once. The text isn't split within a redaction mark."""
        limit = SHOWN_OF_HARNESS if self.css == "scaffold" else SHOWN
        around = max(limit - MAX_MARK_LENGTH, 0), limit + MAX_MARK_LENGTH
        for mark in MARK.finditer(self.told, *around):
            if mark.end() > limit:
                return min(limit, mark.start())
        return limit


def lines(events: Iterable[Event]) -> Iterator[TranscriptLine]:
    """The redacted line of each event in order. Usage events have numbers but no lines. Takes constant memory."""
    for line in raw_lines(events):
        head, told, cut = redact(line.head)[:FOLDED], redact(line.told), line.cut
        if cut:  # a secret across the cut was recognised in the MARGIN behind it
            told = told[:FOLDED]
        yield replace(line, head=head, told=told, cut=cut)


def raw_lines(events: Iterable[Event]) -> Iterator[TranscriptLine]:
    """The lines before redaction. Texts are cut to FOLDED + MARGIN characters: `lines` redacts them, then cuts them to
    FOLDED. `cut` counts the characters beyond FOLDED.
    """
    calls: OrderedDict[str, int] = OrderedDict()  # the event number of each open call, by its id
    previous_number = 0
    for event in events:
        if isinstance(event, Usage):
            continue
        call_number = calls.pop(event.call_id, None) if isinstance(event, ToolResult) else None
        if isinstance(event, ToolCall) and event.call_id:
            calls[event.call_id] = event.number
            if len(calls) > OPEN_CALLS:
                calls.popitem(last=False)
        kind, css, head, text, failed = _content(event)
        cut = max(len(text) - FOLDED, 0)
        yield TranscriptLine(
            number=event.number,
            at=event.at,
            kind=kind,
            css=css,
            head=head,
            told=text[: FOLDED + MARGIN],
            cut=cut,
            failed=failed,
            of=None if call_number == previous_number else call_number,  # the call that a result answers
        )
        previous_number = event.number


def _content(event: Event) -> tuple[str, str, str, str, bool]:
    """The kind, CSS class, head (code) and text of an event's line, and whether the event is a failure."""
    match event:
        case Message():
            aside = event.thinking or event.role is Role.SCAFFOLD
            who = "thinking" if event.thinking else WHO[event.role]
            return who, "scaffold" if aside else "", "", event.text, False
        case ToolCall():
            command = event.command or event.path
            arguments = "" if command else json.dumps(dict(event.arguments), default=str, ensure_ascii=False)
            return event.name, "", command[: FOLDED + MARGIN], arguments, False
        case ToolResult():
            failed = bool(event.failed) or bool(event.exit_code)
            ended = f"exit {event.exit_code}" if event.exit_code else "failed"
            return ended if failed else "result", "result", "", event.text, failed
        case ApiError(reason=reason, text=text):
            return f"API error: {reason}", "", "", text, True
        case PullRequestLink(url=url):
            return "pull request", "", url, "", False
        case Boundary(kind=kind, detail=detail):
            return kind.replace("_", " "), "scaffold", "", detail, False
        case _:
            return type(event).__name__, "", "", "", False
