"""How well a number ranks good sessions above bad ones: AUC, and AUC among sessions of the same length."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

# Sessions are of the same length if their numbers of calls are within this share of the larger.
LENGTH_TOLERANCE = 0.10
LOW_QUANTILE, HIGH_QUANTILE = 0.05, 0.95


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An AUC in [0, 1], its 90 % interval, and its number of pairs. All are NaN without a pair."""

    value: float
    low: float
    high: float
    pairs: int


class HalfSet:
    """The sessions of one half of a set.

    A pair is a good and a bad session. It counts 1 if the good one is above, ½ if both are level or one of them has no
    score. Matched pairs are of the same length.
    """

    def __init__(self, good: Sequence[bool], calls: Sequence[int], tasks: Sequence[str], *, resamples: int) -> None:
        self.good = np.array(good, dtype=bool)
        self.calls = np.array(calls, dtype=float)
        self.tasks = np.unique(np.array(tasks), return_inverse=True)[1]
        self.resamples = resamples

    @cached_property
    def matched(self) -> np.ndarray:
        """Whether a good and a bad session are of the same length: good × bad."""
        good, bad = self.calls[self.good][:, None], self.calls[~self.good][None, :]
        return (np.abs(good - bad) <= LENGTH_TOLERANCE * np.maximum(good, bad)).astype(float)

    @cached_property
    def resample_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """How often each good and each bad session is in each resample. Tasks are drawn, with all their sessions."""
        count = int(self.tasks.max(initial=-1)) + 1
        drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=self.resamples)
        by_session = drawn[:, self.tasks].astype(float)
        return by_session[:, self.good], by_session[:, ~self.good]

    def auc(self, values: Sequence[float], *, matched: bool) -> Estimate:
        """The AUC of one number for each session, NaN if it has no score."""
        numbers = np.array(values, dtype=float)
        good, bad = numbers[self.good][:, None], numbers[~self.good][None, :]
        with np.errstate(invalid="ignore"):
            won = np.where(np.isnan(good) | np.isnan(bad), 0.5, (good > bad) + 0.5 * (good == bad))
        counted = self.matched if matched else np.ones_like(won)
        pairs = counted.sum()
        if pairs == 0:
            return Estimate(value=np.nan, low=np.nan, high=np.nan, pairs=0)
        good_counts, bad_counts = self.resample_counts
        won_pairs = ((good_counts @ (won * counted)) * bad_counts).sum(axis=1)
        all_pairs = ((good_counts @ counted) * bad_counts).sum(axis=1)
        low = high = np.nan
        if (all_pairs > 0).any():
            values_of_resamples = won_pairs[all_pairs > 0] / all_pairs[all_pairs > 0]
            low, high = np.quantile(values_of_resamples, [LOW_QUANTILE, HIGH_QUANTILE])
        return Estimate(value=float((won * counted).sum() / pairs), low=float(low), high=float(high), pairs=int(pairs))
