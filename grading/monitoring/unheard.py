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
    title = "An arm’s ungraded sessions could change its share"
    means = (
        "Opens when neither a judge nor a person has graded any of an arm’s sessions that left nothing to grade "
        "by, and counting them at the lower of the arm’s mean and the bandit’s would change its share by more "
        "than 10 of the next 100. Checked every night; each arm at most once in 28 days, when five such sessions "
        "are drawn at random and flagged. Verdicts requested within the last day are waited for."
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
                f"left nothing to grade by. None of them had been graded, and it matters. {self.todo}",
            )
