"""What judging a selection of sessions again would do, before anything is done: who is asked, who is not, and why."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Max, QuerySet

from grading.core.verdict_score import VERSION
from grading.core.vocabulary import NO_REWARD
from grading.judging import judges
from grading.judging.inputs import JUDGED_KINDS
from grading.judging.outlook.estimates import Estimate, estimate
from grading.judging.rubrics.verdicts import verdicts
from grading.models import Evidence, JudgeJob, Rubric, Session
from grading.models.judging import JobState, Purpose


class LeftOut(StrEnum):
    """Why a session of a selection is not asked about. `words` is what the screens show."""

    UNCHANGED = "unchanged"
    JUDGING = "judging"
    NO_EVIDENCE = "no_evidence"
    NO_REWARD = "no_reward"
    GONE = "gone"
    UNREADABLE = "unreadable"

    @property
    def words(self) -> str:
        return LEFT_OUT_WORDS[self]


LEFT_OUT_WORDS = {
    LeftOut.UNCHANGED: "unchanged: the same evidence, rubric, model and digest are never asked about twice",
    LeftOut.JUDGING: "being judged at this moment",
    LeftOut.NO_EVIDENCE: "without anything to read",
    LeftOut.NO_REWARD: "without a reward: died of infrastructure, or refused to start",
    LeftOut.GONE: "erased since",
    LeftOut.UNREADABLE: "with evidence that could not be looked up; the log says why",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`ask` are the sessions to be judged, the latest first; `left_out` counts the others, by why."""

    rubric: Rubric
    ask: tuple[int, ...]
    left_out: Mapping[LeftOut, int]
    estimate: Estimate

    @property
    def total(self) -> int:
        return len(self.ask) + sum(self.left_out.values())


def plan(sessions: QuerySet[Session], rubric: Rubric) -> Plan:
    """Sort a selection in five queries, however large. Jobs that are queued already are asked for, not left out."""
    outcomes = dict(sessions.order_by("-ended_at", "-pk").values_list("pk", "outcome"))
    judging = _being_judged()
    read_at = _evidence()
    unchanged = _unchanged(rubric, read_at)
    ask: list[int] = []
    left_out: Counter[LeftOut] = Counter()
    for pk, outcome in outcomes.items():
        if outcome in NO_REWARD:
            left_out[LeftOut.NO_REWARD] += 1
        elif pk in judging:
            left_out[LeftOut.JUDGING] += 1
        elif pk not in read_at:
            left_out[LeftOut.NO_EVIDENCE] += 1
        elif pk in unchanged:
            left_out[LeftOut.UNCHANGED] += 1
        else:
            ask.append(pk)
    return Plan(rubric=rubric, ask=tuple(ask), left_out=dict(left_out), estimate=estimate(len(ask), rubric))


def _being_judged() -> set[int]:
    """Sessions whose question is on its way: it is too late to change it."""
    asked = JudgeJob.objects.filter(state__in=[JobState.LEASED, JobState.SENT], purpose=Purpose.VERDICT)
    return set(asked.values_list("session", flat=True))


def _evidence() -> dict[int, dt.datetime]:
    """When the latest evidence of each session came in that a judge may read."""
    rows = Evidence.objects.filter(kind__in=JUDGED_KINDS, problem="").order_by()
    return dict(rows.values_list("session").annotate(latest=Max("received_at")))


def _unchanged(rubric: Rubric, read_at: Mapping[int, dt.datetime]) -> set[int]:
    """Sessions whose verdict is of this rubric, digest and model, with no evidence since."""
    judge = judges.first()
    model = judge.model if judge else ""
    rows = verdicts().order_by("pk").values_list("session", "rubric", "version", "model", "created_at")
    latest = {row[0]: row[1:] for row in rows.iterator()}
    return {
        session
        for session, (sha256, version, answered, at) in latest.items()
        if (sha256, version) == (rubric.sha256, VERSION)
        and answered.startswith(model)
        and session in read_at
        and read_at[session] <= at
    }
