"""Whether each judge is there: its quota, its key, and what its calls come to (A2)."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db.models import Count, F, Min, Q, Value

from grading.models import JudgeAttempt, Quota, Session
from grading.models.judging import AttemptOutcome, JobState
from grading.models.quota import QuotaState
from grading.monitoring.rule import Finding, Rule, stamp
from grading.vocabulary import Reason

FAILED = (AttemptOutcome.DEFERRED, AttemptOutcome.REFUSED, AttemptOutcome.INVALID)
# A judge that failed at its work. Quota and key are a row of their own; a per-minute limit is no failure.
TROUBLE = (
    Reason.OVERLOADED,
    Reason.TIMEOUT,
    Reason.CONNECTION,
    Reason.REFUSED,
    Reason.UNPARSABLE_VERDICT,
)
# What an outage does: of the first judge, and of one that is asked besides or instead.
WAITING = "New rewards stay provisional. Nothing is lost: jobs wait, and a verdict replaces each of them exactly."
WAITING_BESIDE = "Only what this judge was to say waits; it decides no reward while the first judge answers."
TODO: Mapping[Reason, str] = {
    Reason.QUOTA_EXHAUSTED: "Raise the limit or add credit at the provider, then probe now on the quota page.",
    Reason.BUDGET_SPENT: "Raise the daily budget on the quota page, or wait for midnight.",
    Reason.AUTH: "Type a key that may use this model in Settings, Judge; or put one in the environment and restart.",
    Reason.NEEDS_ATTENTION: "Check JUDGE_MODEL and ANTHROPIC_BASE_URL, and restart.",
    Reason.PAUSED: "Resume it on the quota page, if that is still wanted.",
    Reason.REFUSED: "Read the replies on the quota page: the rubric or the evidence makes this model decline.",
    Reason.UNPARSABLE_VERDICT: "Read the replies on the quota page: is the model too small, or a gateway in between?",
}
TRY_AGAIN = "Jobs are tried again by themselves; look at the provider's status, or set JUDGE_FALLBACK_MODEL."

# Calls of one judge: {"model", "reason", "n": how many, "since": the first of them}.
Failures = Mapping[str, Any]


def about_judge(role: str) -> str:
    """What an alarm about the calls of a judge in that role is about."""
    return f"{role} judge"


def about_quota(quota: Quota) -> str:
    """What an alarm about a judge's quota is about."""
    return f"{quota.model} {quota.key[:8]}"


class JudgeOut(Rule):
    """A2. Each judge is looked at, whatever its role; a pause is an operator's own and news only after a day."""

    id = "A2"
    title = "The judge is out"
    means = (
        "Opens at once when a judge’s quota is gone, its budget is spent or its key is refused. Otherwise: at a "
        "judge’s third failed call within 60 minutes whose session is still waiting (successful calls in between "
        "don’t matter); when 2 of its last 10 answered calls failed; at the first call that times out, if nothing "
        "was answered meanwhile; or after it has been paused for a day."
    )
    window = dt.timedelta(minutes=60)
    failures, share, of_the_last = 3, 0.2, 10
    answered_within = dt.timedelta(days=1)
    # Enough of the latest calls to hold ten of a judge that is asked about few sessions.
    calls_read = 200

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        out = list(Quota.objects.out().order_by("pk"))
        for quota in out:
            if quota.state != QuotaState.PAUSED or quota.changed_at <= now - dt.timedelta(days=1):
                reason = Reason(quota.reason)
                until = "until it is fixed" if quota.until is None else f"until {stamp(quota.until)}"
                if quota.state == QuotaState.MISCONFIGURED and quota.until is not None:
                    until = f"asked again {stamp(quota.until)}"
                said = (
                    f"{quota.model}: {reason.words or 'it can’t be called'}, since {stamp(quota.changed_at)}, {until}."
                )
                effect = WAITING if quota.model == settings.JUDGE_MODEL else WAITING_BESIDE
                detail = " ".join(filter(None, (said, quota.detail, TODO.get(reason, TRY_AGAIN), effect)))
                yield Finding(about=about_quota(quota), detail=detail)
        failing = {**self._lately(now), **self._waiting(now)}
        for judge, failed in sorted(failing.items()):
            models = {row["model"] for row in failed}
            if models & {quota.model for quota in out}:
                continue
            reasons: Counter[str] = Counter()
            for row in failed:
                reasons[row["reason"]] += row["n"]
            counts = ", ".join(f"{n} × {Reason(reason).words.lower()}" for reason, n in reasons.most_common())
            since = stamp(min(row["since"] for row in failed))
            todo = TODO.get(Reason(reasons.most_common(1)[0][0]), TRY_AGAIN)
            detail = (
                f"{', '.join(sorted(models))} ({about_judge(judge)}) has been failing since {since}: {counts}. {todo}"
            )
            yield Finding(about=about_judge(judge), detail=detail)

    def sessions(self, about: str, now: dt.datetime) -> Sequence[int]:
        """The sessions that were settled since the outage began, and wait for a verdict."""
        since = next((quota.changed_at for quota in Quota.objects.out() if about_quota(quota) == about), None)
        if since is None:
            failing = {**self._lately(now), **self._waiting(now)}
            began = [row["since"] for judge, rows in failing.items() if about_judge(judge) == about for row in rows]
            since = min(began, default=None)
        if since is None:
            return ()
        waiting = Session.objects.yours().filter(reward_final=False, settlement__created_at__gte=since)
        return list(waiting.order_by("ended_at", "pk").values_list("pk", flat=True))

    def _waiting(self, now: dt.datetime) -> dict[str, list[Failures]]:
        """By judge, where they are many enough: the failures in the window whose sessions are still without verdict."""
        rows = (
            JudgeAttempt.objects.filter(outcome__in=FAILED, finished_at__gt=now - self.window, reason__in=TROUBLE)
            .exclude(job__state=JobState.DONE)
            .order_by()
            .values("judge", "model", "reason")
            .annotate(n=Count("pk"), since=Min("finished_at"))
        )
        by_judge = _by_judge(rows).items()
        return {judge: failed for judge, failed in by_judge if sum(row["n"] for row in failed) >= self.failures}

    def _lately(self, now: dt.datetime) -> dict[str, list[Failures]]:
        """By judge: the failures among its last answered calls, where they are many enough; or its last call, where
        that got no answer in time, its session waits, and nothing was heard since it began.
        """
        answered = JudgeAttempt.objects.filter(Q(outcome=AttemptOutcome.GRADED) | Q(reason__in=TROUBLE))
        columns = ("judge", "model", "reason", "started_at", "http_status", "job__state")
        latest = answered.order_by("-pk").values(*columns, n=Value(1), since=F("finished_at"))
        recent = [row for row in latest[: self.calls_read] if row["since"] > now - self.answered_within]
        failing = {}
        for judge, calls in _by_judge(recent).items():
            failed = [call for call in calls[: self.of_the_last] if call["reason"]]
            last = max(calls, key=lambda call: call["since"])
            heard = any(call["http_status"] and call["since"] > last["started_at"] for call in calls)
            if len(calls) >= self.of_the_last and len(failed) >= self.share * self.of_the_last:
                failing[judge] = failed
            elif last["reason"] == Reason.TIMEOUT and last["job__state"] != JobState.DONE and not heard:
                failing[judge] = [last]
        return failing


def _by_judge(rows: Iterable[Failures]) -> dict[str, list[Failures]]:
    by_judge: dict[str, list[Failures]] = defaultdict(list)
    for row in rows:
        by_judge[row["judge"]].append(row)
    return by_judge
