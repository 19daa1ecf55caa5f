"""Look at everything that a site, or a backup, holds; exit with 1 if something is not what it was."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from bandit.names import printable
from grading.backups import manifest, verifying
from grading.backups.manifest import NoBackup

# Problems told one by one; the others are only counted.
TOLD = 20


class Command(BaseCommand):
    help = (
        "Read every file of evidence and compare it with its hash, add the ledger up, and look at the database. Of a "
        "running site, of a restored one, or of a backup where one is named. Exits with 1 if anything is wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("backup", type=Path, nargs="?", help="a backup, or a folder of them (the latest)")

    def handle(self, *_args: Any, backup: Path | None, verbosity: int, **_options: Any) -> None:
        with tqdm(desc="reading", unit=" files", disable=verbosity == 0) as bar:
            if backup is None:
                wrong = self.tell(verifying.problems_of_site(bar.update))
            else:
                try:
                    found = manifest.find(backup)
                    held = manifest.read(found)
                except (NoBackup, OSError) as error:
                    raise CommandError(str(error)) from error
                wrong = self.tell(verifying.problems_of_backup(found, held, bar.update))
        if wrong:
            raise CommandError(f"{wrong:,} problems: what is missing or damaged is in a backup from before, perhaps")
        if backup is None:
            told = ", ".join(f"{count:,} {name}" for name, count in verifying.counts().items())
        else:
            told = (
                f"{found}: {held.rows['grading_session']:,} sessions, {held.files:,} files, made {held.made_at:%c} UTC"
            )
        self.stdout.write(self.style.SUCCESS(f"All is what it was: {told}."))

    def tell(self, problems: Iterable[str]) -> int:
        """Say what is wrong, the first TOLD of it; how much it is."""
        found = iter(problems)
        told = list(islice(found, TOLD))
        for each in told:
            self.stderr.write(self.style.ERROR(printable(each)))
        return len(told) + sum(1 for _ in found)
