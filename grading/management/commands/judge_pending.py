"""Queue sessions for the judge that came in while there was none, after showing what judging them would cost."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from grading import clock
from grading.judging import earlier, enqueuing
from grading.judging.allowance import quota
from grading.judging.earlier import Choice, ChoiceRefused
from grading.plain import counted


class Command(BaseCommand):
    help = (
        "Show how many sessions came in while there was no judge and what judging them would cost. With an option, "
        "queue them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        group = parser.add_mutually_exclusive_group()
        recent = f"those of the last {earlier.RECENT_DAYS} days"
        group.add_argument("--recent", dest="choice", action="store_const", const="recent", help=recent)
        group.add_argument("--older", dest="choice", action="store_const", const="older", help="those before them")
        group.add_argument("--all", dest="choice", action="store_const", const="all", help="both")
        group.add_argument("--abandoned", action="store_true", help="those whose job was given up instead")

    def handle(self, *_args: Any, abandoned: bool, choice: Choice | None, **_options: Any) -> None:
        if not quota.is_configured():
            raise CommandError("There is no judge: add a key in Settings or set ANTHROPIC_API_KEY, then run this again")
        now, total = clock.now(), 0
        if abandoned:
            while count := enqueuing.enqueue_abandoned():
                total += count
        elif (waiting := earlier.load_earlier(now)) is None:
            self.stdout.write("No session that came in while there was no judge waits for a choice.")
            return
        elif choice is None:
            for line in (waiting.sentence, *waiting.caveats):
                self.stdout.write(line)
            self.stdout.write("Nothing was queued. Run this again with --recent, --older or --all.")
            return
        else:
            try:
                run = earlier.start_run(
                    choice, by=None, at_most=waiting.all.count, why=f"judge_pending --{choice}", now=now
                )
            except ChoiceRefused as error:
                raise CommandError(str(error)) from error
            total = run.total
        self.stdout.write(f"{counted(total, 'session')} queued; a worker judges them as quota allows")
