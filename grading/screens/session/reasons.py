"""Why a session has the reward that it has, or none; what would make it gradable; and what comes next for it."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Q
from django.urls import reverse
from django.utils import timezone

from grading.judging.allowance import quota
from grading.judging.outlook import costs
from grading.models import Grade, JudgeAttempt, JudgeJob, Session, Settlement
from grading.models.judging import AttemptOutcome, JobState, JudgeRole, Purpose
from grading.monitoring.rule import RULES, Rule
from grading.plain import counted
from grading.reward import trajectory
from grading.reward.explain import number
from grading.reward.freshness import EvidenceState
from grading.reward.outcomes import KILLED
from grading.screens.quota.judge_state import first_quota
from grading.screens.quota.view import not_before
from grading.screens.session.activity import TranscriptEvents
from grading.signals import Signals
from grading.vocabulary import NO_REWARD, Outcome, Reason, Source

# A verdict's expected cost is the mean of the verdicts of this period.
PRICED = dt.timedelta(days=7)
# The alarm rule about sessions in a row without a grade.
STREAKS = "A14"
# The template of each source's card, and the start of its title.
TEMPLATES = {Source.JUDGE: "judge", Source.CONSUMPTION: "consumption", Source.TRAJECTORY: "sum", Source.JOURNAL: "sum"}
NAMES = {
    Source.JUDGE: "The judge’s",
    Source.CONSUMPTION: "Artifacts:",
    Source.TRAJECTORY: "The trajectory’s",
    Source.JOURNAL: "The journal’s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NextJudging:
    """What the judge does next, as a verb phrase in `text`. `reading` is the number of a repeated reading, `at` the
    earliest time, `usd` the expected cost.
    """

    text: str
    place: str = ""
    reading: int | None = None
    at: dt.datetime | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to a grade: `mark` is the source's icon, `link` the text of the link to `url`; `upcoming` is what the
    judge does next.
    """

    mark: str
    title: str
    detail: str
    link: str = ""
    url: str = ""
    upcoming: NextJudging | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetCondition:
    """A condition that was met, as text, and the number of the event that shows it."""

    title: str
    detail: str = ""
    event: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePart:
    """A part of a session's evidence, and whether the verdict was based on it."""

    title: str
    was_read: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonCard:
    """A card that explains a grade, rendered by the template `name`. `decides`: the reward is this grade."""

    name: str
    title: str
    decides: bool
    grade: Grade

    @property
    def penalty(self) -> float:
        return -float(self.grade.evidence.get("penalty", 0.0))


def has_no_reward(settlement: Settlement | None) -> bool:
    """Whether the outcome stops the chain before any source."""
    return settlement is not None and settlement.value is None and not settlement.source


def is_ungraded(settlement: Settlement | None) -> bool:
    """Whether nothing graded the session, and nothing was learned from it."""
    return settlement is not None and settlement.source == Source.FLOOR and settlement.weight == 0


def has_nothing_to_read(settlement: Settlement | None) -> bool:
    """Whether the judge was not called because there is nothing for it to read."""
    steps = settlement.steps if settlement is not None else []
    return any(step["source"] == Source.JUDGE and step["reason"] == Reason.NO_EVIDENCE for step in steps)


def next_judging(job: JudgeJob | None) -> NextJudging | None:
    """What the judge does next with an open job; None if no job is open or there is no judge. Three queries."""
    if job is None or not job.is_open:
        return None
    quota_row = first_quota()
    if quota_row is None:
        return None
    now = timezone.now()
    reading = None if job.is_first else job.sample
    if job.state == JobState.PARKED:
        at = job.next_attempt_at if job.next_attempt_at > now else None
        return NextJudging(
            text="tries this session once a day, because it failed while others succeeded", reading=reading, at=at
        )
    if job.state == JobState.LEASED:
        return NextJudging(text="is reading it", reading=reading)
    if job.state != JobState.QUEUED:
        return NextJudging(text="has this session in a batch", reading=reading)
    text = "has this session in the queue"
    if job.reserved:
        text += ", drawn at random to represent similar sessions"
    at = not_before(job.next_attempt_at, quota_row)
    graded = costs.since(now - PRICED).filter(judge=JudgeRole.FIRST, outcome=AttemptOutcome.GRADED)
    return NextJudging(
        text=text,
        place=_queue_place(job),
        reading=reading,
        at=at if at > now else None,
        usd=costs.spend(graded).each_usd,
    )


