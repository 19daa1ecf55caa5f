"""Move the site from SQLite to PostgreSQL."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from grading.backups import moving
from grading.backups.databases import BackupProblem


class Command(BaseCommand):
    help = (
        "Copy a stopped site's SQLite database into an empty PostgreSQL database, compare every row, and print what to "
        "do next. The old database is not changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="postgres://user:password@host/name, of an empty database")

    def handle(self, *_args: Any, url: str, **_options: Any) -> None:
        try:
            moving.move_to(url, self.stdout.write)
        except (BackupProblem, DatabaseError, OSError) as error:
            raise CommandError(f"nothing was moved: {error}") from error
