"""Compare every bucket with the ledger; exit with 1 if any differs."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from bandit.audit import audit, rebuild
from bandit.models import Arm, Bandit


class Command(BaseCommand):
    help = "Add the ledger up and compare it with the buckets that the posteriors are read from."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rebuild", action="store_true", help="first throw the buckets away and rebuild them")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        if options["rebuild"]:
            for name in Bandit.objects.order_by("name").values_list("name", flat=True):
                self.stdout.write(f"{name}: {rebuild(name)} buckets rebuilt from the ledger")
        arms = list(Arm.objects.select_related("bandit").order_by("bandit", "name"))
        differences = audit(tqdm(arms, desc="auditing", unit="arm", disable=options["verbosity"] == 0))
        for difference in differences:
            self.stderr.write(self.style.ERROR(str(difference)))
        if differences:
            raise CommandError(
                f"{len(differences)} buckets differ from the ledger. The ledger is the record: find out what wrote to "
                "the buckets, then run `manage.py audit_ledger --rebuild`."
            )
        self.stdout.write(self.style.SUCCESS(f"The buckets of {len(arms)} arms are exactly the ledger's sums."))
