"""Make a backup of the site while it runs."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from grading.backups import making
from grading.backups.databases import BackupProblem


class Command(BaseCommand):
    help = (
        "Back the site up into a folder, while it runs: database, evidence and keys. Of what is there already it keeps "
        "the last backup of seven days and of four weeks, and links what is the same."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="the folder of backups; best on another disk")
        parser.add_argument(
            "--without-secrets", action="store_true", help="leave the keys out: keep them elsewhere yourself"
        )

    def handle(self, *_args: Any, folder: Path, without_secrets: bool, **_options: Any) -> None:
        try:
            making.make(folder, with_secrets=not without_secrets, say=self.stdout.write)
        except (BackupProblem, OSError) as error:
            raise CommandError(str(error)) from error
