"""What another policy would have earned, from the log of the one that ran.

Row i of a log: arm a was drawn with the chance π₀(a) and earned r; the target policy would have drawn it with π₁(a).
With the weight w = π₁(a)/π₀(a) and n rows:

    IPS    Σ w·r / n                                  Horvitz and Thompson 1952: unbiased, of large variance
    SNIPS  Σ w·r / Σ w                                Swaminathan and Joachims 2015: a bias of order 1/n, less variance
    DR     Σ [Σ_k π₁(k)·q(k) + w·(r − q(a))] / n      Dudík, Langford and Li 2011: q(k) is what arm k should earn
    gain   Σ [Σ_k (π₁(k) − π₀(k))·q(k) + (w − 1)·(r − q(a))] / n        DR of the target less DR of what ran

DR is unbiased whatever q is, if q of a row was made without that row's reward; the better q, the less its variance.
All of this holds for a log whose chances moved with what was learnt, too: given the past, each row is unbiased, so the
rows' errors are uncorrelated and their variances add up. What no estimate can see is an effect of a choice on later
rows: each row is asked by itself what another choice would have earned at that moment.

Weights above √n are cut to it, which keeps the error in check and draws a gain towards the model's (Ionides 2008).

Whether a draw is rewarded at all depends on how it went: bad sessions crash, or leave nothing to grade by. A level is
therefore told only where nearly all draws are rewarded. A gain is a difference of like sessions, in which most of that
cancels; most, not all.

Only draws belong in a log: a choice that somebody insisted on has no chance to be weighed by.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bandit.core.estimate import Estimate, effective, estimate, weighted_mean
from bandit.core.table import Floats, Ints

# Below this many equal rows a few heavy weights decide, and the intervals promise too much: nothing is claimed.
LEAST_EFFECTIVE = 30.0
# The share of draws with a reward from which levels are told.
LEAST_REWARDED = 0.95
# Σw/n is 1 but for chance; further off than this many standard errors, the log does not fit its own chances.
FARTHEST = 4.0
TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawLog:
    """Rewarded draws as columns, n rows and k arms.

    `arm` (n,) the arm drawn, 0 to k − 1; `ran` (n, k) π₀ and `target` (n, k) π₁ of every arm, 0 for those that could
    not be drawn, each row of sum 1; `reward` (n,) in [0, 1]; `model` (n, k) q, in [0, 1]. `unrewarded` draws stand
    beside them. Raises ValueError for anything else, an empty log included.
    """

    arm: Ints
    ran: Floats
    reward: Floats
    target: Floats
    model: Floats
    unrewarded: int = 0

    def __post_init__(self) -> None:
        n, k = self.target.shape
        if not n:
            raise ValueError("an estimate needs at least one draw; got an empty log")
        shapes = (self.arm.shape, self.ran.shape, self.reward.shape, self.model.shape)
        if shapes != ((n,), (n, k), (n,), (n, k)):
            raise ValueError(f"expected columns of shape ({n},), odds and a model of ({n}, {k}); got {shapes}")
        _require(self.arm, (self.arm >= 0) & (self.arm < k), f"the arm drawn is one of 0 to {k - 1}")
        _require(self.chance, (self.chance > 0) & (self.chance <= 1), "a draw's chance is in (0, 1]")
        _require(self.reward, (self.reward >= 0) & (self.reward <= 1), "a reward is in [0, 1]")
        _require(self.model, (self.model >= 0) & (self.model <= 1), "what an arm should earn is in [0, 1]")
        if self.unrewarded < 0:
            raise ValueError(f"the draws without a reward are at least 0; got {self.unrewarded}")
        for odds, whose in ((self.ran, "what ran"), (self.target, "a target")):
            _require(odds, (odds >= 0) & (odds <= 1), f"the chances of {whose} are in [0, 1]")
            total = odds.sum(axis=1)
            _require(total, np.abs(total - 1) < TINY, f"the chances of {whose} are of sum 1")

    @property
    def chance(self) -> Floats:
        """π₀ of the arms that were drawn, shape (n,)."""
        return self.of_drawn(self.ran)

    @property
    def rewarded(self) -> float:
        """The share of all draws that is rewarded."""
        return len(self.arm) / (len(self.arm) + self.unrewarded)

    def of_drawn(self, table: Floats) -> Floats:
        """The entries of `table` (n, k) of the arms that were drawn, shape (n,)."""
        found: Floats = np.take_along_axis(table, self.arm[:, None], axis=1)[:, 0]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Mean reward of a draw: what was `earned`, and the target's by `ips`, `snips` and `dr`, each in [0, 1]."""

    earned: Estimate
    ips: Estimate
    snips: Estimate
    dr: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyComparison:
    """What the target would have earned, against what ran, from the same `n` rows, and how far it can be trusted.

    `gain` is in [−1, 1]: nothing for a target that is what ran, whatever its luck; None where there are not two rows,
    or no weight at all. `levels` are None there too, and where the share of all draws that is `rewarded` is under 95 %.
    `effective` is how many equal rows the weights are worth (Kish), `largest` the heaviest weight, `clipped` how many
    stood above `cap` and were cut to it. `doubt` says why nothing may be told yet; "" where it may.
    """

    n: int
    gain: Estimate | None
    levels: Levels | None
    effective: float
    largest: float
    clipped: int
    cap: float
    rewarded: float
    doubt: str


