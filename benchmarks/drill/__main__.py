"""`python -m benchmarks.drill`: break the judging in every way. The exit status is 1 if a promise was broken."""

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
    from benchmarks.drill.findings import Report

USUAL, QUICK = {"sessions": 24, "kills": 100}, {"sessions": 6, "kills": 10}


def main() -> int:
    options = parse_options()
    # Ctrl-C too: a shell starts background jobs with it ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, exit_on_signal)
    state = Path(tempfile.mkdtemp(prefix="gradingsite-drill-"))
    keeps_state = True
    try:
        with scratch_database() as url:
            report = drill(state, url, options)
        keeps_state = bool(report.all_broken())
        print(report.text(), flush=True)
    except (KeyboardInterrupt, SystemExit):
        keeps_state = False
        raise
    finally:
        if keeps_state:
            print(f"The programs' logs are in {state}", file=sys.stderr)
        else:
            shutil.rmtree(state, ignore_errors=True)
    return int(keeps_state)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.drill", description="Break the judging in every way, and count what is lost."
    )
    parser.add_argument("--quick", action="store_true", help="under a minute: few sessions and kills, short outages")
    parser.add_argument("--sessions", type=int, help="in a usual phase (24, quick: 6)")
    parser.add_argument("--kills", type=int, help="of workers, in all (100, quick: 10)")
    parser.add_argument(
        "--phase", action="append", default=[], help="only those with this in their name; may be given again"
    )
    parser.add_argument("--patience", type=float, default=180, help="seconds until an open job counts as lost (180)")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments")
    options = parser.parse_args()
    for name, number in (QUICK if options.quick else USUAL).items():
        if getattr(options, name) is None:
            setattr(options, name, number)
    return options


def exit_on_signal(number: int, _frame: object) -> NoReturn:
    """Exit as Ctrl-C does, so that everything that runs is stopped."""
    sys.exit(128 + number)


def drill(state: Path, database_url: str, options: argparse.Namespace) -> "Report":
    """Play the phases on a new site in `state`, stop it, and report."""
    ours = site.prepare_environment(state, database_url)
    os.environ["HEARTBEAT_SECONDS"] = "1" if options.quick else "5"
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection, connections

    from benchmarks.drill.run import Drill
    from grading.models import Agent, ApiToken

    logging.disable()  # the faults are intended, and the programs have logs of their own
    if connection.vendor == "sqlite":
        connection.settings_dict["OPTIONS"]["gate_seconds"] = 120  # the drill itself doesn't give up on a busy machine
    call_command("migrate", verbosity=0)
    _row, token = ApiToken.objects.issue(Agent.objects.create(name="drill"), note="outage drill")
    try:
        with site.started(site.Site(site.commands(state, ours), state, ours)) as running:
            return Drill(running, options, token).run()
    finally:
        connections.close_all()


@contextmanager
def scratch_database() -> Iterator[str]:
    """The URL of the drill's database: "" for SQLite, or that of a new PostgreSQL server if DATABASE_URL is one's."""
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
