"""What became of the sessions, by the database and the judge's record of its calls."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Count, Max, Min, QuerySet

from bandit.models import MICRO, LedgerEntry
from grading.models import Alarm, Grade, JudgeAttempt, JudgeJob, Quota, QuotaTransition, Session, Settlement
from grading.models.judging import AttemptOutcome
from grading.models.quota import QuotaState
from grading.monitoring.judges import about_quota, judge_out
from grading.reward import rewards
from grading.vocabulary import Reason, Source

UNKNOWN = "?"
NAME = re.compile(r"drill-\d\d-\d{4,}")
FINAL_SOURCES = (Source.JUDGE, Source.HUMAN)
# A call that had its permit before the quota's row changed may still begin within this time.
PERMIT_GRACE = dt.timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Sent:
    """One call, by the judge's record or by our row: its session, and its id if there was an answer."""

    session: str
    request_id: str = ""


# Sessions


def lost(accepted: Collection[str]) -> set[str]:
    """Accepted sessions from whose verdict no bandit has learned: none came, or the reward has another source, is
    provisional, or is not what the ledger has.
    """
    sessions = Session.objects.filter(external_id__in=accepted)
    learned = {(entry.observation, entry.value_micro) for entry in _live_entries(sessions)}
    rewarded = set()
    for session in sessions:
        reward = rewards.live(session)
        if reward is None or not reward.final or reward.source not in FINAL_SOURCES or reward.grade is None:
            continue
        if (session.observation, round((reward.value or 0) * MICRO)) in learned:
            rewarded.add(session.external_id)
    return set(accepted) - rewarded


def why_lost(accepted: Collection[str]) -> list[str]:
    """A sentence for each lost session: what became of its job and its reward."""
    return [_why_lost(name) for name in sorted(lost(accepted))]


def _why_lost(name: str) -> str:
    job = JudgeJob.objects.filter(session__external_id=name).order_by("-pk").first()
    reward = Settlement.objects.filter(session__external_id=name).order_by("-revision").first()
    its_job = "no job" if job is None else f"a job that is {job.state} {job.reason}, {job.losses} losses"
    its_reward = "no reward" if reward is None else f"a reward by {reward.source or reward.reason}"
    return f"{name} has {its_job}, and {its_reward}"


def double(accepted: Collection[str]) -> set[str]:
    """Sessions with two verdicts in the chain, or with two rewards in one bandit."""
    sessions = Session.objects.filter(external_id__in=accepted)
    verdicts = (
        Grade.objects.chain().verdicts().first_readings().filter(session__in=sessions).values("session__external_id")
    )
    judged_twice = verdicts.annotate(times=Count("pk")).filter(times__gt=1).order_by()
    credits_of = Counter((entry.observation, entry.bandit_id) for entry in _live_entries(sessions))
    learned_twice = {observation for (observation, _bandit), times in credits_of.items() if times > 1}
    names = {session.external_id for session in sessions if session.observation in learned_twice}
    return names | {row["session__external_id"] for row in judged_twice}


def _live_entries(sessions: QuerySet[Session]) -> QuerySet[LedgerEntry]:
    names = [session.observation for session in sessions]
    return LedgerEntry.objects.filter(observation__in=names).live()


# Calls


def unrecorded(calls: Iterable[Sent], attempts: Iterable[Sent]) -> int:
    """The number of calls without an attempt, and of attempts that name a call that was not theirs.

    A worker may die between the row and the call, so a session may have more attempts than calls, but not fewer. An
    answered attempt has the id of a call about the same session, and no other attempt has that id.
    """
    calls, attempts = list(calls), list(attempts)
    missing = Counter(call.session for call in calls) - Counter(attempt.session for attempt in attempts)
    answered = Counter(attempt for attempt in attempts if attempt.request_id)
    wrong = answered - Counter(call for call in calls if call.request_id)
    return missing.total() + wrong.total()


def recorded_by_judge(calls: Iterable[dict[str, object]]) -> list[Sent]:
    """The simulator's calls. Every prompt contains its session's name."""
    recorded = []
    for call in calls:
        match = NAME.search(str(call["request"]))
        recorded.append(Sent(match.group() if match else UNKNOWN, str(call["request_id"])))
    return recorded


def recorded_by_site(prefix: str) -> list[Sent]:
    """The attempts that were sent, or about to be, for sessions with this prefix."""
    rows = attempts_of(prefix).exclude(prompt_sha256="")
    return [Sent(name, request_id) for name, request_id in rows.values_list("job__session__external_id", "request_id")]


def attempts_of(prefix: str) -> QuerySet[JudgeAttempt]:
    return JudgeAttempt.objects.filter(job__session__external_id__startswith=prefix)


def unended(prefix: str) -> int:
    """The number of attempts whose row doesn't say how they ended."""
    return attempts_of(prefix).filter(outcome=AttemptOutcome.RUNNING).count()


# Outages


def alarm_delay(since: dt.datetime, until: dt.datetime) -> float | None:
    """Seconds from the first refusal in that time to the alarm. None if no alarm came, or if it is still open."""
    refused = JudgeAttempt.objects.filter(
        finished_at__range=(since, until), reason__in=[Reason.QUOTA_EXHAUSTED, Reason.AUTH], http_status__isnull=False
    )
    first = refused.order_by("finished_at").first()
    alarm = quota_alarms().filter(opened_at__range=(since, until)).order_by("opened_at").first()
    if first is None or first.finished_at is None or alarm is None or alarm.resolved_at is None:
        return None
    return (alarm.opened_at - first.finished_at).total_seconds()


def quota_alarms() -> QuerySet[Alarm]:
    """The alarms that a quota is exhausted, without those of a failing service."""
    return Alarm.objects.filter(rule=judge_out.id, about__in=[about_quota(quota) for quota in Quota.objects.all()])


def calls_while_out(since: dt.datetime, until: dt.datetime) -> int:
    """The number of attempts that began before `until` while the quota's row said that nothing may be sent."""
    closed = QuotaTransition.objects.filter(at__gte=since).exclude(state__in=[QuotaState.OPEN, QuotaState.PACING])
    first = closed.order_by("at").first()
    if first is None:
        return 0
    return JudgeAttempt.objects.filter(started_at__gt=first.at + PERMIT_GRACE, started_at__lt=until).count()


def overtaken(started: Sequence[int]) -> list[int]:
    """For each job in the order of starting, how many jobs that were promised earlier started later.

    `started` are places in the promised order. With n calls at a time, up to n − 1 earlier jobs may have been claimed
    already and start a moment later. More than that is a broken promise.
    """
    return [sum(other < place for other in started[index + 1 :]) for index, place in enumerate(started)]


def starts(promised: Sequence[int], since: dt.datetime) -> list[int]:
    """The places of the promised jobs, in the order of their first attempts from `since` on."""
    places = {job: place for place, job in enumerate(promised)}
    rows = JudgeAttempt.objects.filter(job__in=promised, started_at__gte=since).values("job")
    first = rows.annotate(at=Min("started_at"), row=Min("pk")).order_by("at", "row")
    return [places[row["job"]] for row in first]


def drained_at(promised: Sequence[int]) -> dt.datetime | None:
    """When the last of these jobs was done; None if one is still open."""
    jobs = JudgeJob.objects.filter(pk__in=promised)
    if jobs.open().exists():
        return None
    moment: dt.datetime | None = jobs.aggregate(at=Max("finished_at"))["at"]
    return moment
