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
    title = "Known only by what could be seen"
    means = (
        "Raises where neither judge nor person graded any of the sessions of an arm that left nothing to grade by, "
        "and reading them at the lower of the arm's own mean and the bandit's would move the arm by more than 10 of "
        "the next 100. Looked at every night, once an arm in 28 days: five of them, drawn at random, are flagged. "
        "Verdicts asked for in the last day are waited for."
    )
    todo = "Grade them in the review queue: they speak for all the others."
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
                detail=f"{row['n']} {waits} for a person, drawn at random to speak for those of {row['arm']} that left "
                f"nothing to grade by. Nobody had graded any of them, and it matters. {self.todo}",
            )
