"""Have the sessions judged that came in while no judge was configured."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from grading import judging
from grading.judging.allowance import quota


class Command(BaseCommand):
    help = "Enqueue sessions that the judge has not seen: those that came in while no key was set."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--abandoned", action="store_true", help="those whose job was given up instead")

    def handle(self, *_args: Any, abandoned: bool, **_options: Any) -> None:
        if not quota.is_configured():
            raise CommandError("No judge yet: add a key in Settings or set ANTHROPIC_API_KEY, then run this again")
        total = 0
        while count := judging.catch_up(abandoned=abandoned):
            total += count
        self.stdout.write(f"{total} sessions enqueued; a worker judges them as quota allows")
