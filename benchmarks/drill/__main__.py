"""`python -m benchmarks.drill`: break the judging in every way; exit status 1 where a promise was broken."""

import argparse
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from benchmarks.drill import site
from tests import postgres

if TYPE_CHECKING:
    from benchmarks.drill.report import Report

USUAL, QUICK = {"sessions": 24, "kills": 100}, {"sessions": 6, "kills": 10}


def main() -> int:
    arguments = parsed()
    # Ctrl-C too: what a shell starts in the background begins with it ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    state = Path(tempfile.mkdtemp(prefix="gradingsite-drill-"))
    is_kept = True
    try:
        with scratch_database() as url:
            report = drill(state, url, arguments)
        is_kept = bool(report.all_broken())
        print(report.text(), flush=True)
    except (KeyboardInterrupt, SystemExit):
        is_kept = False
        raise
    finally:
        if is_kept:
            print(f"The programs' logs are in {state}", file=sys.stderr)
        else:
            shutil.rmtree(state, ignore_errors=True)
    return int(is_kept)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.drill", description="Break the judging in every way, and count what is lost."
    )
    parser.add_argument("--quick", action="store_true", help="under a minute: few sessions and kills, short outages")
    parser.add_argument("--sessions", type=int, help="in a usual phase (24, quick: 6)")
    parser.add_argument("--kills", type=int, help="of workers, in all (100, quick: 10)")
    parser.add_argument(
        "--phase", action="append", default=[], help="only those with this in their name; may be given again"
    )
    parser.add_argument("--patience", type=float, default=180, help="seconds until what is still open is lost (180)")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments")
    arguments = parser.parse_args()
    for name, number in (QUICK if arguments.quick else USUAL).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, number)
    return arguments


def end(number: int, _frame: object) -> NoReturn:
    """A signal ends the drill as Ctrl-C does: everything that runs is stopped."""
    sys.exit(128 + number)


def drill(state: Path, database_url: str, arguments: argparse.Namespace) -> "Report":
    """A site of its own in `state`, the phases played on it, and what became of them. Everything is stopped after."""
    ours = site.settle_in(state, database_url)
    os.environ["HEARTBEAT_SECONDS"] = "1" if arguments.quick else "5"
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from benchmarks.drill.run import Drill, Plan
    from grading.models import Agent, ApiToken

    logging.disable()  # the faults are meant, and the programs' logs tell of them
    call_command("migrate", verbosity=0)
    _row, token = ApiToken.objects.issue(Agent.objects.create(name="drill"), note="outage drill")
    plan = Plan(
        sessions=arguments.sessions,
        kills=arguments.kills,
        seed=arguments.seed,
        quick=arguments.quick,
        patience=arguments.patience,
        only=tuple(arguments.phase),
    )
    try:
        with site.started(site.Site(site.commands(state, ours), state, ours)) as running:
            return Drill(running, plan, token).run()
    finally:
        connections.close_all()


@contextmanager
def scratch_database() -> Iterator[str]:
    """SQLite in the drill's folder; with a PostgreSQL DATABASE_URL, a PostgreSQL server of its own, which it kills."""
    if not os.environ.get("DATABASE_URL", "").startswith("postgres"):
        yield ""
        return
    with postgres.server(postgres.FAST) as url:
        yield url


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
