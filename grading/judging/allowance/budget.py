"""Dollars: what today has cost, what a call is expected to cost, and whether it may still be made."""

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

# One whose cost is not told counts as estimated; one that was not charged, as nothing.
KNOWN_COST = Coalesce(F("cost_usd"), F("estimated_usd"), 0.0)


def spent_today(now: dt.datetime) -> float:
    """What the calls since midnight (site's zone) cost, in dollars, and tests of keys among them.

    A call whose cost is not told counts as estimated.
    """
    calls = _since_midnight(now).aggregate(total=Sum(KNOWN_COST))["total"] or 0.0
    tests = JudgeKeyTest.objects.filter(started_at__gte=start_of_day(now)).aggregate(total=Sum("cost_usd"))["total"]
    return float(calls + (tests or 0.0))


def _since_midnight(now: dt.datetime) -> QuerySet[JudgeAttempt]:
    return JudgeAttempt.objects.filter(started_at__gte=start_of_day(now))


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


def payer(job: JudgeJob, session: Session) -> ApiToken | None:
    """On whose daily quota a call for the job counts: the token's that first submitted its `session`.

    None for sessions that the site imported itself, and for what a person asked for.
    """
    if job.run_id is not None or job.purpose == Purpose.TRIAL:
        return None
    first = session.submissions.select_related("token").order_by("pk").first()
    return None if first is None else first.token


def left_of(token: ApiToken, now: dt.datetime) -> float:
    """The dollars that are left of the token's daily quota; infinite where it has none. Calls under way are counted."""
    if not settings.TOKEN_DAILY_JUDGE_USD:
        return math.inf
    return float(settings.TOKEN_DAILY_JUDGE_USD) - paid_by_tokens(now, token).get(token.pk, 0.0)


def paid_by_tokens(now: dt.datetime, *tokens: ApiToken) -> dict[int, float]:
    """What the calls since midnight cost by the token that pays for them; of these alone, where any are named."""
    calls = _since_midnight(now).filter(payer__in=tokens) if tokens else _since_midnight(now).exclude(payer=None)
    return dict(calls.order_by().values_list("payer").annotate(total=Sum(KNOWN_COST)))


def set_policy(*, by: User | None, **changes: object) -> JudgePolicy:
    """A new policy row: the one that holds, with `changes`. ValidationError where a number is out of range.

    A budget that is raised above what today has cost, or lifted, lets judging go on at once.
    """
    held = JudgePolicy.objects.current()
    fields = ("daily_budget_usd", "reserved_share", "abstention_share", "repeat_share", "second_share", "use_batches")
    policy = JudgePolicy(by=by, **{**{name: getattr(held, name) for name in fields}, **changes})
    policy.full_clean(exclude=["by"])
    now = clock.now()
    with transaction.atomic():
        policy.save()
        budget = policy.daily_budget_usd
        if quota.is_configured() and (budget is None or budget > spent_today(now)):
            quota.reopen_budget(now, by=by)
    return policy
