"""The site as processes that can be killed: its own commands, in a folder of its own, on loopback only.

The supervisor of `manage.py up` waits longer after each crash, up to half a minute, so a hundred crashes would take an
hour. Here a killed program is started again at once.
"""

import contextlib
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2

from gradingsite import broker
from gradingsite.broker import Broker
from gradingsite.supervisor import die_with_parent

BROKER, JUDGE, WEB = "broker", "judge", "web"
# The second one runs the scheduler.
WORKERS = ("worker 1", "worker 2")
# Calls that one worker makes at a time.
THREADS = 4
IN_FLIGHT = THREADS * len(WORKERS)
STOP_SECONDS = 8.0
# A worker may end with its broker: when the connection goes, kombu can stumble over what it has released already. The
# supervisor starts it again and nothing is lost. A worker that ends within so many seconds after its broker was killed
# counts as that.
ENDS_WITH_BROKER_SECONDS = 30.0
JUDGE_OPTIONS = ("--latency=0.6", "--requests=60000", "--input-tokens=60000000", "--output-tokens=30000000")
# A `sitecustomize` that records synced files. It runs first in the one below.
SYNCED = Path(__file__).parent / "synced"
POISON = """
import os, pickle, runpy, signal, sys
runpy.run_path({synced!r})
if "grading.judging.reading_process" in sys.orig_argv:
    loads = pickle.loads
    def poisoned(data):
        if os.path.exists({armed!r}):
            if b"kills-worker" in data:
                os.kill(os.getppid(), signal.SIGKILL)
            if b"kills-reader" in data or b"kills-worker" in data:
                os.kill(os.getpid(), signal.SIGKILL)
        return loads(data)
    pickle.loads = poisoned
"""
# Environment variables that belong to another site.
FOREIGN = ("REDIS_URL", "DEBUG", "HTTPS", "HOST", "SITE_URL", "SITE_TIME_ZONE", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS")


def prepare_environment(state: Path, database_url: str) -> Broker:
    """Make this process's environment that of a site in `state`, with waits that a drill can afford. Returns the site's
    broker. Call it before the settings are loaded.
    """
    for name in [name for name in os.environ if name in FOREIGN or name.startswith(("JUDGE_", "ANTHROPIC_"))]:
        del os.environ[name]
    ours = broker.prepare(state / "broker")
    (state / "clock-shift").write_text("0")
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "gradingsite.settings",
        "GRADINGSITE_STATE": str(state),
        "DATABASE_URL": database_url,
        "REDIS_URL": ours.url,
        "PORT": str(broker.free_port()),
        "ANTHROPIC_API_KEY": "sk-drill",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{broker.free_port()}",
        "WORKER_CONCURRENCY": str(THREADS),
        "SWEEP_SECONDS": "0.5",
        "CANARY": "no",
        "JUDGE_TIMEOUT": "3",
        "JUDGE_LEASE_SECONDS": "4",
        "JUDGE_BACKOFF_SECONDS": "0.02",
        "JUDGE_PROBE_SECONDS": "1",
        "NOTIFY_WEBHOOK": f"http://127.0.0.1:{broker.free_port()}/",
        "NOTIFY_RULES": "A2,A44,A46",
        "DRILL_SYNCED": str(state / "synced"),
        "CLOCK_SHIFT_FILE": str(state / "clock-shift"),
        "PYTHONPATH": os.pathsep.join([str(write_poison(state)), str(SYNCED)]),
        "TOKEN_DAILY_REQUESTS": "0",
        "TOKEN_DAILY_BYTES": "0",
        "TOKEN_DAILY_JUDGE_USD": "0",
    }
    return ours


def armed_poison(state: Path) -> Path:
    """While this file exists, sessions whose title says so kill the process that reads them."""
    return state / "poison" / "armed"


def write_poison(state: Path) -> Path:
    """Write a `sitecustomize` that makes such sessions kill their reader. Returns its folder."""
    folder = armed_poison(state).parent
    folder.mkdir(exist_ok=True)
    text = POISON.format(synced=str(SYNCED / "sitecustomize.py"), armed=str(armed_poison(state)))
    (folder / "sitecustomize.py").write_text(text)
    return folder


