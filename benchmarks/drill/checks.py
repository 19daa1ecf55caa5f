"""What became of the sessions, from the database and the judge's own record of its calls. Every check can fail."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from django.db.models import Count, Max, Min, QuerySet

from bandit.models import MICRO, LedgerEntry
from grading.models import Alarm, Grade, JudgeAttempt, JudgeJob, Quota, QuotaTransition, Session, Settlement
from grading.models.judging import AttemptOutcome
from grading.models.quota import QuotaState
from grading.monitoring import JUDGE_OUT
from grading.monitoring.outage import about_quota
from grading.reward import rewards
from grading.vocabulary import Reason, Source

UNKNOWN = "?"
NAME = re.compile(r"drill-\d\d-\d{4,}")
# Who has the last word: the judge, or a person who corrected it.
FINAL = (Source.JUDGE, Source.HUMAN)
MOMENT = dt.timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Sent:
    """One call, as the judge saw it or as our row has it: the session it was about, and its id where it was told."""

    session: str
    request_id: str = ""


# --- sessions --------------------------------------------------------------------------------------------------------


def lost(accepted: Collection[str]) -> set[str]:
    """Sessions for which an agent has a receipt, but from whose verdict no bandit has learned: none came, or the
    reward is another's, provisional, or not what the ledger holds.
    """
    sessions = Session.objects.filter(external_id__in=accepted)
    learned = {(entry.observation, entry.value_micro) for entry in _live(sessions)}
    rewards_of = {session: rewards.live(session) for session in sessions}
    fine = {
        session.external_id
        for session, held in rewards_of.items()
        if _is_verdict(held) and (session.observation, round((held.value or 0) * MICRO)) in learned
    }
    return set(accepted) - fine


def why_lost(accepted: Collection[str]) -> list[str]:
    """Of each session that is lost, in words, what became of its job and its reward."""
    return [_why_lost(name) for name in sorted(lost(accepted))]


def _why_lost(name: str) -> str:
    job = JudgeJob.objects.filter(session__external_id=name).order_by("-pk").first()
    held = Settlement.objects.filter(session__external_id=name).order_by("-revision").first()
    was = "no job" if job is None else f"a job that is {job.state} {job.reason}, {job.losses} losses"
    return f"{name} has {was}, and {'no reward' if held is None else f'a reward by {held.source or held.reason}'}"


def _is_verdict(held: Settlement | None) -> TypeGuard[Settlement]:
    return held is not None and held.final and held.source in FINAL and held.grade is not None


def double(accepted: Collection[str]) -> set[str]:
    """Sessions that were graded twice for the chain, or that a bandit has learned from twice."""
    sessions = Session.objects.filter(external_id__in=accepted)
    verdicts = (
        Grade.objects.chain().verdicts().first_readings().filter(session__in=sessions).values("session__external_id")
    )
    twice = verdicts.annotate(times=Count("pk")).filter(times__gt=1)
    credits_of = Counter((entry.observation, entry.bandit_id) for entry in _live(sessions))
    learned_twice = {observation for (observation, _bandit), times in credits_of.items() if times > 1}
    names = {row.external_id for row in sessions if row.observation in learned_twice}
    return names | {row["session__external_id"] for row in twice.order_by()}


def _live(sessions: QuerySet[Session]) -> QuerySet[LedgerEntry]:
    names = [session.observation for session in sessions]
    return LedgerEntry.objects.filter(observation__in=names).live()


# --- calls -----------------------------------------------------------------------------------------------------------


def unrecorded(calls: Iterable[Sent], attempts: Iterable[Sent]) -> int:
    """Calls without an attempt of their own, and attempts that claim a call that was not theirs.

    A worker may die between the row and the call, so a session may have more attempts than calls; never fewer. An
    answered attempt has the id of a call about the same session, and no other attempt has it.
    """
    calls, attempts = list(calls), list(attempts)
    missing = Counter(call.session for call in calls) - Counter(attempt.session for attempt in attempts)
    answered = Counter(attempt for attempt in attempts if attempt.request_id)
    wrong = answered - Counter(call for call in calls if call.request_id)
    return missing.total() + wrong.total()


def seen_by_judge(calls: Iterable[dict[str, object]]) -> list[Sent]:
    """The simulator's calls (`/_calls`); the session's name stands in every prompt."""
    return [Sent(_named(call), str(call["request_id"])) for call in calls]


def _named(call: dict[str, object]) -> str:
    found = NAME.search(str(call["request"]))
    return found.group() if found else UNKNOWN


def on_record(prefix: str) -> list[Sent]:
    """The attempts that were sent, or were about to be, for sessions of this prefix."""
    rows = attempts_of(prefix).exclude(prompt_sha256="")
    return [Sent(name, request_id) for name, request_id in rows.values_list("job__session__external_id", "request_id")]


def attempts_of(prefix: str) -> QuerySet[JudgeAttempt]:
    return JudgeAttempt.objects.filter(job__session__external_id__startswith=prefix)


def unended(prefix: str) -> int:
    """Attempts whose row does not say how they ended."""
    return attempts_of(prefix).filter(outcome=AttemptOutcome.RUNNING).count()


# --- outages ---------------------------------------------------------------------------------------------------------


def alarm_delay(since: dt.datetime, until: dt.datetime) -> float | None:
    """Seconds from the first refusal in that time to the alarm; None where it never came, or is still open."""
    refused = JudgeAttempt.objects.filter(
        finished_at__range=(since, until), reason__in=[Reason.QUOTA_EXHAUSTED, Reason.AUTH], http_status__isnull=False
    )
    first = refused.order_by("finished_at").first()
    alarm = quota_alarms().filter(opened_at__range=(since, until)).order_by("opened_at").first()
    if first is None or first.finished_at is None or alarm is None or alarm.resolved_at is None:
        return None
    return (alarm.opened_at - first.finished_at).total_seconds()


def quota_alarms() -> QuerySet[Alarm]:
    """The alarms that a quota is out; those of a failing service hold until enough calls went well again."""
    return Alarm.objects.filter(rule=JUDGE_OUT, about__in=[about_quota(quota) for quota in Quota.objects.all()])


def calls_while_out(since: dt.datetime, until: dt.datetime) -> int:
    """Attempts that began while the quota's row said that nothing may be sent, probes aside, up to `until`.

    What had its permit before the row changed may still be about to begin: MOMENT is left to it.
    """
    closed = QuotaTransition.objects.filter(at__gte=since).exclude(state__in=[QuotaState.OPEN, QuotaState.PACING])
    first = closed.order_by("at").first()
    if first is None:
        return 0
    return JudgeAttempt.objects.filter(started_at__gt=first.at + MOMENT, started_at__lt=until).count()


def overtaken(started: Sequence[int]) -> list[int]:
    """For each job in the order of starting, how many that were promised before it started after it.

    `started` holds places in the promised order. Where n calls go on at a time, up to n − 1 earlier jobs may have
    been claimed already and start a moment later; more than that is a broken promise.
    """
    return [sum(other < place for other in started[index + 1 :]) for index, place in enumerate(started)]


def starts(promised: Sequence[int], since: dt.datetime) -> list[int]:
    """The places of the promised jobs in the order in which they were first asked about from `since` on."""
    places = {job: place for place, job in enumerate(promised)}
    rows = JudgeAttempt.objects.filter(job__in=promised, started_at__gte=since).values("job")
    first = rows.annotate(at=Min("started_at"), row=Min("pk")).order_by("at", "row")
    return [places[row["job"]] for row in first]


def drained_at(promised: Sequence[int]) -> dt.datetime | None:
    """When the last of these jobs was done; None where one is not."""
    jobs = JudgeJob.objects.filter(pk__in=promised)
    if jobs.open().exists():
        return None
    moment: dt.datetime | None = jobs.aggregate(at=Max("finished_at"))["at"]
    return moment
