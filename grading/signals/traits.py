"""Traits: what a log shows of a session's work, by which rules tell its category. Nothing that was said besides."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, Self

from grading.formats.events import Boundary, Event, Message, Role, ToolCall, TranscriptHeader
from grading.signals.model import Signals

MAX_TASK = 2_000
MAX_TOOLS = 100
MAX_PATHS = 300
MAX_TEXT = 300
# The owner and the name in the address of a repository, or of something in it, whatever stands before them.
REMOTE = re.compile(r"^(?:[a-z+]{2,10}://[^/]{1,300}/|[^/:]{1,300}:)([\w.-]{1,100}/[\w.-]{1,100}?)(?:\.git)?(?:/|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What rules may ask about. Empty where the log does not show it.

    `repositories` are names: owner/name of a remote or of a pull request that it opened, and the folder's own name.
    `paths` are files that it changed, below its `folder` where they are. `task` is what a person first asked, cut.
    `tools` are the harness's own names and our kinds of them.
    """

    harness: str = ""
    repositories: tuple[str, ...] = ()
    folder: str = ""
    branch: str = ""
    task: str = ""
    paths: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As JSON, without what is empty; `from_dict` is its inverse."""
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items() if value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        said: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        return cls(**said)


class Watched:
    """Events of a log passed through as they come, with a note of the task and the tools."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = events
        self._task, self._tools = "", OrderedDict[str, None]()

    def events(self) -> Iterator[Event]:
        for event in self._events:
            if isinstance(event, Boundary) and event.kind == "session_change":
                self._task, self._tools = "", OrderedDict[str, None]()
            elif isinstance(event, ToolCall) and len(self._tools) < MAX_TOOLS:
                self._tools.setdefault(event.name[:MAX_TEXT])
                self._tools.setdefault(event.kind)
            elif isinstance(event, Message) and not self._task and event.role is Role.USER and not event.sidechain:
                self._task = " ".join(event.text[:MAX_TASK].split())
            yield event

    def traits(self, header: TranscriptHeader, found: Signals) -> Traits:
        """What the log shows, once it was read to its end and these signals were found in it."""
        folder = (header.cwd or "").rstrip("/\\")[:MAX_TEXT]
        changed = [change.path for change in found.files]
        committed = [path for commit in found.commits for path in commit.paths]
        remotes = [header.repository or "", *found.pull_requests]
        names = [repository(remote) for remote in remotes] + [re.split(r"[/\\]", folder)[-1]]
        return Traits(
            harness=header.harness,
            repositories=tuple(islice(OrderedDict.fromkeys(filter(None, names)), MAX_TOOLS)),
            folder=folder,
            branch=(header.branch or "")[:MAX_TEXT],
            task=self._task,
            paths=tuple(islice(OrderedDict.fromkeys(_below(path, folder) for path in changed + committed), MAX_PATHS)),
            tools=tuple(name for name in self._tools if name),
        )


def repository(address: str) -> str:
    """Owner and name of the repository at that address, or of what is in it; "" for anything else.

    >>> repository("https://key@forge.example/ada/engine.git"), repository("git@forge.example:ada/engine.git")
    ('ada/engine', 'ada/engine')
    >>> repository("https://forge.example/ada/engine/pull/12"), repository("engine")
    ('ada/engine', '')
    """
    found = REMOTE.match(address[:1_000])
    return found[1] if found else ""


def _below(path: str, folder: str) -> str:
    return path.removeprefix(f"{folder}/")[:MAX_TEXT] if folder else path[:MAX_TEXT]
