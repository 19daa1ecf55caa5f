"""Backups of a site at work: are they whole, how long do they take, and does anything get lost?

Agents' machines hand sessions in by the hook, to a web server of several processes, all the time. Each round makes a
backup meanwhile, restores it in an empty place and verifies it there. In the end the hooks send to the last restored
site what came after its backup, and that is compared with what was handed in.

python benchmarks/backups.py [--quick | --smoke] [--database sqlite | postgresql]
"""

import contextlib
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size
from tests.backups.places import AGENT, Place, Uploads, binaries

ROUNDS = {Size.FULL: 10, Size.QUICK: 2, Size.SMOKE: 1}
# Sessions that are handed in before each backup.
BETWEEN = {Size.FULL: 20, Size.QUICK: 6, Size.SMOKE: 2}


def main() -> None:
    made = scratch.parser(__doc__, quick="two rounds", smoke="one round, of a few sessions")
    made.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    options = made.parse_args()
    size = options.size
    with tempfile.TemporaryDirectory() as name, databases(options.database) as new_database:
        numbers = count()

        def place() -> Place:
            made = Place(Path(name) / f"place-{next(numbers)}")
            made.state.mkdir(parents=True, mode=0o700)
            new_database(made)
            return made

        measure(place, Path(name), rounds=ROUNDS[size], between=BETWEEN[size], machines=1 if size == Size.SMOKE else 2)


def measure(new_place: Callable[[], Place], folder: Path, *, rounds: int, between: int, machines: int) -> None:
    site, backups = new_place(), folder / "backups"
    template = os.environ.get(scratch.TEMPLATE)
    if template and not site.database:
        shutil.copy(template, site.state / "db.sqlite3")
    else:
        site.run("migrate")
    token = site.run("issue_token", AGENT).strip()
    seconds, held, clean = [], [], 0
    with site.serving(), Uploads(site, token, folder, machines) as uploads:
        for number in range(rounds):
            uploads.wait_for(between)
            start = time.monotonic()
            site.run("backup", str(backups))
            seconds.append(time.monotonic() - start)
            restored = new_place()
            said = restored.run("restore", str(backups))
            found = sessions(restored)
            clean += found is not None
            held.append(found or 0)
            print(f"round {number + 1}: {held[-1]:,} sessions, backup in {seconds[-1]:.1f} s", flush=True)
        uploads.wait_for(between)
    with restored.serving():
        uploads.resend(re.search(r"--resend (\S+)", said)[1], to=restored)
    figures = {
        "rounds": rounds,
        "clean": clean,
        "handed_in": uploads.count,
        "in_the_last_backup": held[-1],
        "after_resending": sessions(restored) or 0,
        "backup_s": round(statistics.median(seconds), 2),
    }
    print(json.dumps(figures))


def sessions(place: Place) -> int | None:
    """How many a place has; None where something is missing or damaged there."""
    try:
        said = place.run("verify")
    except AssertionError as error:
        print(error)
        return None
    return int(re.search(r"([\d,]+) sessions", said)[1].replace(",", ""))


@contextlib.contextmanager
def databases(kind: str) -> Iterator[Callable[[Place], None]]:
    """Gives each place a database of its own."""
    if kind == "sqlite":
        yield lambda _place: None
        return
    import psycopg

    from tests.postgres import server

    with server() as url:
        address, _, options = url.partition("?")

        def give(place: Place) -> None:
            name = f"site_{place.folder.name.replace('-', '_')}"
            with psycopg.connect(url, autocommit=True) as database:
                database.execute(f'CREATE DATABASE "{name}"')
            place.database = f"{address.rpartition('/')[0]}/{name}?{options}"
            place.environment["PG_BIN"] = str(binaries())

        yield give


if __name__ == "__main__":
    main()
