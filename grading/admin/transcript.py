"""A transcript, a page of events at a time. It is hostile text: bounded here, escaped by the template."""

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from grading import evidence
from grading.core import formats
from grading.core.events import ApiError, Boundary, Event, Message, PullRequestLink, Role, ToolCall, ToolResult, Usage
from grading.core.formats import EmptyTranscript, UnknownFormat
from grading.models import Session
from grading.models.evidence import EvidenceKind

PAGE = 100
SHOWN, FOLDED = 1_200, 20_000
ASIDE = 240
WHO = {Role.ASSISTANT: "Agent", Role.USER: "Task", Role.SCAFFOLD: "harness"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One event: `text` at once (little of the harness's own), `rest` behind a fold, `cut` characters left out."""

    number: int
    at: dt.datetime | None
    kind: str
    css: str = ""
    head: str = ""
    text: str = ""
    rest: str = ""
    cut: int = 0
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Events `first` to `first + PAGE - 1`; `problem` says in words why there are none."""

    lines: tuple[Line, ...] = ()
    first: int = 1
    previous: int | None = None
    following: int | None = None
    problem: str = ""
    format: str = ""


def page(session: Session, event: str) -> Page:
    """The page that holds event number `event`. Reads the file up to there, in constant memory."""
    number = int(event) if event.isdecimal() and len(event) < 10 else 1  # noqa: PLR2004 - no absurd numbers
    first = (max(number, 1) - 1) // PAGE * PAGE + 1
    row = evidence.usable(session, EvidenceKind.TRANSCRIPT)
    if row is None:
        return Page(problem="No transcript that could be used was received.")
    try:
        with evidence.open(row) as file:
            reader = formats.read(file, row.filename)
            found = list(islice(_from(iter(reader), first), PAGE + 1))
    except (UnknownFormat, EmptyTranscript, OSError) as error:
        return Page(problem=f"The transcript could not be read: {error}")
    lines = tuple(_line(item) for item in found if item.number < first + PAGE and not isinstance(item, Usage))
    return Page(
        lines=lines,
        first=first,
        previous=first - PAGE if first > 1 else None,
        following=first + PAGE if found and found[-1].number >= first + PAGE else None,
        problem="" if found else "No event has such a number; the transcript ends before.",
        format=reader.format,
    )


def _from(events: Iterator[Event], first: int) -> Iterator[Event]:
    return (event for event in events if event.number >= first)


def _line(event: Event) -> Line:
    kind, css, head, text, failed = _content(event)
    shown = ASIDE if css == "scaffold" else SHOWN
    return Line(
        number=event.number,
        at=event.at,
        kind=kind,
        css=css,
        head=head,
        text=text[:shown],
        rest=text[shown:FOLDED],
        cut=max(len(text) - FOLDED, 0),
        failed=failed,
    )


def _content(event: Event) -> tuple[str, str, str, str, bool]:
    """Kind, class, head (code), text, and whether it says that something failed."""
    match event:
        case Message():
            shown = _message(event)
        case ToolCall():
            shown = _call(event)
        case ToolResult():
            shown = _result(event)
        case ApiError(reason=reason, text=text):
            shown = (f"API error: {reason}", "", "", text, True)
        case PullRequestLink(url=url):
            shown = ("pull request", "", url, "", False)
        case Boundary(kind=kind, detail=detail):
            shown = (kind.replace("_", " "), "scaffold", "", detail, False)
        case _:
            shown = (type(event).__name__, "", "", "", False)
    return shown


def _message(event: Message) -> tuple[str, str, str, str, bool]:
    kind = "thinking" if event.thinking else WHO[event.role]
    aside = event.thinking or event.role is Role.SCAFFOLD
    return kind, "scaffold" if aside else "", "", event.text, False


def _call(event: ToolCall) -> tuple[str, str, str, str, bool]:
    known = event.command or event.path
    text = "" if known else json.dumps(dict(event.arguments), default=str)
    return event.name, "", known[:FOLDED], text, False


def _result(event: ToolResult) -> tuple[str, str, str, str, bool]:
    failed = bool(event.failed) or bool(event.exit_code)
    ended = f"exit {event.exit_code}" if event.exit_code else "failed"
    return ended if failed else "result", "result", "", event.text, failed
