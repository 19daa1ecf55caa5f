"""Check a site or a backup; exit with 1 if anything is missing or damaged."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from bandit.names import printable
from grading.backups import manifest, verifying
from grading.backups.manifest import NoBackup

# Problems that are printed; the others are only counted.
PRINTED = 20


class Command(BaseCommand):
    help = (
        "Read every file of evidence and compare it with its hash, add up the ledger, and check the database. Checks "
        "this site, or a backup if one is named. Exits with 1 if anything is wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("backup", type=Path, nargs="?", help="a backup, or a folder of them (the latest)")

    def handle(self, *_args: Any, backup: Path | None, verbosity: int, **_options: Any) -> None:
        with tqdm(desc="reading", unit=" files", disable=verbosity == 0) as bar:
            if backup is None:
                count = self.print_problems(verifying.problems_of_site(bar.update))
            else:
                try:
                    folder = manifest.find(backup)
                    contents = manifest.read(folder)
                except (NoBackup, OSError) as error:
                    raise CommandError(str(error)) from error
                count = self.print_problems(verifying.problems_of_backup(folder, contents, bar.update))
        if count:
            raise CommandError(f"{count:,} problems. An earlier backup may have what is missing or damaged.")
        if backup is None:
            summary = ", ".join(f"{count:,} {name}" for name, count in verifying.counts().items())
        else:
            sessions = contents.rows["grading_session"]
            summary = f"{folder}: {sessions:,} sessions, {contents.files:,} files, made {contents.made_at:%c} UTC"
        self.stdout.write(self.style.SUCCESS(f"No problems: {summary}."))

    def print_problems(self, problems: Iterable[str]) -> int:
        """Print the first PRINTED problems. Returns the number of all."""
        count = 0
        for count, problem in enumerate(problems, start=1):
            if count <= PRINTED:
                self.stderr.write(self.style.ERROR(printable(problem)))
        return count
