"""Homes of people with agents: the sample logs, where the harnesses keep theirs; and trials that read them."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from grading import formats
from gradingsite import broker
from gradingsite.state import ROOT
from tests import wheel
from tests.infra.test_supervisor import read_until
from tests.intake.test_opencode import opencode
from tests.processes import started
from tests.template_database import copy_sqlite

SAMPLES = sorted((ROOT / "grading" / "agent" / "samples" / "sessions").glob("*/*.jsonl"))
KEPT_IN = {
    "claude-code": ".claude/projects/-work-project/{name}.jsonl",
    "codex": ".codex/sessions/2026/06/06/rollout-2026-06-06T23-32-50-{name}.jsonl",
    "gptme": ".local/share/gptme/logs/{name}/conversation.jsonl",
}


def make_home(home: Path) -> list[Path]:
    """Put the sample logs where their harnesses keep logs below `home`. Returns their paths."""
    logs = []
    for sample in SAMPLES:
        with sample.open("rb") as file:
            harness = formats.recognise(file).format
        log = home / KEPT_IN[harness].format(name=sample.parent.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(sample.read_bytes())
        logs.append(log)
    return logs


def add_other_harnesses(home: Path) -> list[Path]:
    """Put logs of Copilot CLI, Gemini CLI and OpenCode there, too. Returns their paths."""
    logs = []
    for harness, sample, place in (
        ("copilot_cli", "10fb4666-56f0-4352-90fc-715caf95b418.jsonl", ".copilot/session-state/10fb4666/events.jsonl"),
        ("gemini_cli", "2026-01-09-faff42ab-6ea5-4f78-b8c4-f7dd6272af08.json", ".gemini/tmp/a/chats/session-1.json"),
    ):
        log = home / place
        log.parent.mkdir(parents=True)
        log.write_bytes((ROOT / "tests" / "formats" / harness / "logs" / sample).read_bytes())
        logs.append(log)
    database = home / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    with opencode(database, "ses_1", "ses_2"):
        pass
    return [*logs, database]


@dataclass(frozen=True, kw_only=True)
class RunningTrial:
    """A trial that serves: its process, what it printed, and the address with the token."""

    process: subprocess.Popen
    greeting: str
    address: str

    @property
    def base(self) -> str:
        return self.address.partition("/try/")[0]

    @contextmanager
    def sign_in(self) -> Iterator[httpx2.Client]:
        """A client that has opened the address."""
        with httpx2.Client(base_url=self.base, timeout=60, follow_redirects=True) as client:
            assert client.get(self.address).status_code == 200
            yield client


@contextmanager
def trial(
    home: Path, *arguments: str, command: tuple[Any, ...] = (), opens_browser: bool = False, **variables: str
) -> Iterator[RunningTrial]:
    """Run `gradingsite try` for the person with this home, from the checkout unless a command is given."""
    state = home / "state"
    if not command and not state.exists():
        state.mkdir(mode=0o700)
        copy_sqlite(state / "db.sqlite3")  # a start without one is in tests/infra/test_wheel.py
    command = command or (sys.executable, ROOT / "manage.py")
    defaults = {"PORT": str(broker.free_port()), "GRADINGSITE_STATE": str(state)}
    environment = wheel.environ(home, **{**defaults, **variables})
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    arguments = (*arguments, *([] if opens_browser else ["--no-browser"]))
    with started([*command, "try", *arguments], env=environment, cwd=home, **options) as process:
        greeting = "\n".join(read_until(process, "Ctrl-C", seconds=400))
        found = re.search(r"http://\S+/try/open/\?token=\S+", greeting)
        yield RunningTrial(process=process, greeting=greeting, address=found[0])
    process.stdout.close()


def refusal(home: Path, *arguments: str, **variables: str) -> str:
    """What a trial prints that does not start."""
    environment = wheel.environ(home, PORT=str(broker.free_port()), GRADINGSITE_STATE=str(home / "state"), **variables)
    command = [sys.executable, ROOT / "manage.py", "try", "--no-browser", *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL
    )
    assert done.returncode != 0
    return done.stdout + done.stderr


def processes_of(process: subprocess.Popen) -> list[int]:
    """The ids of the process's children."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
