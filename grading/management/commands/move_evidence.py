"""`manage.py move_evidence`: copy the evidence to another storage."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from grading.busy import StorageAway
from grading.evidence import moving
from grading.evidence.storages import storage_of
from grading.models import Evidence

PLACES = "files, database or s3://bucket/folder"


class Command(BaseCommand):
    help = (
        "Copy the evidence to another storage, and read each copy back. The site may run meanwhile, and nothing is "
        "deleted. An interrupted run can be started again. Afterwards set EVIDENCE on every host and restart, then run "
        "it once more, with --from, for what was received in between."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("target", help=PLACES)
        parser.add_argument("--from", dest="source", default="", help=f"{PLACES}; without it, the site's own")

    def handle(self, *, target: str, source: str, **options: Any) -> None:
        source = source or settings.EVIDENCE
        if source == target:
            raise CommandError(f"expected two storages, got {target} twice: name the one to copy from with --from")
        done = moving.Copied(copied=0, before=0, lacking=[])
        try:
            hashes = Evidence.objects.values("sha256").distinct().count()
            copies = moving.copy(storage_of(source), storage_of(target))
            for latest in tqdm(copies, total=hashes, unit="blob", disable=options["verbosity"] == 0):
                done = latest
        except (ImproperlyConfigured, StorageAway, moving.CopyFailed) as error:
            raise CommandError(f"{error}. What was copied stays; run this again to go on.") from error
        self.stdout.write(f"{done.copied:,} files copied from {source} to {target}; {done.before:,} were there before.")
        if done.lacking:
            names = ", ".join(sha256[:12] for sha256 in done.lacking[:5])
            raise CommandError(
                f"{len(done.lacking):,} blobs are missing or damaged in {source} ({names}): restore them from a backup "
                "there, then run this again"
            )
