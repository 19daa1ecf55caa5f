"""The state of each judge as text: since when, until when, and its effect on sessions."""

import datetime as dt
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, Q, Sum
from django.utils import timezone

from bandit.models import Bucket
from grading.judging.allowance.quota import STATES_WITH_PROBES
from grading.judging.earlier import RECENT_DAYS
from grading.judging.outlook.standing import JudgeStanding
from grading.models import JudgeJob, JudgePolicy, Quota
from grading.models.judging import JudgeRole, Purpose
from grading.models.quota import QuotaState
from grading.models.sessions import yours
from grading.screens.quota.judge_state import UNHEARD, never_judged, until
from grading.templatetags.gradingsite_tags import clock, duration, usd
from grading.vocabulary import Reason, Source

ROLES = {JudgeRole.FIRST: "First judge", JudgeRole.FALLBACK: "Fallback", JudgeRole.SECOND: "Second opinion"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCard:
    """One judge's state. `quote` is the message of its provider, or of the person who paused it."""

    standing: JudgeStanding | None
    role: str
    heading: str
    since: str
    meaning: str
    quote: str = ""
    trouble: bool = False


def card(standing: JudgeStanding, policy: JudgePolicy, now: dt.datetime) -> JudgeCard:
    quota = standing.quota
    heading = quota.state_label.capitalize()
    if quota.is_untested:
        heading = "Has not answered yet"
    elif quota.state == QuotaState.EXHAUSTED:
        heading += until(quota.until)
    elif quota.state == QuotaState.PACING and quota.until is not None:
        heading += f" until {clock(quota.until)}"
    quote = f"“{quota.detail}”" if quota.state == QuotaState.PAUSED and quota.detail else quota.detail
    return JudgeCard(
        standing=standing,
        role=ROLES[standing.judge.role],
        heading=heading,
        since=_since(quota, now),
        meaning=_meaning(quota, policy),
        quote=quote,
        trouble=quota.is_out,
    )


def _since(quota: Quota, now: dt.datetime) -> str:
    """Since when the judge has been in its state, and for how long. If it is out, also when it is called again."""
    if quota.pk is None:
        return "not asked yet"
    if quota.is_untested:
        return ""
    at = timezone.localtime(quota.changed_at)
    day = "" if at.date() == timezone.localdate(now) else f"{at:%-d %b, }"
    since = f"since {day}{at:%H:%M}, {duration((now - quota.changed_at).total_seconds())}"
    if quota.state not in STATES_WITH_PROBES or quota.until is None or quota.until <= now:
        return since
    verb = "returns" if quota.state == QuotaState.EXHAUSTED else "asks again"
    return f"{since}; {verb} in {duration((quota.until - now).total_seconds())}"


def unconfigured() -> JudgeCard:
    """The card of a site without a judge. One query."""
    sessions = never_judged()
    count, have = ("1 session", "has") if sessions == 1 else (f"{sessions:,} sessions", "have")
    unfinished = f": {count} of the last {RECENT_DAYS} days {have} no final grade" if sessions else ""
    return JudgeCard(
        standing=None,
        role=ROLES[JudgeRole.FIRST],
        heading="No judge",
        since="",
        meaning=f"Trajectory, journal and artifacts grade the sessions provisionally{unfinished}. Add a key in "
        f"Settings{', then choose which of those sessions to judge' if sessions else ''}.",
    )


def _meaning(quota: Quota, policy: JudgePolicy) -> str:
    if quota.is_untested:
        return UNHEARD
    match quota.state, quota.reason:
        case QuotaState.OPEN, _:
            return "Verdicts come in as sessions arrive."
        case QuotaState.PACING, _:
            return "The provider asked the site to wait. All workers wait, and this doesn’t count as a failed attempt."
        case QuotaState.EXHAUSTED, Reason.BUDGET_SPENT:
            amount = "" if policy.daily_budget_usd is None else f" of {usd(policy.daily_budget_usd)}"
            return (
                f"Today’s budget{amount} is spent. No more sessions are judged before midnight unless the budget is "
                "raised."
            )
        case QuotaState.EXHAUSTED, _:
            return "After the wait, one call tests whether the quota is back. Until then, no sessions are judged."
        case QuotaState.PAUSED, _:
            row = quota.transitions.select_related("by").last()
            who = "Somebody" if row is None or row.by is None else row.by.get_username()
            return f"{who} paused the judge. No sessions are judged until somebody resumes it."
        case _:
            return (
                "The key or the model was refused. Correct the key in Settings, JUDGE_MODEL in the environment, or "
                "the account at the provider. One call is retried at intervals of up to 15 minutes. Judging "
                "continues once it succeeds."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingEffect:
    """The effect of waiting for the judge: sessions with a provisional grade, with none, and how often the floor was
    learned.
    """

    provisional: int
    ungraded: int
    floor_learned: int

    @property
    def sentence(self) -> str:
        waiting = self.provisional + self.ungraded
        if waiting == 0:
            return "No sessions wait for a verdict."
        keep = "keeps" if self.provisional == 1 else "keep"
        none = "has" if self.ungraded == 1 else "have"
        learned = "by no bandit" if self.floor_learned == 0 else f"{self.floor_learned} times"
        return (
            f"{self.provisional} of the {waiting} waiting sessions {keep} a provisional grade and {self.ungraded} "
            f"{none} none. The floor was learned {learned}."
        )


def waiting_effect() -> WaitingEffect:
    """How many waiting sessions have a provisional grade or none, and how often bandits learned the floor.

    Two queries.
    """
    jobs = JudgeJob.objects.open().filter(yours(), purpose=Purpose.VERDICT).order_by()
    ungraded = Q(session__reward_source__in=["", Source.FLOOR])
    counts = jobs.exclude(session__reward_final=True).aggregate(
        provisional=Count("pk", filter=~ungraded), ungraded=Count("pk", filter=ungraded)
    )
    learned = Bucket.objects.filter(grader__source=Source.FLOOR).aggregate(n=Sum("n"))["n"] or 0
    return WaitingEffect(**counts, floor_learned=learned if settings.EVIDENCE_WEIGHTS[Source.FLOOR] else 0)
