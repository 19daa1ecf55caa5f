"""A session whose outcome is known, and the records of one as the events that a parser would have given."""

import datetime as dt
import hashlib
from dataclasses import dataclass
from itertools import count
from typing import Any

from grading.formats.events import Clarity, Event, Message, Role, ToolCall, ToolResult

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
TRAIN, HELD_OUT = "train", "held out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One session. `good` is its label; `answered` is False where the record holds no word and no call of the model.

    Such a session says nothing of the agent: its label is that of the infrastructure.
    """

    set: str
    task: str
    name: str
    good: bool
    answered: bool
    events: tuple[Event, ...]

    @property
    def half(self) -> str:
        return half(self.set, self.task)


def half(set_: str, task: str) -> str:
    """The half of a task: by the lowest bit of a hash, so that all sessions of a task are in one half."""
    digest = hashlib.sha256(f"{set_}:{task}".encode()).digest()
    return HELD_OUT if digest[-1] & 1 else TRAIN


class Log:
    """Events in order, a second apart."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._ids = count(1)

    def says(self, role: Role, text: str) -> None:
        self.events.append(Message(**self._next(), role=role, text=text))

    def calls(
        self,
        name: str,
        kind: str,
        result: str | None,
        *,
        failed: bool | None = None,
        exit_code: int | None = None,
        **fields: Any,
    ) -> None:
        """A call, with its result unless that is None."""
        call_id = f"call-{next(self._ids)}"
        self.events.append(ToolCall(**self._next(), call_id=call_id, name=name, kind=kind, **fields))
        if result is not None:
            self.events.append(
                ToolResult(**self._next(), call_id=call_id, text=result, failed=failed, exit_code=exit_code)
            )

    def opaque(self, name: str, arguments: dict[str, Any], result: str | None, *, failed: bool | None) -> None:
        """A call of a tool whose effect a log cannot tell."""
        self.calls(name, "other", result, failed=failed, arguments=arguments, clarity=Clarity.OPAQUE)

    def _next(self) -> dict[str, Any]:
        number = len(self.events) + 1
        return {"number": number, "at": START + dt.timedelta(seconds=number)}
