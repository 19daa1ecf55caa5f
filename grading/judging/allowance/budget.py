"""Dollars: what today has cost, what a call is expected to cost, and whether it may still be made."""

import datetime as dt

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from grading.days import start_of_day
from grading.judging.allowance import prices, quota
from grading.judging.core.ratelimits import CallCost
from grading.judging.judges import Judge
from grading.models import JudgeAttempt, JudgePolicy


def spent_today(now: dt.datetime) -> float:
    """What the calls since midnight (site's zone) cost, in dollars. One whose cost is not told counts as estimated."""
    known = Coalesce(F("cost_usd"), F("estimated_usd"))
    total = JudgeAttempt.objects.filter(started_at__gte=start_of_day(now)).aggregate(total=Sum(known))["total"]
    return float(total or 0.0)


def estimate(judge: Judge, cost: CallCost, *, batch: bool = False) -> float:
    """What a call that takes `cost` tokens should cost, in dollars; in a batch at its price."""
    read, written = round(cost.input_tokens), round(cost.output_tokens)
    return prices.cost(judge.model, input_tokens=read, output_tokens=written, batch=batch)


def affords(judge: Judge, usd: float, now: dt.datetime) -> bool:
    """Whether today's budget bears a call of `usd`. Where it doesn't, the quota is exhausted until midnight.

    Runs in the transaction that writes the attempt, so that of two calls only one spends the last cent.
    """
    budget = JudgePolicy.objects.current().daily_budget_usd
    if budget is None:
        return True
    quota.lock(judge)
    spent = spent_today(now)
    if spent + usd <= budget:
        return True
    said = f"${spent:.2f} of ${budget:.2f} are spent, and the next call is expected to cost ${usd:.3f}"
    quota.spend_out(judge, now, said)
    return False


def set_policy(*, by: User | None, **changes: object) -> JudgePolicy:
    """A new policy row: the one that holds, with `changes`. ValidationError where a number is out of range.

    A budget that is raised above what today has cost, or lifted, lets judging go on at once.
    """
    held = JudgePolicy.objects.current()
    fields = ("daily_budget_usd", "reserved_share", "abstention_share", "repeat_share", "second_share", "use_batches")
    policy = JudgePolicy(by=by, **{**{name: getattr(held, name) for name in fields}, **changes})
    policy.full_clean(exclude=["by"])
    now = timezone.now()
    with transaction.atomic():
        policy.save()
        budget = policy.daily_budget_usd
        if quota.is_configured() and (budget is None or budget > spent_today(now)):
            quota.reopen_budget(now, by=by)
    return policy
