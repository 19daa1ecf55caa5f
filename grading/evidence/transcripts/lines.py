"""What a reader sees of an event: one line, its hostile text bounded here and escaped by the template."""

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

SHOWN, FOLDED = 1_200, 20_000
ASIDE = 240
WHO = {Role.ASSISTANT: "Agent", Role.USER: "Task", Role.SCAFFOLD: "harness"}
# Calls whose results are still to come; a log with more of them open only loses "of 84".
OPEN_CALLS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptLine:
    """One event. `head` is code, `told` the text as far as it is kept: `cut` characters more are not.

    `of` is the number of a result's call where that is not the line before.
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
        """What is shown at once: little of the harness's own."""
        return self.told[: self._shown]

    @property
    def rest(self) -> str:
        """What is behind a fold."""
        return self.told[self._shown :]

    @property
    def _shown(self) -> int:
        """Not in the middle of a mark for what is hidden."""
        limit = ASIDE if self.css == "scaffold" else SHOWN
        mark = next(
            (mark for mark in MARK.finditer(self.told, max(limit - 60, 0), limit + 60) if mark.end() > limit), None
        )
        return limit if mark is None else min(limit, mark.start())


def lines(events: Iterable[Event]) -> Iterator[TranscriptLine]:
    """The line of each event in turn, secrets hidden. Usage has a number and no line. Holds a bounded number of open
    calls.
    """
    for line in raw_lines(events):
        head, told, cut = redact(line.head)[:FOLDED], redact(line.told), line.cut
        if cut:  # so much more was looked at that no secret is cut where it could no longer be told
            told = told[:FOLDED]
        yield replace(line, head=head, told=told, cut=cut)


def raw_lines(events: Iterable[Event]) -> Iterator[TranscriptLine]:
    """The same with what is to be hidden; of a text that is cut MARGIN characters more."""
    calls: OrderedDict[str, int] = OrderedDict()
    before = 0
    for event in events:
        if isinstance(event, Usage):
            continue
        called = calls.pop(event.call_id, None) if isinstance(event, ToolResult) else None
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
            of=called if called != before else None,
        )
        before = event.number


def _content(event: Event) -> tuple[str, str, str, str, bool]:
    """Kind, class, head (code), text, and whether it says that something failed."""
    match event:
        case Message():
            aside = event.thinking or event.role is Role.SCAFFOLD
            who = "thinking" if event.thinking else WHO[event.role]
            shown = (who, "scaffold" if aside else "", "", event.text, False)
        case ToolCall():
            known = event.command or event.path
            arguments = "" if known else json.dumps(dict(event.arguments), default=str, ensure_ascii=False)
            shown = (event.name, "", known[: FOLDED + MARGIN], arguments, False)
        case ToolResult():
            failed = bool(event.failed) or bool(event.exit_code)
            ended = f"exit {event.exit_code}" if event.exit_code else "failed"
            shown = (ended if failed else "result", "result", "", event.text, failed)
        case ApiError(reason=reason, text=text):
            shown = (f"API error: {reason}", "", "", text, True)
        case PullRequestLink(url=url):
            shown = ("pull request", "", url, "", False)
        case Boundary(kind=kind, detail=detail):
            shown = (kind.replace("_", " "), "scaffold", "", detail, False)
        case _:
            shown = (type(event).__name__, "", "", "", False)
    return shown
