"""Whether anybody knows how good a grader is: blind grades of people on the random slice, by grader identity.

Only sessions count whose turn in the slice's random order has come: what people took first for its impact, or because a
rule flagged it, is no sample of all.
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef

from grading.models import Grade, ReviewAnswer
from grading.models.grades import GradeQuerySet
from grading.models.sessions import yours
from grading.monitoring.graders import IDENTITY, SOMETIMES, instruments
from grading.monitoring.rule import Finding, Rule, Severity

# With fewer sessions that a person graded blind, nobody knows how good a grader is.
ENOUGH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeInstrument:
    """One instrument: what answered, where, under which rubric, on a digest of which version."""

    model: str
    route: str
    rubric: str
    version: str

    def __str__(self) -> str:
        parts = (self.model, self.route and f"at {self.route}", self.rubric and f"rubric {self.rubric[:4]}")
        return " ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationStatus:
    """The grader in use and on how many sessions of the random slice a person's blind grade stands beside its own, once
    their turn in the random order has come: ENOUGH at most, since more of them say nothing else here.
    """

    grader: JudgeInstrument
    blind: int

    @property
    def is_calibrated(self) -> bool:
        return self.blind >= ENOUGH

    @property
    def missing(self) -> int:
        return max(ENOUGH - self.blind, 0)


def compared() -> GradeQuerySet:
    """Verdicts on sessions that a person graded blind in the random slice, once their turn in it has come. Flags alone
    calibrate nothing.
    """
    blind = ReviewAnswer.objects.blind().drawn()
    return Grade.objects.verdicts().first_readings().filter(session__in=blind.values("session"))


def in_use() -> CalibrationStatus | None:
    """The grader that gave the latest verdict for the chain; None before the first verdict. Two queries."""
    verdicts = Grade.objects.verdicts().first_readings()
    identity = verdicts.chain().filter(yours()).order_by("-pk").values(*IDENTITY).first()
    if identity is None:
        return None
    same_grader = verdicts.filter(session=OuterRef("session"), **identity)
    blind = ReviewAnswer.objects.blind().drawn().filter(Exists(same_grader)).order_by().values("session").distinct()
    return CalibrationStatus(blind=blind[:ENOUGH].count(), grader=JudgeInstrument(**identity))


class Uncalibrated(Rule):
    """A30. A grade that nobody has compared with a person's is a number, not a measurement."""

    id = "A30"
    title = "Judge not calibrated"
    means = (
        "Opens when a judge that decided rewards in the last 14 days (by model, route, rubric and digest) has "
        f"fewer than {ENOUGH} sessions from the random slice that a person graded in the random order before "
        "seeing its answer."
    )
    todo = "In the review queue, grade sessions from the random slice before you reveal the judge’s answer."
    severity = Severity.ADVISORY
    every = SOMETIMES

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        counts = compared().order_by().values_list(*IDENTITY).annotate(n=Count("session", distinct=True))
        blind = {tuple(identity): n for *identity, n in counts}
        for each in instruments(now):
            n = blind.get((each.model, each.route, each.rubric, each.version), 0)
            if n < ENOUGH:
                yield Finding(
                    about=str(each)[:150],
                    detail=f"{each} is not calibrated: {n} of {ENOUGH} blind grades, so how far its grades are from "
                    "people's is unknown. Flagged sessions and those picked for impact aren't a fair sample. "
                    f"Grade {ENOUGH - n} more of the random slice blind, in its order.",
                )
