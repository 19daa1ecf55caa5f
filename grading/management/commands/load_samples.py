"""Load the sample sessions."""

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone
from tqdm import tqdm

from grading.agent import samples
from gradingsite.state import site_command


class Command(BaseCommand):
    help = "Load a dozen real sessions, marked as samples, so that there is something to look at."

    def handle(self, *_args: Any, **_options: Any) -> None:
        count = sum(1 for _receipt in tqdm(samples.load(timezone.now()), unit="session", disable=None))
        self.stdout.write(f"{count} sample sessions loaded; `{site_command('remove_samples')}` removes them again")
