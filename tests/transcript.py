"""A small builder of events: what a session's transcript says, by hand."""

import datetime as dt
from collections.abc import Iterable

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
from grading.signals import Signals, extract

START = dt.datetime(2026, 4, 1, 12, tzinfo=dt.UTC)


def sum_tokens(events: Iterable[Event]) -> tuple[int | None, ...]:
    """The tokens of the session's own responses: input, output, read from the cache and written to it."""
    own = [event for event in events if isinstance(event, Usage) and not event.copied]
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    counts = [[count for event in own if (count := getattr(event, name)) is not None] for name in names]
    return tuple(sum(each) if each else None for each in counts)


class Transcript:
    """Events in order, a minute apart. Each method adds and returns the transcript."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, record: type, /, **fields) -> "Transcript":
        number = len(self.events) + 1
        self.events.append(record(number=number, at=START + dt.timedelta(minutes=number), **fields))
        return self

    def call(self, call_id, name="Bash", kind="shell", **fields):
        return self.add(ToolCall, call_id=call_id, name=name, kind=kind, **fields)

    def result(self, call_id, text="", *, failed=False, exit_code=None):
        return self.add(ToolResult, call_id=call_id, text=text, failed=failed, exit_code=exit_code)

    def run(self, command, text="", *, failed=False, exit_code=None):
        """A shell command and its result."""
        call_id = f"call{len(self.events)}"
        return self.call(call_id, command=command).result(call_id, text, failed=failed, exit_code=exit_code)

    def tool(self, name, kind, text="", *, failed=False, path="", **arguments):
        call_id = f"call{len(self.events)}"
        return self.call(call_id, name, kind, path=path, arguments=arguments).result(call_id, text, failed=failed)

    def write(self, path, content, text="File created successfully", *, failed=False):
        return self.tool("Write", "write", text, failed=failed, path=path, content=content)

    def edit(self, path, old, new, *, failed=False):
        return self.tool(
            "Edit", "edit", "The file has been updated", failed=failed, path=path, old_string=old, new_string=new
        )

    def says(self, text, role=Role.ASSISTANT, **fields):
        return self.add(Message, role=role, text=text, **fields)

    def used(self, model, **tokens):
        return self.add(Usage, model=model, **tokens)

    def api_error(self, reason="quota"):
        return self.add(ApiError, reason=reason, text="You've hit your limit")

    def pr_link(self, url):
        return self.add(PullRequestLink, url=url)

    def compaction(self):
        return self.add(Boundary, kind="compaction")

    @property
    def signals(self) -> Signals:
        return extract(self.events)
