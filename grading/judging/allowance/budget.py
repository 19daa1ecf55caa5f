"""Dollars: what was spent today, what a call should cost, and whether the budget allows it."""

import datetime as dt
import math

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Coalesce

from grading import clock
from grading.days import start_of_day
from grading.judging.allowance import prices, quota
from grading.judging.core.ratelimits import CallCost
from grading.judging.judges import Judge
from grading.models import ApiToken, JudgeAttempt, JudgeJob, JudgeKeyTest, JudgePolicy, Session
from grading.models.judging import Purpose

# A call of unknown cost counts as estimated, one that was not charged as 0.
KNOWN_COST = Coalesce(F("cost_usd"), F("estimated_usd"), 0.0)


def spent_today(now: dt.datetime) -> float:
    """The dollars spent since midnight (site's zone) on calls and on tests of keys."""
    calls = _calls_since_midnight(now).aggregate(total=Sum(KNOWN_COST))["total"] or 0.0
    tests = JudgeKeyTest.objects.filter(started_at__gte=start_of_day(now)).aggregate(total=Sum("cost_usd"))["total"]
    return float(calls + (tests or 0.0))


def _calls_since_midnight(now: dt.datetime) -> QuerySet[JudgeAttempt]:
    return JudgeAttempt.objects.filter(started_at__gte=start_of_day(now))


def estimate(judge: Judge, cost: CallCost, *, batch: bool = False) -> float:
    """The expected price of a call in dollars, at the price of a batch if `batch`."""
    tokens = {"input_tokens": round(cost.input_tokens), "output_tokens": round(cost.output_tokens)}
    return prices.cost(judge.model, **tokens, batch=batch)


def affords(judge: Judge, usd: float, now: dt.datetime) -> bool:
    """Whether today's budget allows a call of `usd`. If not, the quota is exhausted until midnight.

    Runs in the transaction that writes the attempt, so that two calls cannot both spend the last cent.
    """
    budget = JudgePolicy.objects.current().daily_budget_usd
    if budget is None:
        return True
    quota.lock(judge)
    spent = spent_today(now)
    if spent + usd <= budget:
        return True
    detail = f"${spent:.2f} of ${budget:.2f} are spent, and the next call is expected to cost ${usd:.3f}"
    quota.exhaust_budget(judge, now, detail)
    return False


def payer(job: JudgeJob, session: Session) -> ApiToken | None:
    """The token that pays for a call for the job, from its daily quota: the one that first submitted its `session`.

    None for sessions that the site imported itself, and for jobs that a person started.
    """
    if job.run_id is not None or job.purpose == Purpose.TRIAL:
        return None
    first_submission = session.submissions.select_related("token").order_by("pk").first()
    return None if first_submission is None else first_submission.token


def remaining_usd(token: ApiToken, now: dt.datetime) -> float:
    """The dollars remaining of the token's daily quota; infinite if tokens have no quota. Calls under way count as
    spent.
    """
    if not settings.TOKEN_DAILY_JUDGE_USD:
        return math.inf
    return float(settings.TOKEN_DAILY_JUDGE_USD) - paid_by_tokens(now, token).get(token.pk, 0.0)


def paid_by_tokens(now: dt.datetime, *tokens: ApiToken) -> dict[int, float]:
    """The dollars spent on calls since midnight, by primary key of the token; without `tokens`, of all tokens."""
    calls = _calls_since_midnight(now)
    calls = calls.filter(payer__in=tokens) if tokens else calls.exclude(payer=None)
    return dict(calls.order_by().values_list("payer").annotate(total=Sum(KNOWN_COST)))


def set_policy(*, by: User | None, **changes: object) -> JudgePolicy:
    """Save a new policy: the current one with `changes`. ValidationError if a number is out of range.

    If the budget is lifted, or raised above what was spent today, judging goes on at once.
    """
    current = JudgePolicy.objects.current()
    fields = ("daily_budget_usd", "reserved_share", "abstention_share", "repeat_share", "second_share", "use_batches")
    columns = {name: getattr(current, name) for name in fields}
    policy = JudgePolicy(by=by, **{**columns, **changes})
    policy.full_clean(exclude=["by"])
    now = clock.now()
    with transaction.atomic():
        policy.save()
        budget = policy.daily_budget_usd
        if quota.is_configured() and (budget is None or budget > spent_today(now)):
            quota.reopen_budget(now, by=by)
    return policy
