"""Compare every bucket with the ledger; exit with 1 if any differs, or an observation counts twice."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from bandit.audit import doubled, replay
from bandit.models import LedgerEntry
from bandit.names import printable

# The most differences that are printed one by one; the others are only counted.
MAX_PRINTED = 20


class Command(BaseCommand):
    help = "Add the ledger up and compare it with the buckets that the posteriors are read from."

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        rows = LedgerEntry.objects.count()
        is_quiet = options["verbosity"] == 0
        with tqdm(total=rows, desc="adding up the ledger", unit="row", unit_scale=True, disable=is_quiet) as bar:
            comparison = replay(step=bar.update)
        twice = doubled()
        wrong = [*comparison.differences, *twice]
        if not wrong:
            sound = (
                f"{comparison.buckets:,} buckets are, bit for bit, the sums of the ledger's {comparison.rows:,} rows."
            )
            self.stdout.write(self.style.SUCCESS(sound))
            return
        for each in wrong[:MAX_PRINTED]:
            self.stderr.write(self.style.ERROR(printable(str(each))))
        if (more := len(wrong) - MAX_PRINTED) > 0:
            self.stderr.write(self.style.ERROR(f"and {more:,} more"))
        raise CommandError(
            f"{len(comparison.differences):,} buckets differ from the ledger; observations that count more than once: "
            f"{len(twice):,}. The ledger is the record: find out what wrote to the buckets, then run "
            "the site's command `rebuild --repair`."
        )