def _queue_place(job: JudgeJob) -> str:
    """The job's place among those queued for its judge, such as "3rd of 12"; "" if it is the only one.

    Stale jobs come first, then reserved ones, new ones and the backlog, each in the order of worth and age. A job may
    be reached sooner, because agents take turns and reserved jobs get only their share of the calls.
    """
    # From the least important criterion to the most important one.
    ahead = Q(worth__gt=job.worth) | Q(worth=job.worth, pk__lt=job.pk)
    ahead = Q(backlog=False) | ahead if job.backlog else Q(backlog=False) & ahead
    ahead = Q(reserved=True) & ahead if job.reserved else Q(reserved=True) | ahead
    ahead = Q(stale=True) & ahead if job.stale else Q(stale=True) | ahead
    queued = JudgeJob.objects.queued().filter(judge=job.judge).order_by()
    counts = queued.aggregate(ahead=Count("pk", filter=ahead), all=Count("pk"))
    if counts["all"] <= 1:  # 0 if it has just left the queue
        return ""
    place = counts["ahead"] + 1
    is_teen = place % 100 in {11, 12, 13}
    ending = "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place:,}{ending} of {counts['all']:,}"


def ways(session: Session, signals: Signals | None, judge: Way | None, user: User | AnonymousUser) -> list[Way]:
    """The ways to a grade for an ungraded session, each of which is enough; only those open to this user.

    `judge` is the judge's way, None if there is nothing for it to read.
    """
    options = [] if judge is None else [judge]
    if user.has_perm("grading.add_grade"):
        desk = reverse("admin:review_session", args=[session.pk])
        options.append(Way(mark="human", title="Your grade", detail="Final at once", link="Grade", url=desk))
    options.append(
        Way(
            mark="facts",
            title="A fact from the runner",
            detail="An exit status, commits, pull requests or a check’s result",
            link="How to send it",
            url=reverse("api:openapi-view"),
        )
    )
    # Marking the category as looking work would give this session a grade.
    category = None if session.category is None else session.category.current
    if category is None or category.is_looking or category.is_consumption or not user.has_perm("bandit.change_arm"):
        return options
    if signals is not None and not signals.is_blind and trajectory.has_looked(signals):
        options.append(
            Way(
                mark="trajectory",
                title=f"Treat {category} as checking work",
                detail=f"A check that finds nothing to do is then graded {number(trajectory.LOOKED)}",
                link="Its properties",
                url=reverse("admin:bandit_arm_change", args=[category.pk]),
            )
        )
    return options


def judge_way(session: Session, job: JudgeJob | None, upcoming: NextJudging | None, *, may_operate: bool) -> Way:
    """The way to a grade by the judge: what the judge does next (`upcoming`), or a link for operators to ask it."""
    title = "The judge’s verdict"
    if upcoming is not None:
        detail = ", ".join(filter(None, [f"The judge {upcoming.text}", upcoming.place]))
        return Way(mark="judge", title=title, detail=detail, upcoming=upcoming)
    if not quota.is_configured():
        detail = "There is no judge. Add a key in Settings"
        return Way(mark="judge", title=title, detail=detail, link="Quota", url=reverse("admin:quota"))
    detail = "The judge was asked but gave no verdict" if job else "The judge was not asked"
    if not may_operate:
        return Way(mark="judge", title=title, detail=detail)
    plan = f"{reverse('admin:run_plan')}?session={session.pk}"
    return Way(mark="judge", title=title, detail=detail, link="Ask it again" if job else "Ask it", url=plan)


