"""Rules about asking judges: answers that nobody expected, a judge left unasked, one asked twice."""

import datetime as dt
from collections.abc import Iterable

from django.db.models import Count, Exists, Max, Min, OuterRef

from grading.models import Grade, JudgeAttempt, JudgeJob, Quota
from grading.models.judging import AttemptOutcome, JobState
from grading.models.quota import QuotaState
from grading.models.sessions import yours
from grading.monitoring.outage import about_quota
from grading.monitoring.rule import Finding, Rule, stamp
from grading.vocabulary import Reason


class Unforeseen(Rule):
    """A25. Never a grade, never silent: an answer that no row of the table of errors knows."""

    id = "A25"
    title = "Unknown answer from the judge’s service"
    means = (
        "Opens at the first answer from a judge’s service that the site doesn’t recognise (an unknown 400, for "
        "example), and quotes it. Stays open for seven days, or until that session has a verdict."
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
    """A28. A quota that is believed gone for days, though nobody asked: is it the key that is paid for?"""

    id = "A28"
    title = "Judge marked down but never rechecked"
    means = "Opens when a judge has been down for three days without a single call while jobs are waiting."
    window = dt.timedelta(days=3)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        asked = JudgeAttempt.objects.filter(model=OuterRef("model"), started_at__gt=now - self.window)
        out = Quota.objects.out().exclude(state=QuotaState.PAUSED)
        unasked = list(out.filter(changed_at__lte=now - self.window).exclude(Exists(asked)))
        waiting = JudgeJob.objects.open().filter(yours()).count() if unasked else 0
        wait = "1 job waits" if waiting == 1 else f"{waiting} jobs wait"
        for quota in unasked if waiting else ():
            yield Finding(
                about=about_quota(quota),
                detail=f"{quota.model} has been {quota.state} since {stamp(quota.changed_at)} and hasn’t been called "
                f"for three days, while {wait}. The key's fingerprint is {quota.key[:8]}: check with the provider "
                "that this is the key, and the limit, you are paying for, then probe now on the quota page.",
            )


class WastedJudging(Rule):
    """A15. Asking for a verdict that is there costs money and puts noise into "the latest"."""

    id = "A15"
    title = "The judge was asked twice for the same verdict"
    means = (
        "Opens at the day’s first session that the same model judged again for the chain, under the same rubric "
        "and on unchanged evidence. Deliberate repeats that test the judge don’t count, nor do the numbered "
        "readings of a session whose verdict is in doubt."
    )
    every = dt.timedelta(minutes=1)
    window = dt.timedelta(days=1)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        calls = JudgeAttempt.objects.filter(outcome=AttemptOutcome.GRADED, finished_at__gt=now - self.window)
        again = Grade.objects.chain().verdicts().filter(yours(), replicate__gt=0, created_at__gt=now - self.window)
        wasted = again.filter(session__in=calls.order_by().values("job__session"))
        rows = list(wasted.values_list("session__external_id", "cost_usd"))
        if rows:
            cost = sum(cost or 0 for _id, cost in rows)
            names = ", ".join(sorted({name for name, _cost in rows})[:5])
            yield Finding(
                detail=f"{len(rows)} of the last day's verdicts had been given already, for "
                f"${cost:.4f}: {names}. Whatever asks again ignores what is on record: look at where these jobs come "
                "from (a run, a script, a clock)."
            )
