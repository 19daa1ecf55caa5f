"""An upgrade killed by SIGKILL at random moments, 20 times.

It takes minutes, because every kill costs the start of another process.
"""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from grading.backups import upgrading
from tests.backups.places import Place
from tests.databases import database, restore_baseline

pytestmark = [pytest.mark.slow, pytest.mark.own_database]

KILLS = 20
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
