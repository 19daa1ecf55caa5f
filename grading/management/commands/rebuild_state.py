"""`rebuild --repair`, under its earlier name."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Deprecated, and gone after this release: use `manage.py rebuild --repair`."

    def handle(self, *_args: Any, verbosity: int, **_options: Any) -> None:
        self.stderr.write("rebuild_state is deprecated: use `manage.py rebuild --repair`.")
        call_command("rebuild", repair=True, verbosity=verbosity, stdout=self.stdout, stderr=self.stderr)