def compare(log: DrawLog, *, cap: float | None = None) -> PolicyComparison:
    """The target against what ran. Weights are cut to `cap` > 0, √n unless given.

    The intervals are Student's, with the effective sample less one as degrees of freedom. Raises ValueError for a cap
    that is not positive.
    """
    if cap is None:
        cap = len(log.arm) ** 0.5
    if not cap > 0:
        raise ValueError(f"a cap of weights is above 0; got {cap!r}")
    raw = log.of_drawn(log.target) / log.chance
    weights = np.minimum(raw, cap)
    worth, doubt = effective(weights), ""
    if worth < LEAST_EFFECTIVE:
        doubt = f"effective sample {worth:.0f} of {len(raw)}; {LEAST_EFFECTIVE:.0f} are needed"
    elif abs(raw.mean() - 1) > max(FARTHEST * (float(raw.std(ddof=1)) / len(raw) ** 0.5), TINY):
        doubt = f"the weights' mean is {raw.mean():.2f}, not 1: the log lacks choices that the variant would make"
    is_possible, even = len(raw) > 1 and worth > 0, np.ones(len(raw))
    gains = ((log.target - log.ran) * log.model).sum(axis=1) + (weights - 1) * (log.reward - log.of_drawn(log.model))
    return PolicyComparison(
        n=len(raw),
        gain=estimate(*weighted_mean(gains, even), max(worth - 1, 1.0), least=-1.0) if is_possible else None,
        levels=_levels(log, weights, worth) if is_possible and log.rewarded >= LEAST_REWARDED else None,
        effective=worth,
        largest=float(raw.max()),
        clipped=int((raw > weights).sum()),
        cap=cap,
        rewarded=log.rewarded,
        doubt=doubt,
    )


def _levels(log: DrawLog, weights: Floats, worth: float) -> Levels:
    n, even, freedom = len(weights), np.ones(len(weights)), max(worth - 1, 1.0)
    robust = (log.target * log.model).sum(axis=1) + weights * (log.reward - log.of_drawn(log.model))
    return Levels(
        earned=estimate(*weighted_mean(log.reward, even), n - 1),
        ips=estimate(*weighted_mean(weights * log.reward, even), freedom),
        snips=estimate(*weighted_mean(log.reward, weights), freedom),
        dr=estimate(*weighted_mean(robust, even), freedom),
    )


def _require(values: Floats | Ints, good: NDArray[np.bool_], rule: str) -> None:
    if not good.all():
        raise ValueError(f"{rule}; got {values[~good][:3].tolist()} among {len(values)}")
