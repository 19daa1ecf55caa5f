"""Which sessions are judged first: those whose verdict should move what the bandit does most, in reward."""

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from django.conf import settings
from django.utils import timezone
from numpy.typing import NDArray

from bandit.core.posterior import fold
from bandit.core.propensity import Floats, p_best, propensities
from bandit.models import Arm, Bandit
from bandit.reading import policy_of, rows_of, site_day
from grading.models import JudgeJob
from grading.models.judging import JobState

BANDIT = "category"
# How far a verdict lies from what was expected of it, as a standard deviation in reward.
SPREAD = 0.2
# The source whose credit a verdict usually replaces.
PROVISIONAL = "trajectory"
# P(best) costs arms × points; an order of jobs needs no more than this many cells, and no fewer points.
CELLS, FEWEST_POINTS, MOST_POINTS = 1_000_000, 64, 1024
# Worth is kept to so many digits, so that jobs of like worth are written together and small moves write nothing.
DIGITS = 2
WRITTEN_AT_ONCE = 500


def worth(*, strength: Floats, chance: Floats, scale: float, weight: float) -> Floats:
    """How far one verdict on each arm is expected to move the reward of the bandit's next choice, in [0, 1].

    An arm with mean m and `strength` n = α + β holds a provisional credit v of `weight` w in [0, 1]; the verdict
    r = v + ε replaces it with weight 1. By the posterior's α += e·w·v (40-bandit.md; e is `scale`)

        Δm = e·((r − m) − w·(v − m)) / (n + e·(1 − w))

    and with v about m and ε normal around 0 with standard deviation SPREAD, E|ε| = SPREAD·√(2/π):

        worth = chance · SPREAD·√(2/π) · e / (n + e·(1 − w))

    `chance` is how often the arm is chosen: a mean that nobody acts on is worth little. That the arm's long-run
    centre moves too, by less, is left out. Shapes (K,).
    """
    moved: Floats = SPREAD * math.sqrt(2 / math.pi) * scale / (strength + scale * (1 - weight))
    return chance * moved


def by_arm(now: dt.datetime) -> dict[int, float]:
    """The worth of a verdict for each arm of the category bandit, by the arm's id; from its posterior at `now`."""
    bandit, today = Bandit.objects.named(BANDIT), site_day(now)
    arms = {arm.name: arm for arm in Arm.objects.of(BANDIT)}
    posterior = fold(rows_of(bandit, today), arms=arms, policy=policy_of(bandit), today=today)
    if not arms:
        return {}
    choosable = [not arms[name].paused and arms[name].retired_at is None for name in posterior.names]
    values = worth(
        strength=posterior.alpha + posterior.beta,
        chance=_chances(posterior.alpha, posterior.beta, np.array(choosable), bandit.floor),
        scale=posterior.evidence_scale,
        weight=settings.EVIDENCE_WEIGHTS[PROVISIONAL],
    )
    return {arms[name].pk: _rounded(float(value)) for name, value in zip(posterior.names, values, strict=True)}


def prioritise(now: dt.datetime | None = None) -> int:
    """Give every queued job its worth, and call those queued longer than JUDGE_NEW_MINUTES backlog; how many changed.

    A session of unknown category is worth what the middle arm is.
    """
    now = now or timezone.now()
    new_since = now - dt.timedelta(minutes=settings.JUDGE_NEW_MINUTES)
    queued = JudgeJob.objects.filter(state=JobState.QUEUED)
    changed = queued.filter(backlog=False, created_at__lt=new_since).update(backlog=True)
    held = list(queued.order_by("pk").values_list("pk", "session__category", "worth"))
    return changed + _write(held, by_arm(now)) if held else changed


def _write(held: Sequence[tuple[int, int | None, float]], worths: Mapping[int, float]) -> int:
    """Jobs of the same new worth are written together; how many had another before."""
    typical = sorted(worths.values())[len(worths) // 2] if worths else 0.0
    changed: dict[float, list[int]] = defaultdict(list)
    for job, arm, before in held:
        value = typical if arm is None else worths.get(arm, typical)
        if value != before:
            changed[value].append(job)
    for value, jobs in changed.items():
        for start in range(0, len(jobs), WRITTEN_AT_ONCE):
            JudgeJob.objects.filter(pk__in=jobs[start : start + WRITTEN_AT_ONCE]).update(worth=value)
    return sum(map(len, changed.values()))


def _chances(alpha: Floats, beta: Floats, choosable: NDArray[np.bool_], floor: float) -> Floats:
    """How often each arm is chosen. One that cannot be chosen now may come back: it has half of an equal share."""
    chance: Floats = np.full(len(alpha), 0.5 / len(alpha))
    count = int(choosable.sum())
    if count:
        points = min(max(CELLS // count, FEWEST_POINTS), MOST_POINTS)
        best = p_best(alpha[choosable], beta[choosable], points=points)
        chance[choosable] = propensities(best, floor=floor)
    return chance


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
