"""Write the current-state rows anew, where they are not what the other rows say."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from tqdm import tqdm

from grading.models import Session
from grading.reward import state


class Command(BaseCommand):
    help = (
        "Compare what lists and counts read of each session with what its rewards, verdicts and flags say, and put "
        "right what differs. It may be interrupted: --after goes on where it was."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--after", type=int, default=0, help="leave out the sessions up to this key")

    def handle(self, *_args: Any, **options: Any) -> None:
        count, come_to = 0, options["after"]
        left = Session.objects.filter(pk__gt=come_to)
        with tqdm(total=left.count(), unit="session", disable=options["verbosity"] == 0) as bar:
            try:
                for key, looked_at, wrong in state.rebuild(after=come_to):
                    come_to, count = key, count + wrong
                    bar.update(looked_at)
            except KeyboardInterrupt:
                self.stderr.write(f"Stopped. `manage.py rebuild_state --after {come_to}` goes on from here.")
                raise
        self.stdout.write(
            f"{count:,} of the sessions' states were wrong, and are right now." if count else "All right."
        )
