"""The line that shows an event. Its untrusted text is truncated and redacted here, and escaped by the template."""

import datetime as dt
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from grading.formats.events import (
    ApiError,
    Background,
    Boundary,
    Event,
    Message,
    PullRequestLink,
    Role,
    ToolCall,
    ToolResult,
    Usage,
)
from grading.redaction import MARGIN, MARK, redact_slice

# Characters of a text that are shown at once, less of the harness's own; and those that are stored, behind a fold.
SHOWN, SHOWN_OF_HARNESS, FOLDED = 1_200, 240, 20_000
# At least as long as any redaction mark (`redaction.MARK`).
MAX_MARK_LENGTH = 60
WHO = {Role.ASSISTANT: "Agent", Role.USER: "Task", Role.SCAFFOLD: "harness"}
# Calls whose results are awaited. In a log with more open calls, some results don't show their call's number.
MAX_OPEN_CALLS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptLine:
    """One event. `head` is code (a command, a path or an address). `stored_text` is the event's text, from whose end
    `cut` characters were cut.

    `call_number`: for a result, the number of the event of its call; None if that is the event before or isn't known.
    """

    number: int
    at: dt.datetime | None = None
    kind: str
    css: str = ""
    head: str = ""
    stored_text: str = ""
    cut: int = 0
    failed: bool = False
    call_number: int | None = None

    @property
    def text(self) -> str:
        """The part of the text that is shown at once."""
        return self.stored_text[: self._shown_length]

    @property
    def rest(self) -> str:
        """The part of the text that is behind a fold."""
        return self.stored_text[self._shown_length :]

    @property
    def _shown_length(self) -> int:
        """The number of characters shown at once. The text isn't split within a redaction mark."""
        limit = SHOWN_OF_HARNESS if self.css == "scaffold" else SHOWN
        around = max(limit - MAX_MARK_LENGTH, 0), limit + MAX_MARK_LENGTH
        for mark in MARK.finditer(self.stored_text, *around):
            if mark.end() > limit:
                return min(limit, mark.start())
        return limit


def lines(events: Iterable[Event]) -> Iterator[TranscriptLine]:
    """The redacted line of each event in order. Usage and background events have no lines. Takes constant memory."""
    for line in raw_lines(events):
        head, text = (redact_slice(each, 0, FOLDED) for each in (line.head, line.stored_text))
        yield replace(line, head=head, stored_text=text)


def raw_lines(events: Iterable[Event]) -> Iterator[TranscriptLine]:
    """The lines before redaction, with up to FOLDED + MARGIN characters of each text, of which `lines` shows FOLDED.
    `cut` counts the characters beyond FOLDED.
    """
    open_calls: OrderedDict[str, int] = OrderedDict()  # the event numbers of calls without a result, by the calls' ids
    previous_number = 0
    for event in events:
        if isinstance(event, Usage | Background):
            continue
        call_number = None
        if isinstance(event, ToolCall) and event.call_id:
            open_calls[event.call_id] = event.number
            if len(open_calls) > MAX_OPEN_CALLS:
                open_calls.popitem(last=False)
        elif isinstance(event, ToolResult):
            call_number = open_calls.pop(event.call_id, None)
        kind, css, head, text, failed = _content(event)
        yield TranscriptLine(
            number=event.number,
            at=event.at,
            kind=kind,
            css=css,
            head=head,
            stored_text=text[: FOLDED + MARGIN],
            cut=max(len(text) - FOLDED, 0),
            failed=failed,
            # A result directly below its call needs no reference to it.
            call_number=None if call_number == previous_number else call_number,
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
