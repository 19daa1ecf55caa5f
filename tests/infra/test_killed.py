"""Programs killed by SIGKILL at random moments, 20 times each: an upgrade, and a web server that takes uploads.

Minutes each, because every kill costs the start of another process.
"""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import httpx2
import pytest

from grading.backups import upgrading
from tests.backups.places import AGENT, Place
from tests.casts import logs
from tests.databases import database, restore_baseline
from tests.processes import stop, wait_for
from tests.template_database import copy_sqlite

pytestmark = [pytest.mark.slow, pytest.mark.own_database]

KILLS = 20
# Seconds; other tests may use the machine, too.
STARTED_WITHIN = 240
# Seconds before an upload is sent again.
PAUSE = 0.2
SETTINGS = {"DJANGO_SETTINGS_MODULE": "gradingsite.settings"}
UPGRADE = """
import django
django.setup()
from grading.backups import upgrading
print("started", flush=True)
upgrading.migrate(print)
"""
DIGESTS = """
import datetime, json, sys
import django
django.setup()
from tests.databases import schema
from tests.facts import digests, facts
rows = facts(datetime.datetime.fromisoformat(sys.argv[1]))
print(json.dumps(digests(rows) | {"schema": repr(schema())}))
"""


@pytest.fixture
def moments() -> Iterator[float]:
    """Random shares of a duration, spread evenly over it, without end. `KILL_SEED` repeats those of an earlier run."""
    seed = int(os.environ.get("KILL_SEED") or time.time_ns() % 1_000_000)
    show(f"KILL_SEED={seed}")
    return spread(random.Random(seed))


def show(line: str) -> None:
    """Print a line, which pytest shows if the test fails."""
    print(line)  # noqa: T201


def spread(rng: random.Random) -> Iterator[float]:
    while True:
        parts = [(number + rng.random()) / KILLS for number in range(KILLS)]
        rng.shuffle(parts)
        yield from parts


@dataclass
class UpgradedSite:
    """A site with the baseline's database, to be upgraded again and again."""

    place: Place
    baseline: Path
    now: str

    def reset(self) -> None:
        """Go back to the baseline."""
        shutil.rmtree(self.place.state, ignore_errors=True)
        self.place.state.mkdir(parents=True, mode=0o700)
        shutil.copy(self.baseline, self.place.state / "db.sqlite3")

    def upgrade(self, kill_after: float | None = None) -> tuple[bool, float]:
        """Run the upgrade, killed after so many seconds: whether it came to its end before, and the seconds it took."""
        process = self.place.start("-c", UPGRADE)
        output = read_until(process, "started\n")
        began = time.monotonic()
        try:
            output += process.communicate(timeout=kill_after)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            output += process.communicate()[0]
            return False, time.monotonic() - began
        assert process.returncode == 0, output
        return True, time.monotonic() - began

    def result(self) -> dict[str, str]:
        """The digests of the site's facts, and its schema. Fails if the site has differences, or no usable copy."""
        assert "0 differences" in self.place.run("rebuild").splitlines()
        copies = (self.place.state / upgrading.COPIES).iterdir()
        assert migrations_in(self.baseline) in [migrations_in(copy / "db.sqlite3") for copy in copies]
        done = self.place.start("-c", DIGESTS, self.now)
        output, _errors = done.communicate()
        assert done.returncode == 0, output
        return json.loads(output.splitlines()[-1])


def migrations_in(path: Path) -> set[tuple[str, str]]:
    """The migrations that were applied to an undamaged database."""
    with closing(sqlite3.connect(path)) as rows:
        assert rows.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return set(rows.execute("SELECT app, name FROM django_migrations"))


def read_until(process: subprocess.Popen[str], expected: str) -> str:
    """What the program prints until it prints this line."""
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if line == expected:
            return output
    raise AssertionError(f"the program ended with status {process.wait()}: {output}")


@pytest.fixture
def older(tmp_path) -> UpgradedSite:
    folder = tmp_path / "baseline"
    folder.mkdir()
    with database("older", folder):
        restore_baseline(folder)
    about = json.loads((folder / "about.json").read_text())
    site = UpgradedSite(
        place=Place(tmp_path / "place", environment=SETTINGS), baseline=folder / "db.sqlite3", now=about["now"]
    )
    site.reset()
    return site


