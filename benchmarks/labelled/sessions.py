"""Sessions with a known outcome, and their records as the events that a parser would have given."""

import datetime as dt
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from grading.formats.events import Event, Message, Role, ToolCall, ToolResult

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
TRAIN, HELD_OUT = "train", "held out"
INVENTED_SESSIONS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSession:
    """One session. `good` is its label. `answered` is False if the record has no message and no call of the model: then
    the label says nothing about the agent, but about the infrastructure.
    """

    set: str
    task: str
    name: str
    good: bool
    answered: bool
    events: tuple[Event, ...]

    @property
    def half(self) -> str:
        return half_of_task(self.set, self.task)


def half_of_task(set_: str, task: str) -> str:
    """The half of a task, by the lowest bit of a hash. All sessions of a task are in one half."""
    digest = hashlib.sha256(f"{set_}:{task}".encode()).digest()
    return HELD_OUT if digest[-1] & 1 else TRAIN


class EventLog:
    """Builds events in order, a second apart."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._call_numbers = count(1)

    def add_message(self, role: Role, text: str) -> None:
        self.events.append(Message(**self._next_event(), role=role, text=text))

    def add_call(
        self,
        name: str,
        kind: str,
        result: str | None,
        *,
        failed: bool | None = None,
        exit_code: int | None = None,
        **fields: Any,
    ) -> None:
        """Add a call, and its result unless that is None."""
        call_id = f"call-{next(self._call_numbers)}"
        self.events.append(ToolCall(**self._next_event(), call_id=call_id, name=name, kind=kind, **fields))
        if result is not None:
            event = self._next_event()
            self.events.append(ToolResult(**event, call_id=call_id, text=result, failed=failed, exit_code=exit_code))

    def _next_event(self) -> dict[str, Any]:
        number = len(self.events) + 1
        return {"number": number, "at": START + dt.timedelta(seconds=number)}


def invented_sessions() -> Iterator[LabelledSession]:
    """A few invented sessions, so that the benchmark runs without its data. Most good ones commit, most bad ones fail,
    and every sixth got no answer.
    """
    for number in range(INVENTED_SESSIONS):
        good, answered = number % 2 == 0, number % 6 != 5  # noqa: PLR2004 - every sixth
        log = EventLog()
        log.add_message(Role.USER, f"Do task {number}")
        if answered:
            log.add_call("bash", "shell", "a.py", exit_code=0, command="ls")
            if good is (number % 7 != 0):
                commit = f"[main {number:07x}] Done\n 1 file changed"
                log.add_call("bash", "shell", commit, exit_code=0, command="git commit -m Done")
            else:
                log.add_call("bash", "shell", "error: no", exit_code=1, command="python a.py")
            log.add_message(Role.ASSISTANT, "Done.")
        yield LabelledSession(
            set=f"invented {number % 3}",
            task=f"task {number // 3}",
            name=str(number),
            good=good and answered,
            answered=answered,
            events=tuple(log.events),
        )
