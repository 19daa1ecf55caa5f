"""Compare every bucket with the ledger; exit with 1 if any differs, or an observation counts twice."""

from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from bandit.audit import BucketMismatch, DoubledReward, Replay, doubled, replay
from bandit.models import LedgerEntry
from bandit.names import printable

# Differences told one by one; the others are only counted.
TOLD = 20


class Command(BaseCommand):
    help = "Add the ledger up and compare it with the buckets that the posteriors are read from."

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        self.require_sound(self.replay(quiet=options["verbosity"] == 0))

    def replay(self, *, quiet: bool, write: bool = False) -> Replay:
        """Add everything up, with a bar that shows how far it is."""
        rows = LedgerEntry.objects.count()
        with tqdm(total=rows, desc="adding up the ledger", unit="row", unit_scale=True, disable=quiet) as bar:
            return replay(write=write, step=bar.update)

    def require_sound(self, found: Replay) -> None:
        """Say that the buckets are right, or what is wrong with them and how to go on. Raises CommandError."""
        twice = doubled()
        if not found.differences and not twice:
            sound = f"{found.buckets:,} buckets are, bit for bit, the sums of the ledger's {found.rows:,} rows."
            self.stdout.write(self.style.SUCCESS(sound))
            return
        self.tell([*found.differences, *twice])
        raise CommandError(
            f"{len(found.differences):,} buckets differ from the ledger; observations that count more than once: "
            f"{len(twice):,}. The ledger is the record: find out what wrote to the buckets, then run "
            "`manage.py replay --write`."
        )

    def tell(self, wrong: Sequence[BucketMismatch | DoubledReward]) -> None:
        for each in wrong[:TOLD]:
            self.stderr.write(self.style.ERROR(printable(str(each))))
        if (more := len(wrong) - TOLD) > 0:
            self.stderr.write(self.style.ERROR(f"and {more:,} more"))
