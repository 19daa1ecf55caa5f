"""What draws tell however often somebody looks: bets against chance, and the effects that no bet has ruled out.

Draw i took an arm, A = 1, with the chance p, or held it out, A = 0; then its outcome y came. With a prediction m of y
from the draws before it, and τ what taking the arm adds to an outcome,

    x = (A − p)·(y − m)        E[x | the draws before] = h·τ        h = p·(1 − p)

so that Σx/Σh is the effect. x/h is the difference with inverse chances, A/p·(y − m) − (1 − A)/(1 − p)·(y − m) (Horvitz
and Thompson 1952; with a mean for each group, as in Robins, Rotnitzky and Zhao 1994, it is the same number for
m = (1 − p)·m₁ + p·m₀). The weights h give each row what it is worth where the chances differ (Li, Morgan and Zaslavsky
2018), and bound every row, however small its chance.

Whoever bets λ of their money on each row, that the effect is more than θ, has Π(1 + λ·(x − θ·h)) of it after them.
Where it is no more, that does not grow, by expectation, so that it ever reaches c with a chance of 1/c at most (Ville
1939). Half of the money bets on more and half on less, in equal parts at a few stakes (Waudby-Smith and Ramdas 2023):
what it becomes against θ = 0 is the e-value, and the θ against which it is below 10 are an interval that covers the
effect with 90 % at all looks together. No law of the outcomes is assumed; they are bounded, and the chances are true.

Late verdicts and corrections change rows of the past, and with them every number here, which is worked out anew from
the rows as they stand. Where an arm changes no session at all, this costs nothing: the outcomes are the same numbers
however it is drawn, and by whatever history they became known, so that each reading is a fair bet on the draws alone.
That the chance holds over readings before and after a correction assumes that the correction had nothing to do with
the draws. What draws decide must not be known to those who grade.
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
# The most of the money that one row may take.
MOST_LOST = 0.9
# The prediction of the first outcome, above the least there could be, and how many outcomes it counts as.
MIDDLE, PRIOR = 0.5, 2.0
# No arm that does nothing is ever called anything with more than this chance, and of all that are called anything no
# more than this share does nothing, by expectation.
EVER, SHARE = 0.01, 0.05
# The usual variance of an outcome, and how many outcomes that counts as.
USUAL_VARIANCE, USUAL = 0.04, 10
# The money, as a logarithm, at which an effect is left out of the interval; and how exactly its ends are found.
RULED_OUT, CLOSE = -math.log(1 - LEVEL), 1e-4
# A chance of at most this, and sessions without an outcome are not alike in both groups.
UNLIKE = 0.01
# More draws than this without a session, and the draws may be chosen from.
MOST_DRAWS_LOST = 0.2
# What rounding may make of a bound.
TINY = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Draws as columns (n,), in the order in which they were made.

    `taken` as it was drawn, with the `chance` of being taken, in (0, 1); `came`: a session came of it; `heeded`: what
    happened there was what was drawn; `outcome` NaN where there is none, else from `least` to `least` + 1; `day` an
    ordinal. Raises ValueError for others.
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
        if np.isinf(self.outcome).any() or ((above < -TINY) | (above > 1 + TINY)).any():
            raise ValueError("an outcome is from the least there could be to 1 above that, or NaN where there is none")

    @classmethod
    def none(cls) -> Self:
        flags, numbers = np.zeros(0, dtype=bool), np.zeros(0)
        days = np.zeros(0, dtype=np.int64)
        return cls(taken=flags, chance=numbers, came=flags, heeded=flags, outcome=numbers, least=numbers, day=days)

    @property
    def scored(self) -> Flags:
        found: Flags = ~np.isnan(self.outcome)
        return found

    def only(self, kept: NDArray[np.bool_]) -> Self:
        """Those that are `kept` (n,)."""
        return type(self)(
            taken=self.taken[kept],
            chance=self.chance[kept],
            came=self.came[kept],
            heeded=self.heeded[kept],
            outcome=self.outcome[kept],
            least=self.least[kept],
            day=self.day[kept],
        )

    def unscored(self) -> "UnscoredShares":
        """How many are without an outcome, by how they were drawn."""
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
    """The shares without an outcome of what was `taken` and `held_out`; `p` is the chance that only luck parts them.

    By the draws: which sessions end without an outcome is given, and the draws are all that is random. `lost` is the
    share of all of which no session came: whoever draws again until they like what they get leaves many of those.
    """

    taken: float
    held_out: float
    p: float
    lost: float

    @property
    def differ(self) -> bool:
        return self.p < UNLIKE

    @property
    def are_chosen(self) -> bool:
        """Whether so many draws led to nothing that somebody may choose among them."""
        return self.lost > MOST_DRAWS_LOST


@dataclass(frozen=True, kw_only=True, eq=False)
class Bets:
    """The rows with an outcome, as bets (n,): `x`, its expectation `h` for an effect of 1, and the `most` of |x|.

    `variance` is the mean of (y − m)², with what is usual where there are few. What was asked once is remembered.
    """

    x: Floats
    h: Floats
    most: Floats
    variance: float

    @classmethod
    def on(cls, draws: Draws) -> Self:
        """The bets on draws, of those that have an outcome."""
        held = draws.scored
        taken, p, y, least = draws.taken[held], draws.chance[held], draws.outcome[held], draws.least[held]
        n = np.arange(len(y))
        predicted = (np.cumsum(y) - y + PRIOR * MIDDLE) / (n + PRIOR)
        # |y − m| at most, wherever in its range an outcome lies.
        reach = np.maximum(predicted - least, least + 1 - predicted)
        squares = float(((y - predicted) ** 2).sum())
        return cls(
            x=(taken - p) * (y - predicted),
            h=p * (1 - p),
            most=np.maximum(p, 1 - p) * reach,
            variance=(squares + USUAL * USUAL_VARIANCE) / (len(y) + USUAL),
        )

    @cached_property
    def mean(self) -> float:
        """The effect Σx/Σh of at least one row, within [−1, 1]."""
        return min(max(float(self.x.sum()) / float(self.h.sum()), -1.0), 1.0)

    @property
    def evidence(self) -> float:
        """The e-value against no effect: 1 at the start, and at most 1 on average if there is none."""
        return math.exp(min(self._wealth(0.0), 700.0))

    def excludes(self, effect: float) -> bool:
        """Whether the interval leaves this effect out."""
        return self._wealth(effect) >= RULED_OUT

    def effect(self) -> Estimate:
        """The effect, its standard error, and the interval for all looks together, within [−1, 1]."""
        from scipy.optimize import brentq

        error = float(np.sqrt((self.x**2).sum())) / float(self.h.sum())
        # Each end is where the money is enough to leave an effect out; −1 or 1, where it never is.
        low, high = (
            brentq(lambda effect: self._wealth(effect) - RULED_OUT, self.mean, far, xtol=CLOSE)
            if self.excludes(far)
            else far
            for far in (-1.0, 1.0)
        )
        return Estimate(mean=self.mean, error=error, low=low, high=high)

    def sessions_needed(self, effect: float, *, chance: float, bar: float) -> int:
        """How many more draws with this chance would take an effect of this size to the e-value `bar`: an expectation.

        A row adds λ·h·τ − λ²·h·σ²/2 to the logarithm of the money at the stake λ. 0 where the rows so far should do.
        """
        h = chance * (1 - chance)
        stakes = np.minimum(STAKES, MOST_LOST / (max(chance, 1 - chance) * max(MIDDLE, 1 - MIDDLE)))
        grows = float((h * (stakes * effect - stakes**2 * (self.variance + effect**2 * h) / 2)).max())
        whole = math.log(bar * 2 * len(STAKES)) / max(grows, 1e-9)
        return max(math.ceil(whole - float(self.h.sum()) / h), 0)

    def _wealth(self, effect: float) -> float:
        """The logarithm of what 1 has become, against this effect."""
        if effect not in self._known:
            self._known[effect] = self._become(effect)
        return self._known[effect]

    @cached_property
    def _known(self) -> dict[float, float]:
        return {}

    def _become(self, effect: float) -> float:
        from scipy.special import logsumexp

        row = self.x - effect * self.h
        most = MOST_LOST / (self.most + abs(effect) * self.h)
        # One stake after the other, in the same place: all at once would not fit into a processor's memory.
        bets, grown, money = np.empty_like(row), np.empty_like(row), np.empty((2, len(STAKES)))
        for at, stake in enumerate(STAKES):
            np.minimum(stake, most, out=bets)
            np.multiply(bets, row, out=bets)
            money[0, at] = np.log1p(bets, out=grown).sum()
            np.negative(bets, out=bets)
            money[1, at] = np.log1p(bets, out=grown).sum()
        return float(logsumexp(money)) - math.log(money.size)


def bar(evidence: Iterable[float]) -> float:
    """The e-value from which one of several arms may be called something, given the `evidence` on each of them.

    The e-BH procedure (Wang and Ramdas 2022): of K arms, k may be called where each of these k has K/(SHARE·k) at
    least, for the largest such k; then no more than SHARE of them do nothing, by expectation, whatever they have in
    common. None is called under 1/EVER, so that one that does nothing is ever called anything with that chance at most.
    """
    ranked = sorted(evidence, reverse=True)
    wanted = [_wanted(len(ranked), k) for k in range(1, len(ranked) + 1)]
    called = [k for k, (each, least) in enumerate(zip(ranked, wanted, strict=True), start=1) if each >= least]
    return _wanted(max(len(ranked), 1), max(called, default=1))


def _wanted(arms: int, called: int) -> float:
    return max(arms / (SHARE * called), 1 / EVER)
