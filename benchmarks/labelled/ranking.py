"""How well a number ranks good sessions above bad ones: AUC, and AUC among sessions of the same length."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

ALIKE = 0.10
LOW, HIGH = 0.05, 0.95


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An AUC in [0, 1], its 90 % interval, and the pairs it is of; all NaN without a pair."""

    value: float
    low: float
    high: float
    pairs: int


class Half:
    """The sessions of one set and half. `values` given to `auc` are one a session, NaN where it was not scored.

    A pair is a good and a bad session; it counts 1 where the good one is above, ½ where both are level, and ½ where
    one of them has no score. Matched: pairs whose numbers of calls are within 10 % of the larger.
    """

    def __init__(self, good: Sequence[bool], calls: Sequence[int], tasks: Sequence[str], *, resamples: int) -> None:
        self.good = np.array(good, dtype=bool)
        self.calls = np.array(calls, dtype=float)
        self.tasks = np.unique(np.array(tasks), return_inverse=True)[1]
        self.resamples = resamples

    @cached_property
    def matched(self) -> np.ndarray:
        """Whether a good and a bad session are of about the same length: good × bad."""
        ours, theirs = self.calls[self.good][:, None], self.calls[~self.good][None, :]
        return (np.abs(ours - theirs) <= ALIKE * np.maximum(ours, theirs)).astype(float)

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """How often each session comes in each resample: tasks are drawn with replacement, with all their sessions."""
        count = int(self.tasks.max(initial=-1)) + 1
        drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=self.resamples)
        each = drawn[:, self.tasks].astype(float)
        return each[:, self.good], each[:, ~self.good]

    def auc(self, values: Sequence[float], *, matched: bool) -> Estimate:
        """AUC of one number a session, with an interval from resampled tasks."""
        numbers = np.array(values, dtype=float)
        ours, theirs = numbers[self.good][:, None], numbers[~self.good][None, :]
        with np.errstate(invalid="ignore"):
            won = np.where(np.isnan(ours) | np.isnan(theirs), 0.5, (ours > theirs) + 0.5 * (ours == theirs))
        counted = self.matched if matched else np.ones_like(won)
        pairs = counted.sum()
        if pairs == 0:
            return Estimate(value=float("nan"), low=float("nan"), high=float("nan"), pairs=0)
        mine, others = self.weights
        above = ((mine @ (won * counted)) * others).sum(axis=1)
        of = ((mine @ counted) * others).sum(axis=1)
        low, high = np.quantile(above[of > 0] / of[of > 0], [LOW, HIGH]) if (of > 0).any() else (np.nan, np.nan)
        return Estimate(value=float((won * counted).sum() / pairs), low=float(low), high=float(high), pairs=int(pairs))
