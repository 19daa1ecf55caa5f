"""Anytime-valid inference from draws, by betting: the effect of an arm, its interval and its e-value at any number of
looks.

Draw i took an arm, A = 1, with the probability p, or held it out, A = 0; then its outcome y was observed. With a
prediction m of y from the draws before it, and τ the effect of taking the arm on an outcome,

    x = (A − p)·(y − m)        E[x | the draws before] = h·τ        h = p·(1 − p)

so that Σx/Σh estimates the effect. x/h is the difference with inverse probabilities,
A/p·(y − m) − (1 − A)/(1 − p)·(y − m) (Horvitz and Thompson 1952; with a mean for each group, as in Robins, Rotnitzky
and Zhao 1994, it is the same number for m = (1 − p)·m₁ + p·m₀). The weights h are optimal if the probabilities differ
(Li, Morgan and Zaslavsky 2018), and bound every row, however small its probability.

A bettor who stakes a fraction λ of their wealth on each row, that the effect is more than θ, has Π(1 + λ·(x − θ·h)) of
it in the end. If the effect is not more than θ, the expected wealth doesn't grow, so that it ever reaches c with
probability 1/c at most (Ville 1939). Half of the wealth bets on more and half on less, in equal parts at a few stakes
(Waudby-Smith and Ramdas 2023): the wealth against θ = 0 is the e-value, and the θ against which it is below 10 form an
interval that covers the effect with 90 % over all looks together. No distribution of the outcomes is assumed, only that
they are bounded and that the probabilities are right.

Late verdicts and corrections change past rows, and all numbers here are recomputed from the current rows. For an arm
without any effect this is valid: the outcomes are the same however it is drawn, and whenever they became known, so that
each reading is a fair bet on the draws alone. Validity over readings before and after a correction assumes that the
correction had nothing to do with the draws. Graders must not know what was drawn.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bandit.core.estimate import LEVEL, Estimate
from bandit.core.table import Flags, Floats, Ints

# Stakes for one unit of outcome. The best for an effect τ is τ/σ²: 1.25 for .05 at a standard deviation of .2.
STAKES = np.array([0.3, 0.6, 1.2, 2.4])
# The largest fraction of the wealth that one row may lose.
MAX_LOSS = 0.9
# The prediction of the first outcome, above its lower bound, and how many outcomes it counts as.
PRIOR_OUTCOME, PRIOR_WEIGHT = 0.5, 2.0
# The greatest probability that an arm without effect ever gets a verdict, and the greatest expected share of arms
# without effect among those with a verdict.
MAX_FALSE_CALL, MAX_FALSE_SHARE = 0.01, 0.05
# The prior variance of an outcome, and how many outcomes it counts as.
PRIOR_VARIANCE, PRIOR_OUTCOMES = 0.04, 10
# The log-wealth from which an effect is outside the interval, and the precision of the interval's ends.
MIN_EXCLUDING_LOG_WEALTH, PRECISION = -math.log(1 - LEVEL), 1e-4
# The p-value below which the groups differ in their share of sessions without an outcome.
MAX_P_VALUE = 0.01
# The largest share of draws without a session; above it somebody may be picking among draws.
MAX_SHARE_LOST = 0.2
# Tolerance for rounding errors at a bound.
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Draws as columns (n,), in the order in which they were made.

    `taken`: whether the arm was drawn, with probability `chance` in (0, 1). `came`: the draw led to a session, and
    `heeded`: that session did what was drawn. `outcome` is from `least` to `least` + 1, or NaN if there is none; `day`
    is an ordinal. Raises ValueError for values out of range and columns of unequal length.
    """

    taken: Flags
    chance: Floats
    came: Flags
    heeded: Flags
    outcome: Floats
    least: Floats
    day: Ints

    def __post_init__(self) -> None:
        columns = (self.taken, self.chance, self.came, self.heeded, self.outcome, self.least, self.day)
        if len({column.shape for column in columns}) > 1 or self.taken.ndim != 1:
            raise ValueError(f"expected columns of one length; got shapes {sorted({each.shape for each in columns})}")
        if not ((self.chance > 0) & (self.chance < 1)).all():
            raise ValueError("a drawn presence has a chance above 0 and below 1; what was certain was not drawn")
        above = self.outcome[self.scored] - self.least[self.scored]
        if np.isinf(self.outcome).any() or ((above < -TOLERANCE) | (above > 1 + TOLERANCE)).any():
            raise ValueError("an outcome is from the least there could be to 1 above that, or NaN where there is none")

    @classmethod
    def none(cls) -> Self:
        """No draws: all columns empty."""
        flags, numbers = np.zeros(0, dtype=bool), np.zeros(0)
        days = np.zeros(0, dtype=np.int64)
        return cls(taken=flags, chance=numbers, came=flags, heeded=flags, outcome=numbers, least=numbers, day=days)

    @property
    def scored(self) -> Flags:
        """Whether each draw has an outcome, (n,)."""
        flags: Flags = ~np.isnan(self.outcome)
        return flags

    def select(self, flags: NDArray[np.bool_]) -> Self:
        """The draws whose flag is set."""
        return type(self)(
            taken=self.taken[flags],
            chance=self.chance[flags],
            came=self.came[flags],
            heeded=self.heeded[flags],
            outcome=self.outcome[flags],
            least=self.least[flags],
            day=self.day[flags],
        )

    def unscored(self) -> "UnscoredShares":
        """The shares without an outcome in either group, 0 in an empty one, the p-value of their difference, and the
        share of draws that led to no session.

        With a missing outcome as 1 and others as 0, `off` is the deviation from the mean of all. If the draw made no
        difference, Σ(A − p)·off is about normal, with the mean 0 and the variance Σp·(1 − p)·off².
        """
        from scipy.special import ndtr

        missing, n = ~self.scored, len(self.taken)
        if not n:
            return UnscoredShares(taken=0.0, held_out=0.0, p=1.0, lost=0.0)
        shares = [float(missing[group].mean()) if group.any() else 0.0 for group in (self.taken, ~self.taken)]
        off = missing - missing.mean()
        variance = float((self.chance * (1 - self.chance) * off**2).sum())
        z = abs(float(((self.taken - self.chance) * off).sum())) / math.sqrt(variance) if variance else 0.0
        lost = float((~self.came).mean())
        return UnscoredShares(taken=shares[0], held_out=shares[1], p=2 * float(ndtr(-z)), lost=lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnscoredShares:
    """Shares of draws without an outcome among those `taken` and `held_out`; `p` is the p-value of their difference.

    The test treats the draws as random and which sessions lack an outcome as fixed. `lost` is the share of draws that
    led to no session, which is high if somebody draws again until they like the result.
    """

    taken: float
    held_out: float
    p: float
    lost: float

    @property
    def differ(self) -> bool:
        return self.p < MAX_P_VALUE

    @property
    def are_chosen(self) -> bool:
        """Whether enough draws led to no session to suspect that somebody picks among them."""
        return self.lost > MAX_SHARE_LOST


@dataclass(frozen=True, kw_only=True, eq=False)
class Bets:
    """The draws with an outcome as bets, in columns (n,).

    `x` = (A − p)·(y − m) and `h` = p·(1 − p) are those of the module's docstring; `max_x` is the greatest possible |x|.
    `variance` is the mean of (y − m)², pooled with a prior. Wealth is cached by hypothesis.
    """

    x: Floats
    h: Floats
    max_x: Floats
    variance: float

    @classmethod
    def from_draws(cls, draws: Draws) -> Self:
        """The bets on those draws that have an outcome."""
        scored = draws.scored
        taken, p, y, least = draws.taken[scored], draws.chance[scored], draws.outcome[scored], draws.least[scored]
        n = np.arange(len(y))  # of outcomes before each
        predicted = (np.cumsum(y) - y + PRIOR_WEIGHT * PRIOR_OUTCOME) / (n + PRIOR_WEIGHT)
        # The greatest possible |y − predicted|, wherever in its range the outcome lies.
        max_error = np.maximum(predicted - least, least + 1 - predicted)
        squares = float(((y - predicted) ** 2).sum())
        return cls(
            x=(taken - p) * (y - predicted),
            h=p * (1 - p),
            max_x=np.maximum(p, 1 - p) * max_error,
            variance=(squares + PRIOR_OUTCOMES * PRIOR_VARIANCE) / (len(y) + PRIOR_OUTCOMES),
        )

    @cached_property
    def mean(self) -> float:
        """The estimated effect Σx/Σh, within [−1, 1]; there must be at least one row."""
        return min(max(float(self.x.sum()) / float(self.h.sum()), -1.0), 1.0)

    @property
    def evidence(self) -> float:
        """The e-value against no effect: 1 at the start, and at most 1 in expectation if there is none."""
        return math.exp(min(self._log_wealth(0.0), 700.0))  # exp overflows above 709

    def excludes(self, effect: float) -> bool:
        """Whether this effect is outside the interval."""
        return self._log_wealth(effect) >= MIN_EXCLUDING_LOG_WEALTH

    def effect(self) -> Estimate:
        """The effect, its standard error, and its interval, valid over all looks, within [−1, 1]."""
        error = float(np.sqrt((self.x**2).sum())) / float(self.h.sum())
        low, high = self._bound(-1.0), self._bound(1.0)
        return Estimate(mean=self.mean, error=error, low=low, high=high)

    def _bound(self, limit: float) -> float:
        """The end of the interval on the side of `limit`, which is 1 or −1; `limit` itself if it isn't excluded."""
        from scipy.optimize import brentq

        if not self.excludes(limit):
            return limit
        end: float = brentq(
            lambda effect: self._log_wealth(effect) - MIN_EXCLUDING_LOG_WEALTH, self.mean, limit, xtol=PRECISION
        )
        return end

    def sessions_needed(self, effect: float, *, chance: float, threshold: float) -> int:
        """Expected further sessions until an effect of this size reaches the e-value `threshold`, if each is drawn with
        the probability `chance`.

        A row adds about λ·h·τ − λ²·h·(σ² + τ²·h)/2 to the log-wealth at the stake λ, with τ the `effect`, h = p·(1 − p)
        of the `chance` p, and σ² the `variance`. The wealth is divided among all stakes and both sides, and the
        others may lose theirs, so the best one has to multiply its own by threshold · 2 · len(STAKES). 0 if the present
        rows should suffice.
        """
        h = chance * (1 - chance)
        stakes = np.minimum(STAKES, MAX_LOSS / (max(chance, 1 - chance) * max(PRIOR_OUTCOME, 1 - PRIOR_OUTCOME)))
        growth = float((h * (stakes * effect - stakes**2 * (self.variance + effect**2 * h) / 2)).max())
        total = math.log(threshold * 2 * len(STAKES)) / max(growth, 1e-9)
        return max(math.ceil(total - float(self.h.sum()) / h), 0)

    def _log_wealth(self, hypothesis: float) -> float:
        """Logarithm of the mean wealth, from 1, of bets that the effect is more and less than the hypothesis; cached.

        The mean is over both sides and all STAKES. A stake is lowered so that no row loses more than MAX_LOSS.
        """
        if hypothesis in self._log_wealth_by_hypothesis:
            return self._log_wealth_by_hypothesis[hypothesis]
        from scipy.special import logsumexp

        excess = self.x - hypothesis * self.h
        max_stake = MAX_LOSS / (self.max_x + abs(hypothesis) * self.h)
        # One stake after the other in the same buffers: all at once wouldn't fit into the processor's cache.
        bets, growth, log_wealth = np.empty_like(excess), np.empty_like(excess), np.empty((2, len(STAKES)))
        for at, stake in enumerate(STAKES):
            np.minimum(stake, max_stake, out=bets)
            np.multiply(bets, excess, out=bets)
            log_wealth[0, at] = np.log1p(bets, out=growth).sum()
            np.negative(bets, out=bets)
            log_wealth[1, at] = np.log1p(bets, out=growth).sum()
        result = float(logsumexp(log_wealth)) - math.log(log_wealth.size)
        self._log_wealth_by_hypothesis[hypothesis] = result
        return result

    @cached_property
    def _log_wealth_by_hypothesis(self) -> dict[float, float]:
        return {}


def evidence_threshold(evidence: Iterable[float]) -> float:
    """The least e-value with which an arm may get a verdict, given the e-values (`evidence`) of all arms.

    By the e-BH procedure (Wang and Ramdas 2022): of K arms, k may get a verdict if each of them has an e-value of at
    least K/(MAX_FALSE_SHARE·k), for the largest such k. Then the expected share of arms without effect among them is at
    most MAX_FALSE_SHARE, even if the arms are dependent. The threshold is never below 1/MAX_FALSE_CALL, so that an arm
    without effect ever gets a verdict with at most the probability MAX_FALSE_CALL.
    """
    ranked = sorted(evidence, reverse=True)
    decided = 1
    for k, e_value in enumerate(ranked, start=1):
        if e_value >= _threshold(len(ranked), k):
            decided = k
    return _threshold(max(len(ranked), 1), decided)


def _threshold(arms: int, decided: int) -> float:
    """The e-value that each arm needs if `decided` of `arms` get a verdict."""
    return max(arms / (MAX_FALSE_SHARE * decided), 1 / MAX_FALSE_CALL)
