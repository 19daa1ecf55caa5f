"""Sessions whose verdict stands still, though nothing that a judge said of them ended it."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from grading.models import Grade, JudgeAttempt, JudgeJob
from grading.models.judging import AttemptOutcome, JobState, Purpose
from grading.models.sessions import yours
from grading.monitoring.rule import Finding, RuleOfSessions
from grading.vocabulary import Reason

# Earlier versions ended a job for these, though they say nothing of its session.
OURS = (
    Reason.TIMEOUT,
    Reason.NEEDS_ATTENTION,
    Reason.UNREADABLE,
    Reason.OVERLOADED,
    Reason.CONNECTION,
    Reason.RATE_LIMITED,
)
WAITING = (JobState.QUEUED, JobState.PARKED)
LATE = dt.timedelta(minutes=5)
WHY = {
    Reason.TIMEOUT: "no answer in time",
    Reason.NEEDS_ATTENTION: "an unexpected answer",
    Reason.UNREADABLE: "unreadable evidence",
}


def quarantined() -> QuerySet[JudgeJob]:
    """Jobs over whose evidence one process after the other was lost; also while they have their daily try."""
    return _parked().filter(reason=Reason.UNREADABLE)


def parked() -> QuerySet[JudgeJob]:
    """Jobs that failed again and again while others did not; also while they have their daily try."""
    return _parked().exclude(reason=Reason.UNREADABLE)


def _parked() -> QuerySet[JudgeJob]:
    return JudgeJob.objects.open().filter(yours(), parked_at__isnull=False)


def held_back() -> QuerySet[JudgeJob]:
    """Jobs that wait, though judge and quota would have them, because what failed so often is ours."""
    reasons = (Reason.NEEDS_ATTENTION, Reason.UNREADABLE, Reason.TIMEOUT)
    waiting = JudgeJob.objects.queued().filter(yours(), reason__in=reasons, parked_at=None)
    return waiting.filter(Q(attempts__gte=settings.JUDGE_MAX_ATTEMPTS) | Q(reason=Reason.UNREADABLE))


def given_up() -> QuerySet[JudgeJob]:
    """Of sessions without a verdict and without an open job, the jobs that earlier versions ended for want of an
    answer.
    """
    jobs = JudgeJob.objects.filter(yours(), state=JobState.ABANDONED, purpose=Purpose.VERDICT, reason__in=OURS)
    later = JudgeJob.objects.filter(session=OuterRef("session"), purpose=Purpose.VERDICT, pk__gt=OuterRef("pk"))
    verdicts = Grade.objects.chain().verdicts().filter(session=OuterRef("session"))
    return jobs.exclude(Exists(later)).exclude(Exists(verdicts))


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledJobs:
    """How many jobs stand still, by why; `given_up` are those that have no job any more."""

    held_back: int
    parked: int
    quarantined: int
    given_up: int

    @property
    def waiting(self) -> int:
        return self.held_back + self.parked + self.quarantined

    def __bool__(self) -> bool:
        return bool(self.waiting + self.given_up)


def counted() -> StalledJobs:
    """Four queries."""
    return StalledJobs(
        held_back=held_back().count(),
        parked=parked().count(),
        quarantined=quarantined().count(),
        given_up=given_up().count(),
    )


def unapplied(now: dt.datetime) -> QuerySet[JudgeAttempt]:
    """Answers that are on record for some minutes and of which nothing could be made."""
    held = JudgeAttempt.objects.filter(answer__isnull=False, outcome=AttemptOutcome.RUNNING)
    return held.filter(job__leased_until__lte=now - LATE)


class StalledVerdicts(RuleOfSessions):
    """A44. Nothing is given up because of us; so what stands still because of us must be seen."""

    id = "A44"
    title = "Verdicts are stuck"
    means = (
        "Opens while sessions wait for a verdict although judge and quota are available: their evidence can’t be "
        "read, their calls failed JUDGE_MAX_ATTEMPTS times (8 by default), or an answer could not be saved; or an "
        "earlier version gave up on them for such a reason. One alarm, with their number."
    )
    todo = "Fix what it names, then choose “Try them now” on the quota page. They are also retried automatically."
    page = "admin:quota"
    every = dt.timedelta(seconds=15)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        counts = Counter(dict(held_back().order_by().values_list("reason").annotate(n=Count("pk"))))
        said = [f"{n} × {WHY[Reason(reason)]}" for reason, n in counts.most_common()]
        others = {
            "failed while others succeeded (parked: retried daily for a week, then with the button)": parked().count(),
            "answered, but the answer can’t be saved (the log says why)": unapplied(now).count(),
            "given up on by an earlier version (the quota page offers to ask again)": given_up().count(),
        }
        said += [f"{n} × {words}" for words, n in others.items() if n]
        total = sum(counts.values()) + sum(others.values())
        if said:
            jobs = [*held_back(), *parked(), *given_up()]
            sessions = "1 session has" if total == 1 else f"{total:,} sessions have"
            yield Finding(
                detail=f"{sessions} no verdict, for reasons outside the session: {'; '.join(said)}. Their rewards "
                "stay provisional; nothing is lost.",
                sessions=tuple(sorted(job.session_id for job in jobs)),
            )


class UnreadableSession(RuleOfSessions):
    """A45. One session must not stop the others, and whoever stops the readers is worth a look."""

    id = "A45"
    title = "A session’s evidence crashes its reader"
    means = "Opens while a session is parked because three processes died reading its evidence."
    todo = "Look at the session’s transcript and at the log, and report it. “Try them now” is on the quota page."
    page = "admin:quota"
    every = dt.timedelta(seconds=15)

    def look(self, now: dt.datetime) -> Iterable[Finding]:  # noqa: ARG002 - a rule's signature
        found = dict(quarantined().order_by("pk").values_list("session", "session__external_id"))
        if found:
            names = list(found.values())
            shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")  # noqa: PLR2004
            yield Finding(
                detail=f"{shown}: three processes in a row died while reading the evidence. Everything else goes "
                "on; this is retried once a day for a week, and the reward stays provisional.",
                sessions=tuple(found),
            )
