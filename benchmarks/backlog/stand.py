"""The test stand: a simulator with limits, a Valkey, two worker processes; one run of one contender."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks import scratch
from gradingsite import broker
from gradingsite.supervisor import die_with_parent

ROOT = Path(__file__).resolve().parent.parent.parent
CELERY = (sys.executable, "-m", "celery", "-q")
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
WORKERS, THREADS = 2, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Who does the work: the Celery application its workers run, and what else runs beside them."""

    name: str
    app: str
    beside: Sequence[Sequence[str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the simulator counted, how long it took, and CPU seconds of the workers."""

    state: Mapping[str, object]
    elapsed: float
    cpu: float


class Stand:
    """Everything that one run needs; ended with it."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.broker = broker.prepare(state / "broker")
        self.environment = {**os.environ, "REDIS_URL": self.broker.url, "LOG_LEVEL": "ERROR"}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self.start(broker.command(self.broker, self.state / "broker"))
        self.broker.wait_until_up()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        self._open.close()
        if kind is not None:
            print((self.state / "output.log").read_text()[-3000:], file=sys.stderr)

    def start(self, command: Sequence[str], **options: object) -> subprocess.Popen:
        log = self._open.enter_context((self.state / "output.log").open("a"))
        options = {"stdout": log, "stderr": log, "text": True, "preexec_fn": die_with_parent, **options}
        process = subprocess.Popen(command, env=self.environment, cwd=ROOT, **options)
        self._open.callback(stop, process)
        return process

    def simulator(self, options: Sequence[str]) -> str:
        """Starts it; its URL."""
        command = [sys.executable, "manage.py", "judge_simulator", "--port", "0", *options]
        process = self.start(command, stdout=subprocess.PIPE)
        self._open.callback(process.stdout.close)
        url = process.stdout.readline().split()[3].rstrip(",")
        self.environment |= {"ANTHROPIC_BASE_URL": url}
        return url

    def workers(self, contender: Contender) -> list[subprocess.Popen]:
        started = [
            self.start([*CELERY, "-A", contender.app, "worker", *QUIET, "-n", f"{contender.name}{number}@bench"])
            for number in range(WORKERS)
        ]
        for command in contender.beside:
            self.start(command)
        return started


def watch(url: str, workers: Sequence[subprocess.Popen], *, sessions: int, seconds: float) -> Run:
    """Waits until `sessions` calls were served, or `seconds` are over since the first call.

    Raises RuntimeError where a worker makes no call in two minutes, or ends.
    """
    if not wait(lambda: ask(url)["calls"], 120):
        raise RuntimeError("no worker made a call in two minutes")
    began, used_before = time.monotonic(), scratch.cpu_seconds(worker.pid for worker in workers)
    while True:
        state, elapsed = ask(url), time.monotonic() - began
        if state["served"] >= sessions or elapsed > seconds:
            used = scratch.cpu_seconds(worker.pid for worker in workers) - used_before
            return Run(state=state, elapsed=elapsed, cpu=used)
        if any(worker.poll() is not None for worker in workers):
            raise RuntimeError("a worker ended")
        time.sleep(0.25)


def wait(condition: Callable[[], object], seconds: float) -> bool:
    """Until `condition` is true, for so long at most; whether it is."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(condition())


def ask(url: str) -> dict:
    with urllib.request.urlopen(f"{url}/_state", timeout=30) as reply:  # noqa: S310 - our own simulator
        return json.load(reply)


def stop(process: subprocess.Popen) -> None:
    """At once: a worker would wait for those of its threads that sleep on a retry-after."""
    process.kill()
    process.wait()
