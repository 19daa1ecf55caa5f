"""Traits: what a log shows of a session's work, for the rules that choose its category."""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from grading.formats.events import Boundary, Event, Message, Role, ToolCall, TranscriptHeader
from grading.signals.model import Signals

MAX_TASK = 2_000
MAX_TOOLS = MAX_REPOSITORIES = 100
MAX_PATHS = 300
MAX_TEXT = 300
# The owner and the name in the URL of a repository, or of a page in it.
REMOTE = re.compile(r"^(?:[a-z+]{2,10}://[^/]{1,300}/|[^/:]{1,300}:)([\w.-]{1,100}/[\w.-]{1,100}?)(?:\.git)?(?:/|$)")


class Traits(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What rules may test. Fields are empty if the log does not show them, and then left out of its JSON.

    `repositories` are owner/name of the remote and of the pull requests that the session opened, and the folder's name.
    `paths` are the files that it changed, relative to `folder` if below it. `task` is the first user message, cut.
    `tools` are the harness's names of the tools used, and our kinds of them.
    """

    harness: str = ""
    repositories: tuple[str, ...] = ()
    folder: str = ""
    branch: str = ""
    task: str = ""
    paths: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class TraitsReader:
    """Passes the events of a log through while noting the task and the tools."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = events
        self._task = ""
        self._tools: dict[str, None] = {}

    def events(self) -> Iterator[Event]:
        """The events, unchanged. Another session's task and tools are dropped when a log changes to a new session."""
        for event in self._events:
            if isinstance(event, Boundary) and event.kind == "session_change":
                self._task, self._tools = "", {}
            elif isinstance(event, ToolCall) and len(self._tools) < MAX_TOOLS:
                self._tools.setdefault(event.name[:MAX_TEXT])
                self._tools.setdefault(event.kind)
            elif isinstance(event, Message) and not self._task and event.role is Role.USER and not event.sidechain:
                self._task = " ".join(event.text[:MAX_TASK].split())
            yield event

    def traits(self, header: TranscriptHeader, signals: Signals) -> Traits:
        """The traits of the log. Call it after the events were read to the end; `signals` were extracted from them."""
        folder = (header.cwd or "").rstrip("/\\")[:MAX_TEXT]
        changed = [change.path for change in signals.files]
        committed = [path for commit in signals.commits for path in commit.paths]
        prefix = f"{folder}/" if folder else ""
        paths = [path.removeprefix(prefix)[:MAX_TEXT] for path in changed + committed]
        remotes = [header.repository or "", *signals.pull_requests]
        names = [parse_repository(remote) for remote in remotes] + [re.split(r"[/\\]", folder)[-1]]
        return Traits(
            harness=header.harness,
            repositories=tuple(dict.fromkeys(filter(None, names)))[:MAX_REPOSITORIES],
            folder=folder,
            branch=(header.branch or "")[:MAX_TEXT],
            task=self._task,
            paths=tuple(dict.fromkeys(paths))[:MAX_PATHS],
            tools=tuple(name for name in self._tools if name),
        )


def parse_repository(url: str) -> str:
    """The owner/name in the URL of a repository or of a page in it; "" for anything else.

    >>> parse_repository("https://key@forge.example/ada/engine.git"), parse_repository("git@forge.example:ada/engine")
    ('ada/engine', 'ada/engine')
    >>> parse_repository("https://forge.example/ada/engine/pull/12"), parse_repository("engine")
    ('ada/engine', '')
    """
    match = REMOTE.match(url[:1_000])
    return match[1] if match else ""
