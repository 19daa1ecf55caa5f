"""What judging a selection of sessions again would do, before anything is done: who is asked, who is not, and why."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Exists, OuterRef, QuerySet

from grading.evidence.material import JUDGED_KINDS
from grading.judging import judges
from grading.judging.core.verdict_score import VERSION
from grading.judging.outlook.estimates import CostEstimate, estimate
from grading.judging.rubrics import kinds
from grading.models import Evidence, JudgeJob, Rubric, Session
from grading.models.fields import Keys
from grading.models.judging import JobState, Purpose
from grading.vocabulary import NO_REWARD, WorkKind


class LeftOut(StrEnum):
    """Why a session of a selection is not asked about. `words` is what the screens show."""

    UNCHANGED = "unchanged"
    JUDGING = "judging"
    NO_EVIDENCE = "no_evidence"
    NO_RUBRIC = "no_rubric"
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
    LeftOut.NO_RUBRIC: "of a kind of work for which no rubric is in force",
    LeftOut.NO_REWARD: "without a reward: died of infrastructure, or refused to start",
    LeftOut.GONE: "erased since",
    LeftOut.UNREADABLE: "with evidence that could not be looked up; the log says why",
}


# Of a larger selection the latest are looked at, and the rest after them.
MOST = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`ask` are the sessions to be judged, the latest first, `asked` how many by each rubric; `left_out` counts the
    others, by why. `rubric` is that of most of them, for which the estimate is: with another one a little more or less
    is read. `rest`: the session after which the selection goes on, None where all of it was looked at.
    """

    rubric: Rubric
    ask: tuple[int, ...]
    asked: Mapping[Rubric, int]
    left_out: Mapping[LeftOut, int]
    estimate: CostEstimate
    rest: Session | None = None

    @property
    def total(self) -> int:
        return len(self.ask) + sum(self.left_out.values())


def plan(sessions: QuerySet[Session], rubrics: Mapping[WorkKind, Rubric]) -> Plan | None:
    """Sort the latest MOST of a selection in six queries; None where there is no rubric at all.

    `rubrics`: by which each kind of work would be judged. Jobs that are queued already are asked for, not left out.
    """
    if not rubrics:
        return None
    found = list(sessions.order_by("-ended_at", "-pk").values_list("pk", "outcome", "category")[: MOST + 1])
    rows, keys = found[:MOST], [pk for pk, _, _ in found[:MOST]]
    # Sessions whose question is on its way: it is too late to change it.
    sent = JudgeJob.objects.filter(state__in=[JobState.LEASED, JobState.SENT], purpose=Purpose.VERDICT)
    judging = set(sent.values_list("session", flat=True))
    kind_of = kinds.of_categories()
    by_kind = {kind: rubric.sha256 for kind, rubric in rubrics.items()}
    last = _last_asked(keys)
    ask: list[int] = []
    asked: Counter[Rubric] = Counter()
    left_out: Counter[LeftOut] = Counter()
    for pk, outcome, category in rows:
        kind = kind_of.get(category, WorkKind.PRODUCTION)
        if outcome in NO_REWARD:
            left_out[LeftOut.NO_REWARD] += 1
        elif pk in judging:
            left_out[LeftOut.JUDGING] += 1
        elif pk not in last:
            left_out[LeftOut.NO_EVIDENCE] += 1
        elif kind not in rubrics:
            left_out[LeftOut.NO_RUBRIC] += 1
        elif last[pk] == by_kind[kind]:
            left_out[LeftOut.UNCHANGED] += 1
        else:
            ask.append(pk)
            asked[rubrics[kind]] += 1
    most = asked.most_common()
    rubric = most[0][0] if most else next(iter(rubrics.values()))
    return Plan(
        rubric=rubric,
        ask=tuple(ask),
        asked=dict(most),
        left_out=dict(left_out),
        estimate=estimate(len(ask), rubric),
        rest=Session.objects.get(pk=keys[-1]) if len(found) > MOST else None,
    )


def _last_asked(keys: Iterable[int]) -> dict[int, str]:
    """Of each of these sessions that has evidence for a judge: the hash of the rubric that it was last judged by, where
    that was by this digest and model with no evidence since; else empty. One query.
    """
    judge = judges.first()
    model = judge.model if judge else ""
    read = Evidence.objects.filter(session=OuterRef("pk"), kind__in=JUDGED_KINDS, problem="")
    later = read.filter(received_at__gt=OuterRef("verdict__created_at"))
    sessions = Session.objects.filter(Exists(read), pk__in=Keys(keys)).annotate(is_unread=Exists(later)).order_by()
    verdict = ("verdict__rubric", "verdict__version", "verdict__model")
    return {
        pk: rubric if version == VERSION and answered.startswith(model) and not is_unread else ""
        for pk, rubric, version, answered, is_unread in sessions.values_list("pk", *verdict, "is_unread")
    }