def test_upgrade_that_is_killed_again_and_again_ends_like_one_that_was_not(older, moments):
    _ended, seconds = older.upgrade()
    expected = older.result()
    older.reset()
    kills = completed = 0
    while kills < KILLS or completed == 0:
        has_ended, _took = older.upgrade(seconds * next(moments) if kills < KILLS else None)
        kills += not has_ended
        if has_ended:
            completed += 1
            assert older.result() == expected
            older.reset()
    show(f"{kills} kills of an upgrade that takes {seconds:.2f} s; it was completed {completed} times")


@dataclass
class Client:
    """A machine that uploads sessions one after the other, and sends each again until the site has answered 2xx."""

    url: str
    token: str
    name: str
    taken: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    retries: int = 0
    seconds: float = 1.0  # that the latest upload took
    is_last: threading.Event = field(default_factory=threading.Event)
    has_failed: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self.http = httpx2.Client(timeout=60)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, error: object, *_details: object) -> None:
        if error:
            self.has_failed.set()
        self.finish()
        self.http.close()

    def finish(self) -> None:
        """Send the current session to its end, and no other."""
        self.is_last.set()
        self.thread.join()

    def run(self) -> None:
        number = 0
        while not self.is_last.is_set() and not self.refused:
            number += 1
            self.send(f"{self.name}-{number}")

    def send(self, session: str) -> None:
        metadata = json.dumps({"session_id": session, "category": "code", "harness": "claude-code"})
        log = logs.claude(session, ("git commit -am 'Fix it'", f"[main {hash_of(session)}] Fix it\n 1 file changed"))
        files: dict[str, Any] = {
            "metadata": (None, metadata),
            "transcript": ("log.jsonl", log),
            "journal": ("journal.md", f"Merged the fix of {session}, and the tests pass. ".encode() * 4),
        }
        headers = {"Authorization": f"Bearer {self.token}"}
        while not self.has_failed.is_set():
            began = time.monotonic()
            try:
                reply = self.http.post(f"{self.url}/api/v1/sessions", files=files, headers=headers)
            except httpx2.HTTPError:
                self.retries += 1
                time.sleep(PAUSE)
                continue
            if reply.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
                time.sleep(PAUSE)
                continue
            self.seconds = time.monotonic() - began
            (self.taken if reply.is_success else self.refused).append(session if reply.is_success else reply.text)
            return


def start_server(place: Place) -> subprocess.Popen[str]:
    """The web server, once it answers."""
    server = place.start("-m", "gradingsite.web")
    read_until(server, f"serving {place.url}/\n")
    wait_for(place.answers, STARTED_WITHIN)
    return server


def hash_of(session: str) -> str:
    """Seven hex digits of a commit of its own."""
    return f"{random.Random(session).randrange(16**7):07x}"


def test_uploads_to_a_web_server_that_is_killed_again_and_again_are_each_stored_once(tmp_path, moments):
    place = Place(tmp_path, environment=SETTINGS)
    place.state.mkdir(mode=0o700)
    copy_sqlite(place.state / "db.sqlite3")
    token = place.run("issue_token", AGENT).strip()
    with Client(place.url, token, "a") as first, Client(place.url, token, "b") as second:
        for _kill in range(KILLS):
            server = start_server(place)
            before = len(first.taken)
            wait_for(lambda before=before: len(first.taken) > before, STARTED_WITHIN)
            time.sleep(2 * first.seconds * next(moments))  # in the middle of an upload, or of the next
            server.kill()  # its children end with it
            server.communicate()
        server = start_server(place)
        first.finish()
        second.finish()
        stop(server)
        server.communicate()  # closes the pipe
    assert first.refused + second.refused == []
    taken = first.taken + second.taken
    with closing(sqlite3.connect(place.state / "db.sqlite3")) as rows:
        stored = [name for (name,) in rows.execute("SELECT external_id FROM grading_session ORDER BY 1")]
    assert stored == sorted(taken)
    assert first.retries + second.retries >= KILLS // 2
    assert "0 differences" in place.run("rebuild").splitlines()
    place.run("verify")  # reads every file of evidence, too
    show(f"{len(taken)} sessions, {first.retries + second.retries} uploads sent again")
