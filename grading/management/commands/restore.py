"""Restore a site from a backup."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from grading.backups import manifest, restoring
from grading.backups.databases import BackupProblem
from grading.backups.manifest import NoBackup
from gradingsite.state import site_command


class Command(BaseCommand):
    help = (
        "Restore a backup into the state folder and the database in the settings, which must be empty. Data that was "
        "erased after the backup was made is erased again."
    )
    requires_system_checks = []  # there is no database yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("backup", type=Path, help="a backup, or a folder of backups, of which the latest is used")
        parser.add_argument("--replace", action="store_true", help="move an existing site aside (SQLite)")

    def handle(self, *_args: Any, backup: Path, replace: bool, **_options: Any) -> None:
        try:
            source = manifest.find(backup.resolve())
            self.stdout.write(f"Restoring {source}")
            restoring.restore(source, replace=replace, say=self.stdout.write)
        except (BackupProblem, NoBackup, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Check all of it with: {site_command('verify')}")
