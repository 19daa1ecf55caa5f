"""The state of each configured judge: its quota, and how much of its rate limits is used."""

from dataclasses import dataclass

from grading.judging import judges
from grading.judging.allowance import limiter
from grading.judging.judges import Judge
from grading.models import Quota
from grading.models.judging import JudgeRole

DIMENSIONS = {
    "requests": "Requests",
    "tokens": "All tokens",
    "input_tokens": "Input tokens",
    "output_tokens": "Output tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeStanding:
    """A configured judge and its quota."""

    judge: Judge
    quota: Quota


def standings() -> dict[JudgeRole, JudgeStanding]:
    """Every configured judge by role, the first judge first, in one query. A judge that was never called is open."""
    configured = judges.configured()
    quotas = {(quota.key, quota.model): quota for quota in Quota.objects.all()} if configured else {}
    standings_by_role: dict[JudgeRole, JudgeStanding] = {}
    for role, judge in configured.items():
        stored = quotas.get((judge.fingerprint, judge.model))
        quota = stored or Quota(key=judge.fingerprint, model=judge.model)
        standings_by_role[role] = JudgeStanding(judge=judge, quota=quota)
    return standings_by_role


def headroom(standing: JudgeStanding) -> limiter.State:
    """The limiter's figures now, or those of the last answer's headers if it has none."""
    quota = standing.quota
    state = limiter.shared().state(standing.judge.name)
    if state.dimensions and state.is_shared:
        return state
    dimensions = {
        name: limiter.DimensionState(
            limit=limits["limit"],
            used=limits["limit"] - limits.get("remaining", limits["limit"]),  # 0 if that is unknown
        )
        for name, limits in quota.limits.items()
        if name in DIMENSIONS
    }
    return limiter.State(dimensions=dimensions, as_of=quota.limits_at)
