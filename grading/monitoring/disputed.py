"""Verdicts that something speaks against: the judge's own other readings, or what the session left behind."""

import datetime as dt
from collections.abc import Iterable, Sequence

from grading.models import JudgeJob, Session
from grading.models.judging import Purpose
from grading.models.sessions import yours
from grading.monitoring.flag_rule import Flagged, FlagRule, too_often_by_agent, total
from grading.monitoring.graders import SOMETIMES
from grading.monitoring.rule import Finding, Severity
from grading.monitoring.weekly import is_too_often
from grading.reward import rereading
from grading.reward.decide import MAX_ADDED, MAX_SPREAD, CurrentGrades, contests, gap, is_claimed
from grading.reward.explain import number
from grading.reward.rereading import CONTESTED
from grading.reward.rewards import CLAIMED_ABOVE
from grading.reward.standing import CONTESTED_ABOVE
from grading.vocabulary import NO_REWARD, Source

LONGEST_WAIT = dt.timedelta(days=2)


class UnsteadyJudge(FlagRule):
    """Three readings of one session, and as many opinions: its verdict says little about it."""

    id = "A37"
    title = "The judge’s readings of a session are far apart"
    means = (
        f"Flags a session with three readings more than {number(MAX_SPREAD)} apart; the median is the verdict. "
        "Opens at the third such session in seven days."
    )
    todo = "Grade them. If it keeps happening, look at where the readings differ: the rubric may not cover such work."
    severity = Severity.ADVISORY
    settled = "it has a different verdict now"
    every = SOMETIMES

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - asked alike
        judge = holds.get(Source.JUDGE)
        if judge is None or not judge.samples or judge.readings_agree or Source.HUMAN in holds:
            return ""
        said = ", ".join(map(number, judge.samples))
        return f"the judge’s three readings are {number(judge.spread)} apart: {said}; the median counts"

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        count = total(flags)
        if is_too_often(count):
            yield Finding(
                detail=f"Of {count} sessions in seven days three readings of the judge are more than "
                f"{number(MAX_SPREAD)} apart. {self.todo}"
            )


class Contested(FlagRule):
    """Artifacts and judge contradict each other, and asking the judge again has not settled it, or only for the most
    part.
    """

    id = CONTESTED
    title = "What a session left behind contradicts the judge"
    means = (
        f"Flags a session whose artifacts would be worth more than {number(CONTESTED_ABOVE)} above its current "
        "verdict, once the judge has read it three times or won’t read it again. Opens at an agent’s third such "
        "session in seven days, or when one has been waiting for the judge for two days."
    )
    todo = (
        "Look at what it left behind. If it is filler, make the artifact rules stricter; if it is good, the "
        "rubric misses such work."
    )
    settled = "the judge and the artifacts agree now, or the judge will read it again"
    every = SOMETIMES

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - asked alike
        if Source.HUMAN in holds or not _is_judged(holds) or session.outcome in NO_REWARD or not contests(holds):
            return ""
        above = f"its artifacts would be worth {number(gap(holds))} more than the judge says"
        if holds[Source.JUDGE].readings_agree:
            return f"{above}, after three readings; they add {number(MAX_ADDED)} to the verdict, and no more"
        if rereading.is_coming(session):
            return ""
        return f"{above}, and the judge won’t read it again: until a person grades it, it counts little or nothing"

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        for name, count in too_often_by_agent(flags):
            yield Finding(
                about=name[:150],
                detail=f"{count} sessions of {name} in seven days left behind what would be worth far more than "
                f"the judge says. {self.todo}",
            )

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        yield from super().look(now)
        late = JudgeJob.objects.open().filter(yours(), purpose=Purpose.SAMPLE, created_at__lte=now - LONGEST_WAIT)
        if count := late.count():
            yield Finding(
                about="readings",
                detail=f"Sessions in doubt that have waited to be read again for more than two days: {count}. "
                "Until then the bandits learn little or nothing from them, and bad sessions may be among them. Extra "
                "readings come last: give the judge more budget or quota, or grade them yourself.",
            )


class ClaimedAbove(FlagRule):
    """An agent claims far more than its judge saw. The verdict stands; people are told."""

    id = CLAIMED_ABOVE
    title = "An agent claims far more than the judge saw"
    means = (
        "Flags a session whose artifacts, vouched for by its agent alone, would be worth more than "
        f"{number(CONTESTED_ABOVE)} above its verdict. The verdict stands. Opens at an agent’s third such session "
        "in seven days."
    )
    todo = (
        "Check whether the claims are true. Either the agent makes them up, or the judge isn’t shown what it left "
        "behind."
    )
    severity = Severity.ADVISORY
    settled = "the judge and the claims agree now"
    every = SOMETIMES

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - asked alike
        if Source.HUMAN in holds or not _is_judged(holds) or session.outcome in NO_REWARD:
            return ""
        if gap(holds) <= CONTESTED_ABOVE or not is_claimed(holds):
            return ""
        return (
            f"the agent claims artifacts that would be worth {number(gap(holds))} more than the judge says; "
            "the verdict stands"
        )

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        for name, count in too_often_by_agent(flags):
            yield Finding(
                about=name[:150],
                detail=f"{count} sessions of {name} in seven days claim far more than the judge saw. {self.todo}",
            )


def _is_judged(holds: CurrentGrades) -> bool:
    return Source.JUDGE in holds and holds[Source.JUDGE].value is not None
