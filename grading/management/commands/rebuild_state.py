"""`rebuild --repair`, under its earlier name."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from gradingsite.state import site_command


class Command(BaseCommand):
    help = f"Deprecated, and gone after this release: use `{site_command('rebuild --repair')}`."

    def handle(self, *_args: Any, verbosity: int, **_options: Any) -> None:
        self.stderr.write(f"rebuild_state is deprecated: use `{site_command('rebuild --repair')}`.")
        call_command("rebuild", repair=True, verbosity=verbosity, stdout=self.stdout, stderr=self.stderr)
