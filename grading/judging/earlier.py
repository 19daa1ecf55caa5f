"""Sessions that arrived while there was no judge: which sessions these are, and what judging them would cost.

A new key does not have them judged. A person chooses which: those of the last 14 days, the older ones, or all.
"""

import datetime as dt
import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q

from grading.judging import judges
from grading.judging.allowance import prices, quota
from grading.judging.outlook.estimates import CostEstimate, estimate
from grading.judging.rubrics import rejudge
from grading.models import Grade, JudgeJob, JudgeRun, Rubric, Session
from grading.models.fields import Keys
from grading.models.judging import JobState, Purpose
from grading.models.sessions import SessionQuerySet
from grading.plain import counted
from grading.vocabulary import NO_REWARD, JudgeChoice, Reason, Source, Status, WorkKind

RECENT_DAYS = 14
Choice = Literal["recent", "older", "all"]
CHOICES: tuple[Choice, ...] = get_args(Choice)


class ChoiceRefused(Exception):
    """Nothing was queued. The message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierSessions:
    """The number and cost of the sessions that wait for a choice: those of the last RECENT_DAYS, and older ones."""

    recent: CostEstimate
    older: CostEstimate

    @property
    def all(self) -> CostEstimate:
        return replace(self.recent, count=self.recent.count + self.older.count)

    @property
    def recent_words(self) -> str:
        return f"{counted(self.recent.count, 'session')} of the last {RECENT_DAYS} days, {price_words(self.recent)}"

    @property
    def older_words(self) -> str:
        if self.recent.count:
            return f"{counted(self.older.count, 'older one')}, {price_words(self.older)}"
        return f"{counted(self.older.count, 'session')} older than {RECENT_DAYS} days, {price_words(self.older)}"

    @property
    def all_words(self) -> str:
        return f"{self.all.count:,}, {price_words(self.all)}"

    @property
    def sentence(self) -> str:
        """Both groups, such as "12 sessions of the last 14 days, about $0.40; 62 older ones, about $2.10."."""
        parts = []
        if self.recent.count:
            parts.append(self.recent_words)
        if self.older.count:
            parts.append(self.older_words)
        return f"{'; '.join(parts)}."

    @property
    def caveats(self) -> list[str]:
        """Why the price is a rough estimate, a sentence for each reason."""
        first_judge = judges.first()
        model = first_judge.model if first_judge else settings.JUDGE_MODEL
        sentences = []
        if not self.recent.measured:
            sentences.append(f"{model} has given no verdict yet, so the price assumes the longest possible prompt.")
        if not prices.is_listed(model):
            sentences.append(f"JUDGE_PRICES lists no price for {model}, so the price of “other” is assumed.")
        return sentences


def price_words(estimate: CostEstimate) -> str:
    """Words such as "about $0.40", rounded up to the cent. Before the first verdict, "at most" instead of "about"."""
    cents = math.ceil(round(100 * estimate.usd, 6))
    return f"{'about' if estimate.measured else 'at most'} ${cents / 100:,.2f}"


def sessions(choice: Choice, now: dt.datetime) -> SessionQuerySet:
    """Your sessions that wait for a choice: the recent ones, the older ones, or all."""
    recent = Q(ended_at__gt=now - dt.timedelta(days=RECENT_DAYS))
    conditions = {"recent": recent, "older": ~recent, "all": Q()}
    return _waiting().filter(conditions[choice])


def load_earlier(now: dt.datetime) -> EarlierSessions | None:
    """The number and cost of the sessions that wait for a choice. None if none wait, or no rubric is in force."""
    recent = Q(ended_at__gt=now - dt.timedelta(days=RECENT_DAYS))
    counts = _waiting().order_by().aggregate(recent=Count("pk", filter=recent), older=Count("pk", filter=~recent))
    rubric = _pricing_rubric() if any(counts.values()) else None
    if rubric is None:
        return None
    one_verdict = estimate(1, rubric)
    return EarlierSessions(
        recent=replace(one_verdict, count=counts["recent"]), older=replace(one_verdict, count=counts["older"])
    )


def start_run(choice: Choice, *, by: User | None, at_most: int, why: str, now: dt.datetime) -> JudgeRun:
    """Start a run that judges the chosen sessions. It can be cancelled. If two people choose the same sessions at once,
    the second is refused.

    `at_most` is the number of sessions for which the person saw the price. Raises ChoiceRefused if more wait now, none
    wait, or there is no judge or rubric.
    """
    first_judge = judges.first()
    if first_judge is None:
        raise ChoiceRefused("Nothing was queued, because there is no judge. Enter the judge’s key first.")
    with transaction.atomic():
        quota.lock(first_judge)
        keys = list(sessions(choice, now).order_by("-ended_at", "-pk").values_list("pk", flat=True))
        rubric = _pricing_rubric()
        if not keys or rubric is None:
            raise ChoiceRefused("Nothing was queued, because all of these sessions have already been chosen or judged.")
        if len(keys) > at_most:
            raise ChoiceRefused(
                f"Nothing was queued, because {len(keys):,} sessions wait now instead of {at_most:,}. Choose again."
            )
        usd = estimate(len(keys), rubric).usd
        return rejudge.start(keys, rubric, by=by, why=why, estimated_usd=usd)


def _waiting() -> SessionQuerySet:
    """Your sessions that arrived while there was no judge and have had no job or verdict since.

    Left out are sessions that must not be judged, get no reward, have nothing to read, or were chosen already.
    `enqueuing.came_without_judge` is the same rule for one session.
    """
    judge_grades = Grade.objects.chain().filter(source=Source.JUDGE)
    # A later skip for another reason, such as no evidence, replaces "there is no judge".
    later_skips = judge_grades.filter(session=OuterRef("session"), pk__gt=OuterRef("pk"), status=Status.SKIPPED)
    other_reasons = later_skips.exclude(reason=Reason.NOT_CONFIGURED)
    without_judge = Grade.objects.chain().without_judge().exclude(Exists(other_reasons))
    jobs = JudgeJob.objects.filter(session=OuterRef("pk"), purpose=Purpose.VERDICT).exclude(state=JobState.CANCELLED)
    verdicts = judge_grades.filter(session=OuterRef("pk"), status=Status.SCORED)
    waiting = (
        Session.objects.yours()
        .filter(pk__in=without_judge.order_by().values("session"))
        .exclude(history=JudgeChoice.NONE)
        .exclude(outcome__in=NO_REWARD)
        .exclude(Exists(jobs))
        .exclude(Exists(verdicts))
    )
    # A person has chosen these too: their run has not made their jobs yet.
    unfinished_runs = JudgeRun.objects.filter(cancelled_at=None, placed__lt=F("total"))
    chosen = [session_id for run in unfinished_runs for session_id in run.sessions[run.placed :]]
    return waiting.exclude(pk__in=Keys(chosen)) if chosen else waiting


def _pricing_rubric() -> Rubric | None:
    """The rubric by which the price is estimated: that for production, or else any in force. None if none is."""
    rubrics = Rubric.objects.in_force()
    return rubrics.get(WorkKind.PRODUCTION) or next(iter(rubrics.values()), None)