def commands(state: Path, ours: Broker, judge_options: Sequence[str] = JUDGE_OPTIONS) -> dict[str, list[str]]:
    """The programs of a site with two workers, a broker and a simulated judge, by name."""
    from grading.management.commands import up

    judge_port = os.environ["ANTHROPIC_BASE_URL"].rpartition(":")[2]
    worker = [sys.executable, "-m", "celery", "-q", "-A", "gradingsite", "worker", "--loglevel=INFO"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    workers = zip(WORKERS, (worker, [*worker, "--with-scheduler"]), strict=True)
    return {
        BROKER: broker.command(ours, state / "broker"),
        JUDGE: [*up.DJANGO, "judge_simulator", "--port", judge_port, *judge_options],
        WEB: up.WEB,
        **{name: [*command, "-n", f"{name.replace(' ', '')}@drill"] for name, command in workers},
    }


class Site:
    """The programs by name. One thread starts and ends them all: on Linux they end with that thread."""

    def __init__(self, programs: Mapping[str, Sequence[str]], logs: Path, ours: Broker) -> None:
        self.programs, self.logs, self.broker = programs, logs, ours
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.crashed: list[str] = []  # programs that ended by themselves
        self.crashed_with_broker = 0
        self.corrected: set[int] = set()  # primary keys of sessions that a person has graded
        self.web = f"http://127.0.0.1:{os.environ['PORT']}"
        self.judge = os.environ["ANTHROPIC_BASE_URL"]
        self._log_starts: dict[str, int] = {}
        self._broker_killed_at = -math.inf

    def start(self, name: str) -> None:
        """Start a program that doesn't run. Its output is appended to its log."""
        with self._log(name).open("ab") as log:
            self._log_starts[name] = log.tell()
            self.running[name] = subprocess.Popen(
                self.programs[name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=die_with_parent,  # noqa: PLW1509  there is one thread
            )

    def kill(self, name: str) -> None:
        """End a program and its children as a power cut does."""
        if name == BROKER:
            self._broker_killed_at = time.monotonic()
        self._signal(name, signal.SIGKILL)
        self.running.pop(name).wait()

    def freeze(self, name: str) -> None:
        """Suspend a program until `thaw`."""
        self._signal(name, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self._signal(name, signal.SIGCONT)

    def revive(self) -> None:
        """Start again what has ended by itself, and record it."""
        for name, process in list(self.running.items()):
            if process.poll() is not None:
                if name in WORKERS and time.monotonic() - self._broker_killed_at < ENDS_WITH_BROKER_SECONDS:
                    self.crashed_with_broker += 1
                else:
                    self.crashed.append(name)
                self.start(name)

    def is_ready(self, worker: str) -> bool:
        """Whether a worker that was started takes messages."""
        with self._log(worker).open("rb") as log:
            log.seek(self._log_starts[worker])
            return b" ready." in log.read()

    def last_lines(self, name: str, lines: int = 15) -> str:
        """The end of a program's log."""
        return "\n".join(self._log(name).read_text(errors="replace").splitlines()[-lines:])

    def wait_until_up(self, seconds: float = 90) -> None:
        """Return once everything answers. Raises TimeoutError with the last lines of what doesn't."""
        self.broker.wait_until_up(seconds)
        addresses = {JUDGE: f"{self.judge}/_state", WEB: f"{self.web}/login/"}
        for name in self.programs:
            if name in addresses:
                address = addresses[name]
                self._wait(name, lambda address=address: httpx2.get(address).is_success, seconds)  # type: ignore[misc]
            elif name in WORKERS:
                self._wait(name, lambda name=name: self.is_ready(name), seconds)  # type: ignore[misc]

    def script_judge(self, **script: Any) -> None:
        """Tell the judge simulator what to do from now on."""
        httpx2.post(f"{self.judge}/_script", json=script).raise_for_status()

    def judge_calls(self) -> list[dict[str, Any]]:
        """All calls that came to the judge."""
        reply = httpx2.get(f"{self.judge}/_calls", params={"after": 0}, timeout=30)
        calls: list[dict[str, Any]] = reply.raise_for_status().json()
        return calls

    def stop(self) -> None:
        """Ask all programs to end, broker and judge last. Kill what hasn't ended within STOP_SECONDS."""
        for names in (self.programs.keys() - {BROKER, JUDGE}, {BROKER, JUDGE}):
            ending = {name: self.running[name] for name in names & self.running.keys()}
            for name in ending:
                self.thaw(name)
                self._signal(name, signal.SIGTERM)
            deadline = time.monotonic() + STOP_SECONDS
            for name, process in ending.items():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.1, deadline - time.monotonic()))
                self.kill(name)

    def _signal(self, name: str, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.running[name].pid, number)

    def _log(self, name: str) -> Path:
        return self.logs / f"{name.replace(' ', '-')}.log"

    def _wait(self, name: str, answers: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(httpx2.HTTPError):
                if answers():
                    return
            if time.monotonic() > deadline or self.running[name].poll() is not None:
                raise TimeoutError(f"expected {name} within {seconds:g} s; its last lines:\n{self.last_lines(name)}")
            time.sleep(0.1)


@contextlib.contextmanager
def started(site: Site) -> Iterator[Site]:
    """Start all programs of the site, and stop them at the end."""
    try:
        for name in site.programs:
            site.start(name)
        site.wait_until_up()
        yield site
    finally:
        site.stop()
