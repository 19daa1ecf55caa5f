"""Rebuild the buckets from the ledger and compare; with --write, put right those that differ."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from bandit.audit import BucketMismatch, DoubledReward, doubled, undouble
from bandit.management.commands.audit_ledger import Command as Audit


class Command(Audit):
    help = "Rebuild the buckets from the ledger alone and compare them with the stored ones."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--write", action="store_true", help="put the ledger's sums in place of what differs")
        parser.add_argument("--noinput", action="store_true", help="with --write: do not ask first")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        quiet = options["verbosity"] == 0
        found = self.replay(quiet=quiet)
        wrong: list[BucketMismatch | DoubledReward] = [*found.differences, *doubled()]
        if wrong and options["write"]:
            self.tell(wrong)
            if not options["noinput"]:
                self.ask(len(wrong))
            written = self.replay(quiet=quiet, write=True)
            self.stdout.write(f"{len(written.differences):,} buckets were repaired.")
            if taken := undouble():
                self.stdout.write(f"Rewards taken back because of a later one: {taken:,}.")
            found = self.replay(quiet=quiet)
        self.require_sound(found)

    def ask(self, count: int) -> None:
        """Raises CommandError for any answer but yes."""
        told = f"Put these {count:,} right: by the ledger's sums, and by the latest of several rewards?"
        if input(f"{told} Posteriors will move. Type yes: ") != "yes":
            raise CommandError("Nothing was written.")
