"""The hook of today with a site of an earlier version, which knows nothing of projects, tasks and settings."""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.agent.test_hook import SESSION, Machine, Unwilling, free_port, git, repository
from tests.processes import wait_for

ROOT = Path(__file__).parents[2]
EARLIER = "4a04fdc5"
REFUSED = [
    {
        "part": f"metadata.{name}",
        "code": "extra_forbidden",
        "expected": "Extra inputs are not permitted",
        "got": "'x'",
        "todo": "correct it and send it again",
        "is_error": True,
    }
    for name in ("project", "task", "ran_with")
]


@pytest.fixture
def working_folder(tmp_path: Path) -> Path:
    """A repository with a remote and instructions."""
    folder = repository(tmp_path / "work")
    git(folder, "remote", "add", "origin", "https://ada:secret@forge.example/ada/engine.git?key=1")
    (folder / "CLAUDE.md").write_text("Write tests first.\n")
    return folder


@pytest.fixture
def earlier_site(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address of a running site of the earlier version, and a token of bob's."""
    code = subprocess.run(["git", "-C", str(ROOT), "archive", EARLIER], capture_output=True, check=False)
    if code.returncode:
        pytest.skip(f"commit {EARLIER} is not in this clone's history: fetch all of it")
    with tarfile.open(fileobj=io.BytesIO(code.stdout)) as archive:
        archive.extractall(tmp_path / "earlier", filter="data")
    port = free_port()
    unset = ("DJANGO_SETTINGS_MODULE", "DATABASE_URL", "GRADING_DATA_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"GRADINGSITE_STATE": str(tmp_path / "state"), "PORT": str(port)}

    def manage(*arguments: str) -> subprocess.Popen:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.Popen(
            command,
            cwd=tmp_path / "earlier",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    assert "OK" in manage("migrate").communicate(timeout=300)[0]
    token = manage("issue_token", "bob").communicate(timeout=60)[0].split()[-1]
    server = manage("runserver", f"127.0.0.1:{port}", "--noreload", "--insecure")
    try:
        wait_for(lambda: answers(port), seconds=60)
        yield f"http://127.0.0.1:{port}", token
    finally:
        server.terminate()
        server.communicate(timeout=20)


def answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/healthz/live")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.mark.slow
def test_an_earlier_site_takes_the_session(earlier_site, working_folder):
    """The earlier version itself, not an imitation, takes a session without what it does not know."""
    url, token = earlier_site
    machine = Machine(working_folder.parent, url, token)
    machine.run(stdin=machine.payload(cwd=str(working_folder), permission_mode="plan"), GRADINGSITE_TASK="T-1")
    machine.wait_until_sent()
    assert not list(machine.spool.glob("refused/*"))
    assert "accepted" in (machine.spool / "sender.log").read_text()


def test_unknown_fields_are_left_out_once(working_folder):
    """A site that refuses unknown fields by name gets the same session once more without them."""
    machine = Machine(working_folder.parent, "http://127.0.0.1:1")
    answer = json.dumps({"error": "invalid metadata", "problems": REFUSED}).encode()
    with Unwilling(422, answer, only=b"ran_with") as site:
        machine.run(stdin=machine.payload(cwd=str(working_folder)), GRADINGSITE_URL=site.url, GRADINGSITE_TASK="T-1")
        machine.wait_until_sent()
    first, second = site.received
    assert all(name in first for name in (b"ran_with", b"forge.example/ada/engine", b'"task": "T-1"', SESSION.encode()))
    assert not any(name in second for name in (b"ran_with", b"forge.example/ada/engine", b'"task"'))
    assert SESSION.encode() in second
    assert b"secret" not in first
    assert not list(machine.spool.glob("refused/*"))


def test_other_refusals_stay_refusals(working_folder):
    """A site that refuses a field which it must know is not asked again."""
    machine = Machine(working_folder.parent, "http://127.0.0.1:1")
    answer = json.dumps({"error": "invalid", "problems": [{**REFUSED[0], "part": "metadata.session_id"}]}).encode()
    with Unwilling(422, answer) as site:
        machine.run(stdin=machine.payload(cwd=str(working_folder)), GRADINGSITE_URL=site.url)
        machine.wait_until_sent()
    assert len(site.received) == 1
    assert len(list(machine.spool.glob("refused/*"))) == 1
