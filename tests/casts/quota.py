"""A fortnight of the judge for the quota and cost pages: verdicts, trouble, an outage, jobs that wait."""

import datetime as dt
import uuid

from django.utils import timezone

from grading.judging import judges
from grading.models import JudgeAttempt, JudgeJob, Quota, QuotaTransition, Rubric, Session
from grading.models.judging import AttemptOutcome, JobState, JudgeRole, Purpose
from grading.models.quota import QuotaState
from grading.reward import rewards
from grading.vocabulary import Reason, Source
from tests.site import Site

site = Site()

KEY = "sk-test"
SAID = "400: You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC."
LIMITS = {
    "requests": {"limit": 50, "remaining": 48},
    "input_tokens": {"limit": 30_000, "remaining": 11_600},
    "output_tokens": {"limit": 8_000, "remaining": 7_100},
}
CLOSED = {
    QuotaState.EXHAUSTED: Reason.QUOTA_EXHAUSTED,
    QuotaState.MISCONFIGURED: Reason.AUTH,
    QuotaState.PAUSED: Reason.PAUSED,
    QuotaState.PACING: Reason.RATE_LIMITED,
    QuotaState.OPEN: Reason.NONE,
}


def use(settings) -> None:
    """A first judge, configured and never asked over a socket."""
    settings.ANTHROPIC_API_KEY = KEY
    settings.JUDGE_MODEL = "claude-sonnet-5-5"


def demo(settings) -> None:
    """The same for a demo, which has a page of its own; nobody is at the judge's address."""
    use(settings)
    settings.DEMO = settings.SIMULATED = True
    settings.ANTHROPIC_BASE_URL = "http://127.0.0.1:1"


def quota(state: QuotaState = QuotaState.OPEN, *, role: JudgeRole = JudgeRole.FIRST, **fields) -> Quota:
    """The row of a judge that has answered before, in this state, with the transition that led there."""
    judge = judges.configured()[role]
    row = Quota.objects.get_or_create(key=judge.fingerprint, model=judge.model)[0]
    row.limits_at = row.limits_at or timezone.now()
    fields = {"reason": CLOSED[state], "changed_at": timezone.now(), "until": None, "detail": "", **fields}
    by = fields.pop("by", None)
    for name, value in {"state": state, **fields}.items():
        setattr(row, name, value)
    row.save()
    said = {name: fields[name] for name in ("reason", "until", "detail")}
    QuotaTransition.objects.create(quota=row, state=state, at=row.changed_at, by=by, **said)
    return row


def job(at: dt.datetime, *, done: dt.datetime | None = None, session: Session | None = None, **fields) -> JudgeJob:
    """A job that came at a time, and was done at one."""
    ended = {"state": JobState.DONE, "reason": "", "finished_at": done} if done else {}
    return JudgeJob.objects.create(
        session=session or site.session(ended_at=at, agent=fields.pop("agent", None) or "bob").session,
        rubric=Rubric.objects.active(),
        created_at=at,
        next_attempt_at=at,
        **{**ended, **fields},
    )


def attempt(
    job: JudgeJob, at: dt.datetime, outcome=AttemptOutcome.GRADED, reason=Reason.NONE, **fields
) -> JudgeAttempt:
    """A call and what came of it. A graded one read 18,400 tokens and wrote 900: 4.58 ¢ at $2 and $10 a million."""
    paid = {"input_tokens": 18_400, "output_tokens": 900, "cost_usd": 0.0458, "http_status": 200}
    known = paid if outcome == AttemptOutcome.GRADED else {}
    return JudgeAttempt.objects.create(
        job=job,
        lease_token=uuid.uuid4(),
        started_at=at,
        finished_at=None if outcome == AttemptOutcome.RUNNING else at + dt.timedelta(seconds=9),
        outcome=outcome,
        reason=reason,
        **{"model": "claude-sonnet-5-5", **known, **fields},
    )


def judged(at: dt.datetime, **fields) -> JudgeAttempt:
    """A session with a verdict; `fields` are the attempt's, but for `again`: which reading the job was for."""
    owner = fields.pop("agent", None)
    purpose = fields.pop("purpose", Purpose.VERDICT)
    done = job(at - dt.timedelta(minutes=1), done=at, agent=owner, purpose=purpose, **fields.pop("again", {}))
    return attempt(done, at, **fields)


def waiting(at: dt.datetime, value: float | None = 0.32, **fields) -> JudgeJob:
    """A session that waits for its verdict, graded by its journal or not at all."""
    held = job(at, **fields)
    if value is not None:
        site.on(held.session).graded(Source.JOURNAL, value)
    rewards.settle(held.session)
    return held


def fortnight(now: dt.datetime) -> None:
    """Verdicts on every day, a spell of overload a week ago, calls of every kind today."""
    for days in range(1, 14):
        for number in range(days % 4 + 1):
            made = now - dt.timedelta(days=days, hours=number)
            judged(made, agent=site.agent("alice" if number % 2 else "bob"))
    owed = job(now - dt.timedelta(days=7), done=now - dt.timedelta(days=6, hours=18))
    for number in range(5):
        at = now - dt.timedelta(days=7, minutes=-50 * number)
        attempt(owed, at, AttemptOutcome.DEFERRED, Reason.OVERLOADED, http_status=529, detail="Overloaded")
    midnight = timezone.localtime(now).replace(hour=0, minute=0)
    for number in range(29):
        judged(midnight + (now - midnight) * (number + 1) / 31)
    last = job(now - dt.timedelta(minutes=40))
    rewards.settle(last.session)
    attempt(last, now - dt.timedelta(minutes=39), AttemptOutcome.DEFERRED, Reason.OVERLOADED, http_status=529)
    lost = attempt(last, now - dt.timedelta(minutes=30), AttemptOutcome.LOST, estimated_usd=0.05)
    lost.job.attempt_rows.filter(pk=lost.pk).update(detail="The worker did not come back before its lease ended")
    for number in range(2):
        at = now - dt.timedelta(minutes=20 - number)
        attempt(last, at, AttemptOutcome.DEFERRED, Reason.QUOTA_EXHAUSTED, http_status=400, detail=SAID)
    for number in range(22):
        waiting(now - dt.timedelta(minutes=20 * number + 2), None if number % 8 == 7 else 0.32)
