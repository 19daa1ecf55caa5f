"""One phase while it is played: its scripts, the sessions that an agent sends, and the notices that come.

A script is a generator. It does something, then yields the seconds until it wants to go on.
"""

import datetime as dt
import heapq
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from random import Random
from typing import Any

import httpx2
from django.utils import timezone

from benchmarks import scratch
from benchmarks.drill.site import Site
from grading.models import JudgeJob

Script = Iterator[float]
# Uploaded files: file name and content by part.
Parts = dict[str, tuple[str, bytes]]
# Open jobs that keep two workers busy.
BUSY_JOBS = 12
# How long an agent goes on trying to submit one session, in seconds.
SUBMIT_SECONDS = 60


class Stream:
    """Sends the sessions of one phase, `drill-PP-NNNN`. `accepted` are those for which the site gave a receipt."""

    def __init__(self, site: str, token: str, phase: int) -> None:
        self.prefix = f"drill-{phase:02d}-"
        self.accepted: list[str] = []
        self.retried = 0
        self.server_errors: Counter[int] = Counter()  # by status
        self._latest: Parts = {}
        self._client = httpx2.Client(base_url=site, headers={"Authorization": f"Bearer {token}"}, timeout=20)

    def send(self, *, minutes_ago: float = 1, title: str = "") -> str:
        """Submit a new session that ended so many minutes ago. Returns its id.

        Raises TimeoutError if the site doesn't accept it, and ValueError if the site calls it invalid.
        """
        name = f"{self.prefix}{len(self.accepted) + 1:04d}"
        self._latest = session_parts(name, timezone.now() - dt.timedelta(minutes=minutes_ago), title or name)
        self._send(self._latest)
        self.accepted.append(name)
        return name

    def send_again(self, times: int) -> None:
        """Submit the latest session again, as often, all at once, like an agent that got no receipt."""
        with ThreadPoolExecutor(times) as agents:
            list(agents.map(self._send, [self._latest] * times))

    def close(self) -> None:
        self._client.close()

    def _send(self, parts: Parts) -> None:
        deadline = time.monotonic() + SUBMIT_SECONDS
        while not self._is_accepted(parts):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"expected the site to accept a session of {self.prefix} within {SUBMIT_SECONDS} s; see web's log"
                )
            self.retried += 1
            time.sleep(0.2)

    def _is_accepted(self, parts: Parts) -> bool:
        try:
            reply = self._client.post("/api/v1/sessions", files=parts)
        except httpx2.TransportError:
            return False
        if reply.is_client_error:
            raise ValueError(f"the site refuses a session of the drill: {reply.text}")
        if reply.is_server_error:
            self.server_errors[reply.status_code] += 1
        return reply.is_success


def session_parts(name: str, ended_at: dt.datetime, title: str) -> Parts:
    """The parts of a submission: metadata, a journal and a short log."""
    metadata = {
        "session_id": name,
        "title": title,
        "category": "code",
        "harness": "claude-code",
        "ended_at": ended_at.isoformat(),
    }
    committed = ("git commit -am 'try a call once'", f"[main {scratch.commit_hash(name)[:7]}] try a call once")
    turns = [
        ("user", f"Fix the guard of {name} and commit"),
        *scratch.bash_turns(name, [committed]),
        scratch.text_turn("assistant", "The guard is fixed and committed."),
    ]
    return {
        "metadata": ("metadata.json", json.dumps(metadata).encode()),
        "journal": ("journal.md", f"# {name}\nSubmitted PR with the fix; tests completed.\n".encode()),
        "transcript": (f"{name}.jsonl", scratch.claude_log(name, turns, ended_at)),
    }


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice that an alarm of this rule was opened, and when it came."""

    rule: str
    opened_at: dt.datetime
    received_at: dt.datetime


class Listener(HTTPServer):
    """The webhook that notices go to: a port of this machine, until `close`."""

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), NoticeHandler)
        self.notices: list[Notice] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def first(self, rule: str, since: dt.datetime) -> dt.datetime | None:
        """When the first notice came of an alarm of this rule that was opened since then; None if none came."""
        second = since.replace(microsecond=0)  # notices have whole seconds
        times = (each.received_at for each in self.notices if each.rule == rule and each.opened_at >= second)
        return next(times, None)

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class NoticeHandler(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body["about"] == "opened":
            opened_at = dt.datetime.fromisoformat(body["opened_at"])
            self.server.notices.append(Notice(body["rule"], opened_at, timezone.now()))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Print nothing between the drill's own lines."""


@dataclass(slots=True, kw_only=True)
class Scene:
    """One phase while it is played.

    `promised`: the jobs that waited when the judge came back, at `back_at`, in the order in which they should start.
    `broken`: promises that a script saw broken. `by_hand`: whether a person tries again what the site has put aside.
    From `fault_at` on people may notice the fault: on a page, as of `shown_at`, and by an alarm of `rule`.
    """

    site: Site
    stream: Stream
    rng: Random
    quick: bool
    listener: Listener
    rule: str = ""
    fault_at: dt.datetime | None = None
    shown_at: dt.datetime | None = None
    promised: list[int] = field(default_factory=list)
    back_at: dt.datetime | None = None
    kills: int = 0
    by_hand: bool = False
    kills_left: int = 0
    remarks: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def notified_at(self) -> dt.datetime | None:
        """When people were notified of the fault outside the site."""
        return None if self.fault_at is None else self.listener.first(self.rule, self.fault_at)

    def begin_fault(self, at: dt.datetime | None = None) -> None:
        """From now on, or since `at`, the fault can be noticed."""
        self.fault_at = at or timezone.now()

    def need(self, condition: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition
        """Record the promise `otherwise` as broken unless the condition is true."""
        if not condition:
            self.broken.append(otherwise)

    def pause(self, seconds: float) -> float:
        """How long a fault lasts here that lasts so many seconds in a full drill."""
        return seconds / 2 if self.quick else seconds


def play(scripts: list[Script], site: Site) -> None:
    """Run scripts side by side, in one thread, until all have ended. Restarts programs that ended by themselves."""
    count = itertools.count()
    waiting = [(time.monotonic(), next(count), script) for script in scripts]
    while waiting:
        due, _number, script = heapq.heappop(waiting)
        time.sleep(max(0.0, due - time.monotonic()))
        site.revive()
        pause = next(script, None)
        if pause is not None:
            heapq.heappush(waiting, (time.monotonic() + pause, next(count), script))


def send_sessions(scene: Scene, count: int, every: float) -> Script:
    """A stream of sessions. One in two ended long ago and is backlog."""
    for _ in range(count):
        scene.stream.send(minutes_ago=scene.rng.choice([1, 90]))
        yield every


def keep_workers_busy(scene: Scene) -> Script:
    """Send sessions until the kills are over."""
    while scene.kills_left:
        if JudgeJob.objects.open().count() < BUSY_JOBS:
            scene.stream.send()
        yield 0.05
