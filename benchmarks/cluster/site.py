"""The hosts of a site, and who uses it: agents that upload, reviewers that correct, and somebody who opens pages."""

import datetime as dt
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from benchmarks import scratch
from benchmarks.cluster.servers import ANSWER_SECONDS, SPAWNED
from gradingsite import broker
from gradingsite.supervisor import die_with_parent

SETTLE_SECONDS = 240.0
PREFIX = "drill-00-"  # as the drill's checks expect
VALUE = 0.37
ACCEPTED = (200, 201)
SERVER_ERROR = 500
ROLES = {"web-a": "web", "web-b": "web", "worker-a": "worker", "worker-b": "worker", "beat-a": "beat"}
PAGES = ("/", "/sessions/", "/alarms/")
CALM = "nothing is wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many agents and reviewers there are, the mean pause of an agent between two sessions, the seconds that each
    fault lasts and those between faults, the seconds over which verdicts are counted, and how long the judge takes for
    an answer then, in the mean.
    """

    agents: int
    reviewers: int
    pause: float
    fault: float
    calm: float
    counted: float
    answers: tuple[float, ...] = (ANSWER_SECONDS,)


@dataclass(slots=True)
class Host:
    """A host's role, its state folder, its port, and the tree of code that it runs."""

    name: str
    role: str
    state: Path
    port: int
    tree: Path = scratch.ROOT
    process: subprocess.Popen[bytes] | None = None

    @property
    def web(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, environment: Mapping[str, str]) -> None:
        self.state.mkdir(exist_ok=True)
        own = {"GRADINGSITE_STATE": str(self.state), "PORT": str(self.port), "HOST_NAME": self.name}
        with (self.state.parent / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(self.tree / "manage.py"), "up", self.role],
                cwd=self.tree,
                env={**environment, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=die_with_parent,  # noqa: PLW1509  threads are started later
            )

    def end(self, number: int = signal.SIGTERM) -> None:
        """Send the supervisor a signal and wait for its end. The kernel ends its programs with it."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(60)
            self.process = None

    def signal_programs(self, number: int) -> None:
        """Send the signal to the programs below the supervisor."""
        if self.process is not None:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
            for child in children.split():
                os.killpg(int(child), number)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an agent was told of its session: its id. And the token with which it may read it."""

    session: int
    token: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was opened: when (seconds since the epoch), at which host, for how long, and whether it came."""

    at: float
    address: str
    path: str
    ms: float
    came: bool


@dataclass(slots=True)
class Record:
    """What agents and reviewers were told, and when which fault was under way."""

    receipts: dict[str, Receipt] = field(default_factory=dict)
    corrected: set[int] = field(default_factory=set)
    phases: list[tuple[float, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Cluster:
    """The hosts of one run, and who uses them."""

    def __init__(self, folder: Path, load: Load, environment: Mapping[str, str]) -> None:
        self.folder, self.load, self.environment = folder, load, environment
        port = broker.free_port()
        self.hosts = {
            name: Host(name, role, folder / name, broker.free_port() if role == "web" else port)
            for name, role in ROLES.items()
        }
        self.record = Record()
        self.over = threading.Event()
        self.numbers = itertools.count(1)
        self.pages_file = folder / "pages.jsonl"

    @property
    def web_hosts(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.role == "web"]

    def start(self, *names: str) -> None:
        for name in names or self.hosts:
            self.hosts[name].start(self.environment)

    def end(self) -> None:
        self.over.set()
        for host in self.hosts.values():
            host.end()

    def wait_until_up(self, seconds: float = 300) -> None:
        wait_for(lambda: all(answers(host.web) for host in self.web_hosts), seconds, "both web hosts answer")

    # Agents and reviewers, each in a thread

    def upload_until_over(self, token: str) -> None:
        chance = random.Random(token)
        with agent_client(token) as client:
            while not self.over.wait(chance.uniform(0, 2 * self.load.pause)):
                self.upload(client, f"{PREFIX}{next(self.numbers):04}", chance.choice(self.web_hosts))

    def upload(self, client: httpx2.Client, name: str, first: Host) -> None:
        """Send a session, to one host after the other, until it is accepted."""
        now = dt.datetime.now(dt.UTC)
        turns = scratch.bash_turns(
            name, [("git commit -am Work", f"[main {scratch.commit_hash(name)[:9]}] Work {name}\n 1 file changed")]
        )
        log = scratch.claude_log(name, [("user", f"Do {name}"), *turns], now)
        metadata = {"session_id": name, "category": "code", "harness": "claude-code", "ended_at": now.isoformat()}
        for host in itertools.cycle([first, *(host for host in self.web_hosts if host is not first)]):
            try:
                reply = client.post(
                    f"{host.web}/api/v1/sessions",
                    data={"metadata": json.dumps(metadata)},
                    files={"transcript": ("log.jsonl", log)},
                )
            except httpx2.TransportError:
                time.sleep(0.3)
                continue
            if reply.status_code in ACCEPTED:
                self.record.receipts[name] = Receipt(reply.json()["id"], client.headers["Authorization"])
                return
            if reply.status_code < SERVER_ERROR and reply.status_code != 429:  # noqa: PLR2004
                self.record.problems.append(f"an upload was answered {reply.status_code}: {reply.text[:200]}")
                return
            time.sleep(0.3)

    def correct_until_over(self, person: httpx2.Client, host: Host, share: int, of: int) -> None:
        """Correct each accepted session whose key falls to this reviewer."""
        from django.db import DatabaseError, connection

        from grading.models import Session

        tried: set[int] = set()
        while not self.over.wait(0.5):
            latest = Session.objects.filter(reward_final=True).order_by("-pk").values_list("pk", flat=True)
            try:
                keys = list(latest[:200])
            except DatabaseError:
                connection.close()
                continue
            for pk in [pk for pk in keys if pk % (7 * of) == share and pk not in tried]:
                tried.add(pk)
                if self.correct(person, host, pk):
                    self.record.corrected.add(pk)
        connection.close()

    def correct(self, person: httpx2.Client, host: Host, pk: int) -> bool:
        """Whether the correction was accepted. Repeated while the site is unavailable."""
        answer = {"answer": "grade", "value": str(VALUE), "reason": "drill"}
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            try:
                status = person.post(f"{host.web}/review/{pk}/answer/", data=answer).status_code
            except httpx2.TransportError:
                status = SERVER_ERROR
            if status < SERVER_ERROR:
                return status < 400  # noqa: PLR2004
            time.sleep(0.3)
        self.record.problems.append("a correction was not answered")
        return False

    # Pages

    @contextmanager
    def pages_opened(self, cookies: Mapping[str, str]) -> Iterator[None]:
        """Have a process open pages of both hosts during the block."""
        arguments = [[host.web for host in self.web_hosts], dict(cookies), self.pages_file]
        process = SPAWNED.Process(target=open_pages, args=arguments, daemon=True)
        process.start()
        try:
            yield
        finally:
            process.terminate()
            process.join()

    def begin_phase(self, name: str) -> None:
        self.record.phases.append((time.time(), name))

    def pages(self) -> list[tuple[str, Page]]:
        """All pages that were opened, each with the phase in which that was."""
        rows = [Page(**json.loads(line)) for line in self.pages_file.read_text().splitlines()]
        return [(self.phase_at(page.at), page) for page in rows]

    def phase_at(self, at: float) -> str:
        return next((name for begin, name in reversed(self.record.phases) if begin <= at), "")


def open_pages(addresses: Sequence[str], cookies: Mapping[str, str], file: Path) -> None:
    """Open pages at each address in turn, five a second, and write each as a line. Runs in a process, until it is
    terminated.

    It is a process of its own because threads that upload would keep it waiting.
    """
    die_with_parent()
    with httpx2.Client(cookies=dict(cookies), timeout=60) as person, file.open("w", buffering=1) as lines:
        for address, path in itertools.cycle(itertools.product(addresses, PAGES)):
            at, started = time.time(), time.perf_counter()
            try:
                came = person.get(f"{address}{path}").is_success
            except httpx2.TransportError:
                came = False
            ms = 1000 * (time.perf_counter() - started)
            lines.write(json.dumps({"at": at, "address": address, "path": path, "ms": ms, "came": came}) + "\n")
            time.sleep(0.2)


def agent_client(token: str) -> httpx2.Client:
    return httpx2.Client(headers={"Authorization": f"Bearer {token}"}, timeout=60)


def new_token(agent: str) -> str:
    """A new token of a new agent."""
    from grading.models import Agent, ApiToken

    _row, secret = ApiToken.objects.issue(Agent.objects.create(name=agent))
    return secret


def reviewer_cookies(name: str, hosts: Sequence[Host]) -> dict[str, str]:
    """The cookies of a new reviewer who is signed in at each host. They are named by the host's port."""
    from django.conf import settings
    from django.contrib.auth.models import Group, User
    from django.test import Client

    person = User.objects.create(username=name, is_staff=True)
    person.groups.set(Group.objects.filter(name="reviewer"))
    client = Client(SERVER_NAME="localhost")
    client.force_login(person)
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    cookies: dict[str, str] = {}
    for host in hosts:
        cookies |= {f"sessionid_{host.port}": value, f"csrftoken_{host.port}": "a" * 32}
    return cookies


def reviewer(name: str, hosts: Sequence[Host]) -> httpx2.Client:
    """The browser of a signed-in reviewer."""
    return httpx2.Client(cookies=reviewer_cookies(name, hosts), headers={"X-CSRFToken": "a" * 32}, timeout=60)


def answers(address: str) -> bool:
    try:
        return httpx2.get(f"{address}/login/", timeout=5).is_success
    except httpx2.TransportError:
        return False


def require(condition: object, sentence: str) -> None:
    if not condition:
        raise SystemExit(f"expected: {sentence}")


def wait_for(condition: Callable[[], object], seconds: float, sentence: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        require(time.monotonic() < deadline, f"{sentence} within {seconds:g} s")
        time.sleep(0.2)
