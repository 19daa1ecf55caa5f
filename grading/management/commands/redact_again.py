"""Replace secrets in stored rows by the current rules."""

from typing import Any

from django.core.management.base import BaseCommand
from tqdm import tqdm

from grading.intake import redacting
from gradingsite.state import site_command


class Command(BaseCommand):
    help = (
        "Replace keys, passwords and cookies in the texts of every row, after an upgrade that recognises more of them. "
        "The site may run meanwhile. The command may be interrupted and run again. Grades and rewards do not change."
    )

    def handle(self, *_args: Any, **options: Any) -> None:
        with tqdm(total=redacting.rows_to_read(), unit="row", disable=options["verbosity"] == 0) as bar:
            changed = redacting.redact_again(site_command("redact_again"), step=bar.update)
        self.stdout.write(redacting.summary(changed))
