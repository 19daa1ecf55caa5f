"""`manage.py accept_keys`: make this host's SECRET_KEY and CHANCE_KEY those of the site."""

from typing import Any

from django.core.management.base import BaseCommand

from gradingsite import keys


class Command(BaseCommand):
    help = (
        "Makes this host's SECRET_KEY and CHANCE_KEY those of the site, if the former ones are lost. Hosts with other "
        "keys no longer start. People must sign in again, and what was encrypted with the former SECRET_KEY must be "
        "entered again: the judge's key, the channels for notices, second factors."
    )

    def handle(self, **_options: Any) -> None:
        keys.record_fingerprints(replace=True)
        self.stdout.write("This host’s SECRET_KEY and CHANCE_KEY are now the site’s. Set the same on every other host.")
