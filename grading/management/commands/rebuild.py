"""Compare derived data with the records that it is derived from, and repair it."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from bandit import audit
from bandit.models import LedgerEntry
from bandit.names import printable
from grading.models import Session
from grading.reward import state
from gradingsite.state import site_command

# Seconds after which a bar shows the progress.
PATIENCE = 10


class Command(BaseCommand):
    help = (
        "Compare the sessions' states and the bandits' buckets with the settlements, grades, flags and ledger entries "
        "that they are derived from. Prints each difference, and exits with 1 if there is one. With --repair, corrects "
        "them. It may run while the site runs, and be interrupted and started again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repair", action="store_true", help="store the computed values where they differ")

    def handle(self, *_args: Any, repair: bool, verbosity: int, **_options: Any) -> None:
        is_quiet = verbosity == 0
        count = 0
        for find_differences in (session_differences, bucket_differences, doubled_rewards):
            for line in find_differences(repair=repair, is_quiet=is_quiet):
                self.stdout.write(printable(line))
                count += 1
        self.stdout.write(f"{count:,} differences{', repaired' if repair and count else ''}")
        if count and not repair:
            raise CommandError(
                f"Find out what else wrote to the database, then run `{site_command('rebuild --repair')}`."
            )


def session_differences(*, repair: bool, is_quiet: bool) -> Iterator[str]:
    """A line for each reward column of a session that differs from its settlements, grades and flags."""
    total = Session.objects.count()
    with tqdm(desc="sessions", total=total, unit="session", delay=PATIENCE, disable=is_quiet) as bar:
        for count, mismatches in state.rebuild(repair=repair):
            for mismatch in mismatches:
                yield from mismatch.lines()
            bar.update(count)


def bucket_differences(*, repair: bool, is_quiet: bool) -> Iterator[str]:
    """A line for each column of a bucket that differs from the ledger's sum."""
    total = LedgerEntry.objects.count()
    with tqdm(desc="ledger", total=total, unit="row", delay=PATIENCE, disable=is_quiet) as bar:
        replay = audit.replay(write=repair, step=bar.update)
    for mismatch in replay.differences:
        yield from mismatch.lines()


def doubled_rewards(*, repair: bool, is_quiet: bool) -> Iterator[str]:  # noqa: ARG001 - it takes no time
    """A line for each observation that rewards several arms of a bandit that chooses one; only the latest counts."""
    for reward in audit.doubled():
        yield from reward.lines()
    if repair:
        audit.undouble()
