"""Remove the sample sessions."""

import getpass
from typing import Any

from django.core.management.base import BaseCommand

from grading.agent import samples


class Command(BaseCommand):
    help = "Remove every sample session with its grades and rewards; the bandits forget them exactly."

    def handle(self, *_args: Any, **_options: Any) -> None:
        counts = samples.remove(f"{getpass.getuser()} (shell)")
        self.stdout.write(f"{counts.get('session', 0)} sample sessions removed")