def infrastructure(session: Session, signals: Signals | None, log: TranscriptEvents) -> list[MetCondition]:
    """The conditions by which infrastructure ended the session, each with its evidence."""
    conditions = []
    error = log.last_error()
    number, text = (error.number, error.stored_text[:200]) if error else (None, "")
    is_cut = signals is not None and trajectory.was_cut(signals)
    if signals is not None and not signals.has_model_turn and signals.api_errors:
        conditions.append(
            MetCondition(title="The log contains no model response, only API errors", detail=text, event=number)
        )
    elif signals is not None and is_cut:
        conditions.append(MetCondition(title="An API error ends the log", detail=text or signals.cut, event=number))
        conditions.append(_unfinished(signals))
    if session.exit_code is not None and session.exit_code >= KILLED:
        ended = f"Exit status {session.exit_code}: signal {session.exit_code - KILLED}, as the caller reports it"
        conditions.append(MetCondition(title="The runner ended it by a signal", detail=ended))
        if signals is not None and not is_cut:
            conditions.append(_unfinished(signals))
    return conditions or [MetCondition(title=session.outcome_reason)]


def _unfinished(signals: Signals) -> MetCondition:
    work = counted(signals.calls, "tool call") if signals.calls else "no tool call"
    detail = f"After {work}, there is no final message, no merge and no passing tests"
    return MetCondition(title="The work was not finished before that", detail=detail)


def parts_read(read: EvidenceState, now: EvidenceState) -> list[EvidencePart]:
    """The parts of the evidence `now` that could make a verdict on `read` stale, those that it was based on first."""
    old, new = len(now.effects & read.effects), len(now.effects - read.effects)
    failures = now.failures - read.failures
    parts = []
    if now.transcript:
        parts.append(EvidencePart(title="Transcript", was_read=bool(read.transcript)))
    if old:
        parts.append(EvidencePart(title=counted(old, "confirmed effect"), was_read=True))
    if new:
        parts.append(
            EvidencePart(title=counted(new, "further confirmed effect" if old else "confirmed effect"), was_read=False)
        )
    if failures > 0:
        parts.append(EvidencePart(title=counted(failures, "failure"), was_read=False))
    return sorted(parts, key=lambda part: not part.was_read)


def rule_for_runs() -> Rule | None:
    """The alarm rule about sessions in a row without a grade, if the site has it."""
    return RULES.get(STREAKS)


def outcome_title(session: Session) -> str:
    """The outcome that allows no reward, as a title."""
    return Outcome(session.outcome).capitalize() if session.outcome in NO_REWARD else "No reward"


def last_cost(session: Session) -> float | None:
    """What the last verdict cost, in dollars: about what another one would."""
    paid = JudgeAttempt.objects.filter(job__session=session, outcome=AttemptOutcome.GRADED)
    return paid.filter(job__purpose=Purpose.VERDICT).order_by("-pk").values_list("cost_usd", flat=True).first()


def cards(
    settlement: Settlement | None, grades: Sequence[Grade], explained_grades: dict[Source, Grade]
) -> list[ReasonCard]:
    """A card for each of `explained_grades`, and one for a person's grade if it decides; the card of the grade that
    decides comes first. `grades` are all of the session's.
    """
    reason_cards = []
    for source, grade in explained_grades.items():
        decides = settlement is not None and settlement.source == source
        value = number(settlement.value if settlement is not None and decides else grade.value)
        title = f"Why {value}" if decides else f"{NAMES[source]} {value}"
        reason_cards.append(ReasonCard(name=TEMPLATES[source], title=title, decides=decides, grade=grade))
    if settlement is not None and settlement.source == Source.HUMAN:
        decisive = next((grade for grade in grades if grade.pk == settlement.grade_id), None)
        if decisive is not None:
            title = "Why it is excluded" if decisive.value is None else f"Why {number(decisive.value)}"
            reason_cards.append(ReasonCard(name="person", title=title, decides=True, grade=decisive))
    return sorted(reason_cards, key=lambda card: not card.decides)
