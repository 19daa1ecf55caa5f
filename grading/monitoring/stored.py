"""Whether the evidence is still what was stored."""

import datetime as dt
from collections.abc import Iterable, Sequence

from grading.models import BlobProblem, Evidence
from grading.monitoring.rule import Finding, Rule, stamp


class DamagedEvidence(Rule):
    """A48. A grade can be derived again only from what it was derived from."""

    id = "A48"
    title = "Stored evidence is damaged"
    means = (
        "Opens when stored bytes are missing or differ from what was stored. Every night a thirtieth of all "
        "evidence is read in full. Closes when the bytes are back."
    )
    todo = (
        "Check the disk and restore the evidence folder from a backup, or send those sessions again: identical "
        "bytes replace the damaged ones."
    )
    every = dt.timedelta(minutes=1)
    named = 5

    def look(self, now: dt.datetime) -> Iterable[Finding]:  # noqa: ARG002 - a rule's signature
        blobs = list(BlobProblem.objects.damaged().order_by("since", "pk"))
        if blobs:
            listed = ", ".join(f"{blob.pk[:12]}… ({blob.what})" for blob in blobs[: self.named])
            more = f" and {len(blobs) - self.named} more" if len(blobs) > self.named else ""
            files = "1 stored file is" if len(blobs) == 1 else f"{len(blobs)} stored files are"
            yield Finding(
                detail=f"{files} damaged, found {stamp(blobs[0].since)}: {listed}{more}. Grades based on them "
                f"stay as they are, but can’t be derived again. {self.todo}"
            )

    def sessions(self, about: str, now: dt.datetime) -> Sequence[int]:  # noqa: ARG002 - there is one alarm
        damaged = list(BlobProblem.objects.damaged().values_list("pk", flat=True))
        rows = Evidence.objects.filter(sha256__in=damaged).order_by("session__ended_at", "session")
        return list(dict.fromkeys(rows.values_list("session", flat=True)))
