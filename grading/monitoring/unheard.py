"""Arms that are known only by what could be seen of them: some of their silent sessions wait for a person."""

import datetime as dt
from collections.abc import Iterable

from django.db.models import Count
from django.db.models.functions import Coalesce

from grading.models import Flag
from grading.monitoring.graders import SOMETIMES
from grading.monitoring.rule import Finding, Rule, Severity


class UnheardArm(Rule):
    """A36. Sessions that leave nothing to grade by may be the arm's worst, and nobody has looked at any."""

    id = "A36"
    title = "Nobody has graded an arm’s silent sessions"
    means = (
        "Opens when five or more sessions of an arm left nothing to grade by in the last 28 days, and neither a judge "
        "nor a person has graded any such session of it in that time. Checked every night; each arm at most once in "
        "28 days, when five of these sessions are drawn at random and flagged. Verdicts requested within the last day "
        "are waited for."
    )
    todo = "Grade the five in the review queue: they stand for all the others."
    severity = Severity.ADVISORY
    every = SOMETIMES
    page = "admin:review"

    def look(self, now: dt.datetime) -> Iterable[Finding]:  # noqa: ARG002 - a flag has no window
        arm = Coalesce("session__category__merged_into__name", "session__category__name")
        rows = Flag.objects.open().filter(rule=self.id).order_by().values(arm=arm).annotate(n=Count("pk"))
        for row in rows.order_by("arm"):
            waits = "session waits" if row["n"] == 1 else "sessions wait"
            yield Finding(
                about=row["arm"] or "",
                detail=f"{row['n']} {waits} for review, drawn at random to stand for all sessions of {row['arm']} that "
                f"left nothing to grade by. None of them had been graded. {self.todo}",
            )
