"""Plans judging a selection of sessions again: which sessions are judged, which are not, and why."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet, TextChoices

from grading.evidence.material import JUDGED_KINDS
from grading.judging import judges
from grading.judging.core.verdict_score import VERSION
from grading.judging.outlook.estimates import CostEstimate, estimate
from grading.judging.rubrics import kinds
from grading.models import Evidence, JudgeJob, Rubric, Session
from grading.models.fields import Keys
from grading.models.judging import JobState, Purpose
from grading.vocabulary import NO_REWARD, WorkKind


class LeftOut(TextChoices):
    """Why a session of a selection is not judged again."""

    UNCHANGED = "unchanged", "unchanged since their verdict (same evidence, rubric, model and digest)"
    JUDGING = "judging", "being judged right now"
    NO_EVIDENCE = "no_evidence", "without evidence to judge"
    NO_RUBRIC = "no_rubric", "no rubric is in force for their kind of work"
    NO_REWARD = "no_reward", "without a reward, because infrastructure ended them or they refused to start"
    GONE = "gone", "erased since"
    UNREADABLE = "unreadable", "with evidence that could not be looked up; the log says why"


# A larger selection is planned in parts, the latest sessions first.
MOST = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`session_ids` are to be judged, the latest first; `left_out` counts the others by reason.

    `rubric` is the rubric of most of these sessions, and the one of the estimate. `rest` is the session after which the
    selection goes on, None if the plan has all of it.
    """

    rubric: Rubric
    session_ids: tuple[int, ...]
    counts_by_rubric: Mapping[Rubric, int]
    left_out: Mapping[LeftOut, int]
    estimate: CostEstimate
    rest: Session | None = None

    @property
    def total(self) -> int:
        return len(self.session_ids) + sum(self.left_out.values())


def plan(sessions: QuerySet[Session], rubrics: Mapping[WorkKind, Rubric]) -> Plan | None:
    """Plan the latest MOST sessions of a selection, in six queries; None if there is no rubric at all.

    `rubrics` by kind of work. Sessions with a queued job are judged, not left out.
    """
    if not rubrics:
        return None
    selected = list(sessions.order_by("-ended_at", "-pk").values_list("pk", "outcome", "category")[: MOST + 1])
    planned = selected[:MOST]
    # It is too late to change the rubric of these.
    sent = JudgeJob.objects.filter(state__in=[JobState.LEASED, JobState.SENT], purpose=Purpose.VERDICT)
    being_judged = set(sent.values_list("session", flat=True))
    kinds_by_category = kinds.of_categories()
    # For each session with evidence for a judge, the hash of its verdict's rubric; "" if that verdict was by another
    # digest or model, or is older than the latest evidence.
    judge = judges.first()
    model = judge.model if judge else ""
    evidence = Evidence.objects.filter(session=OuterRef("pk"), kind__in=JUDGED_KINDS, problem="")
    later_evidence = evidence.filter(received_at__gt=OuterRef("verdict__created_at"))
    keys = Keys(pk for pk, _outcome, _category in planned)
    with_evidence = Session.objects.filter(Exists(evidence), pk__in=keys).order_by()
    with_evidence = with_evidence.annotate(has_later_evidence=Exists(later_evidence))
    columns = ("pk", "verdict__rubric", "verdict__version", "verdict__model", "has_later_evidence")
    verdict_rubrics = {}
    for pk, rubric_sha256, version, verdict_model, has_later_evidence in with_evidence.values_list(*columns):
        is_current = version == VERSION and verdict_model.startswith(model) and not has_later_evidence
        verdict_rubrics[pk] = rubric_sha256 if is_current else ""
    rubric_by_session: dict[int, Rubric] = {}
    left_out: Counter[LeftOut] = Counter()
    for pk, outcome, category in planned:
        rubric = rubrics.get(kinds_by_category.get(category, WorkKind.PRODUCTION))
        if outcome in NO_REWARD:
            left_out[LeftOut.NO_REWARD] += 1
        elif pk in being_judged:
            left_out[LeftOut.JUDGING] += 1
        elif pk not in verdict_rubrics:
            left_out[LeftOut.NO_EVIDENCE] += 1
        elif rubric is None:
            left_out[LeftOut.NO_RUBRIC] += 1
        elif verdict_rubrics[pk] == rubric.sha256:
            left_out[LeftOut.UNCHANGED] += 1
        else:
            rubric_by_session[pk] = rubric
    counts_by_rubric = Counter(rubric_by_session.values()).most_common()
    main_rubric = counts_by_rubric[0][0] if counts_by_rubric else next(iter(rubrics.values()))
    return Plan(
        rubric=main_rubric,
        session_ids=tuple(rubric_by_session),
        counts_by_rubric=dict(counts_by_rubric),
        left_out=dict(left_out),
        estimate=estimate(len(rubric_by_session), main_rubric),
        rest=Session.objects.get(pk=planned[-1][0]) if len(selected) > MOST else None,
    )
