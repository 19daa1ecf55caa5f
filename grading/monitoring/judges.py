"""Rules about the judges as services: out, answering what nobody expected, left unasked, asked twice."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Count, Exists, F, Max, Min, OuterRef, Q, Value

from grading.core.vocabulary import Reason
from grading.models import JudgeAttempt, JudgeJob, Quota
from grading.models.judging import AttemptOutcome, JobState, Purpose
from grading.models.quota import QuotaState
from grading.monitoring.rule import Finding, Rule, stamp

FAILED = (AttemptOutcome.DEFERRED, AttemptOutcome.REFUSED, AttemptOutcome.INVALID)
# A judge that failed at its work. Quota and key are a row of their own; a per-minute limit is no failure.
TROUBLE = (
    Reason.OVERLOADED,
    Reason.TIMEOUT,
    Reason.CONNECTION,
    Reason.REFUSED,
    Reason.UNPARSABLE_VERDICT,
)
NOTHING_LOST = "Nothing is lost: jobs wait, and a verdict replaces each provisional reward exactly."
TODO: Mapping[Reason, str] = {
    Reason.QUOTA_EXHAUSTED: "Raise the limit or add credit at the provider, then probe now on the quota page.",
    Reason.BUDGET_SPENT: "Raise the daily budget on the quota page, or wait for midnight.",
    Reason.AUTH: "Put a key in ANTHROPIC_API_KEY (or the second judge's) that may use this model, and restart.",
    Reason.NEEDS_ATTENTION: "Check JUDGE_MODEL and ANTHROPIC_BASE_URL, and restart.",
    Reason.PAUSED: "Resume it on the quota page, if that is still wanted.",
    Reason.REFUSED: "Read the replies on the quota page: the rubric or the evidence makes this model decline.",
    Reason.UNPARSABLE_VERDICT: "Read the replies on the quota page: is the model too small, or a gateway in between?",
}
TRY_AGAIN = "Jobs are tried again by themselves; look at the provider's status, or set JUDGE_FALLBACK_MODEL."

# Calls of one judge: {"model", "reason", "n": how many, "since": the first of them}.
Failures = Mapping[str, Any]


def about(role: str) -> str:
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
        "Raises at once while a judge's quota is gone, its budget is spent or its key is refused. Else at the third "
        "failed call of one judge within 60 minutes whose session still waits (calls that went well in between change "
        "nothing), or where 2 of its last 10 answered calls failed. After a day of being paused."
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
                yield Finding(about=about_quota(quota), detail=_outage(quota))
        failing = {**self._of_the_last_ten(now), **self._waiting(now)}
        for judge in sorted(failing):
            if not {row["model"] for row in failing[judge]} & {quota.model for quota in out}:
                yield Finding(about=about(judge), detail=_failing(judge, failing[judge]))

    def _waiting(self, now: dt.datetime) -> dict[str, list[Failures]]:
        """By judge, where they are many enough: the failures in the window whose sessions are still without verdict."""
        rows = (
            JudgeAttempt.objects.filter(outcome__in=FAILED, finished_at__gt=now - self.window, reason__in=TROUBLE)
            .exclude(job__state=JobState.DONE)
            .order_by()
            .values("judge", "model", "reason")
            .annotate(n=Count("pk"), since=Min("finished_at"))
        )
        return {judge: failed for judge, failed in _by_judge(rows).items() if _count(failed) >= self.failures}

    def _of_the_last_ten(self, now: dt.datetime) -> dict[str, list[Failures]]:
        """By judge, where they are many enough: the failures among its last answered calls."""
        answered = JudgeAttempt.objects.filter(Q(outcome=AttemptOutcome.GRADED) | Q(reason__in=TROUBLE))
        latest = answered.order_by("-pk").values("judge", "model", "reason", n=Value(1), since=F("finished_at"))
        recent = [row for row in latest[: self.calls_read] if row["since"] > now - self.answered_within]
        found = {}
        for judge, calls in _by_judge(recent).items():
            failed = [call for call in calls[: self.of_the_last] if call["reason"]]
            if len(calls) >= self.of_the_last and len(failed) >= self.share * self.of_the_last:
                found[judge] = failed
        return found


def _by_judge(rows: Iterable[Failures]) -> dict[str, list[Failures]]:
    found: dict[str, list[Failures]] = defaultdict(list)
    for row in rows:
        found[row["judge"]].append(row)
    return found


def _count(failed: Iterable[Failures]) -> int:
    return sum(row["n"] for row in failed)


def _outage(quota: Quota) -> str:
    reason = Reason(quota.reason)
    until = "until it is put right" if quota.until is None else f"until {stamp(quota.until)}"
    words = f"{quota.model}: {reason.words or 'it cannot be asked'}, since {stamp(quota.changed_at)}, {until}."
    todo = f"{TODO.get(reason, TRY_AGAIN)} {NOTHING_LOST}"
    return " ".join(filter(None, (words, quota.detail, "New rewards stay provisional.", todo)))


def _failing(judge: str, failed: list[Failures]) -> str:
    reasons: Counter[str] = Counter()
    for row in failed:
        reasons[row["reason"]] += row["n"]
    said = ", ".join(f"{n} × {Reason(reason).words.lower()}" for reason, n in reasons.most_common())
    models, since = ", ".join(sorted({row["model"] for row in failed})), min(row["since"] for row in failed)
    todo = TODO.get(Reason(reasons.most_common(1)[0][0]), TRY_AGAIN)
    return f"{models} ({about(judge)}) fails since {stamp(since)}: {said}. {todo}"


class Unforeseen(Rule):
    """A25. Never a grade, never silent: an answer that no row of the table of errors knows."""

    id = "A25"
    title = "The judge's service answered what nobody expected"
    means = (
        "Raises at the first answer of a judge's service that the site cannot place (an unknown 400, say), in its own "
        "words; holds for seven days, or until its session has a verdict."
    )
    window = dt.timedelta(days=7)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        attempts = JudgeAttempt.objects.filter(
            outcome=AttemptOutcome.DEFERRED, finished_at__gt=now - self.window, reason=Reason.NEEDS_ATTENTION
        ).exclude(job__state=JobState.DONE)
        kinds = attempts.order_by().values("http_status", "error_type")
        groups = list(kinds.annotate(n=Count("pk"), since=Min("finished_at"), latest=Max("pk")))
        said = JudgeAttempt.objects.in_bulk([group["latest"] for group in groups]) if groups else {}
        for group in groups:
            latest = said[group["latest"]]
            yield Finding(
                about=f"{group['http_status'] or 'no status'} {group['error_type']}",
                detail=f"{latest.model} answered, {group['n']} × since {stamp(group['since'])}: “{latest.detail}” "
                "Its sessions are without a verdict. Read it: if it means that quota, key or model are at fault, put "
                "that right; if the request is at fault, report it. Then have the sessions judged again.",
            )


class LeftUnasked(Rule):
    """A28 (I91). A quota that is believed gone for days, though nobody asked: is it the key that is paid for?"""

    id = "A28"
    title = "A judge is marked out and nobody has asked it"
    means = "Raises where a judge has been out for three days without a single call, while sessions wait for a verdict."
    window = dt.timedelta(days=3)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        asked = JudgeAttempt.objects.filter(model=OuterRef("model"), started_at__gt=now - self.window)
        unasked = list(Quota.objects.out().filter(changed_at__lte=now - self.window).exclude(Exists(asked)))
        waiting = JudgeJob.objects.open().count() if unasked else 0
        for quota in unasked if waiting else ():
            yield Finding(
                about=f"{quota.model} {quota.key[:8]}",
                detail=f"{quota.model} is {quota.state} since {stamp(quota.changed_at)} and was not asked for three "
                f"days, while {waiting} sessions wait. The key's fingerprint is {quota.key[:8]}: check at the provider "
                "that this key and its limit are the ones that are paid for, then probe now on the quota page.",
            )


class WastedJudging(Rule):
    """A15 (I42). Asking for a verdict that is there costs money and puts noise into "the latest"."""

    id = "A15"
    title = "The judge was asked twice for the same verdict"
    means = (
        "Raises at the first session of a day whose unchanged evidence was judged again for the chain by the same "
        "model under the same rubric. A repeat that measures the judge is none."
    )
    every = dt.timedelta(minutes=1)
    window = dt.timedelta(days=1)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        verdicts = JudgeAttempt.objects.filter(outcome=AttemptOutcome.GRADED, job__purpose=Purpose.VERDICT)
        same = {name: OuterRef(name) for name in ("job__session", "model", "prompt_sha256")}
        wasted = verdicts.filter(Exists(verdicts.filter(**same, pk__lt=OuterRef("pk"))))
        rows = list(
            wasted.filter(started_at__gt=now - self.window).values_list("job__session__external_id", "cost_usd")
        )
        if rows:
            cost = sum(cost or 0 for _id, cost in rows)
            names = ", ".join(sorted({name for name, _cost in rows})[:5])
            yield Finding(
                detail=f"{len(rows)} verdicts within a day were there already, for ${cost:.4f}: {names}. Whatever asks "
                "again ignores what is on record: look at where these jobs come from (a run, a script, a clock)."
            )
