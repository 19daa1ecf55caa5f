"""How far each stratum's rewards are off, from sessions that a person graded too: means of (human − machine), each
shrunk towards that of the wider stratum it belongs to.

    arm × source × stratum  →  source × stratum  →  source  →  0

A stratum's own mean m̂ = Σw·(human − machine) / Σw has the weights w = 1/probability of its pairs (the ratio form of
Horvitz and Thompson's estimator), which makes up for sessions that were drawn with unlike chances; those pairs are
worth n = (Σw)²/Σw² equal ones (Kish). It moves from its parent's estimate p by its credibility (Bühlmann 1967; the
empirical-Bayes estimate of a normal mean under a normal prior, Efron and Morris 1975):

    offset = p + n/(n + K)·(m̂ − p)              variance = σ²/(n + K) + (K/(n + K))²·variance of p

K = σ²/τ² is how many pairs weigh as much as the parent: the scatter of (human − machine) within a stratum, some .2 to
.25 of a reward, over that between the true offsets of strata, some .1 to .125. Fewer than two pairs say nothing of
their own: such a stratum takes its parent's offset, K pairs' worth of doubt wider. σ² is pooled within the leaves, from
SPREAD with the weight of SPREAD_PAIRS, so that three like pairs are no proof; the interval is Student's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from bandit.core.rectify import TRUTH, Stratum
from bandit.core.table import Floats

K = 4.0
SPREAD = 0.25
SPREAD_PAIRS = 4
LEAST_PAIRS = 2
LEVEL = 0.90


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One reward that a machine and a person gave, both in [0, 1]; drawn for the person with `probability` in (0, 1].

    Raises ValueError for other numbers, and for a machine that is a person.
    """

    arm: str
    source: str
    stratum: str
    machine: float
    human: float
    probability: float

    def __post_init__(self) -> None:
        if not (0 <= self.machine <= 1 and 0 <= self.human <= 1 and 0 < self.probability <= 1):
            raise ValueError(f"a pair is two rewards in [0, 1] and a probability in (0, 1]; got {self}")
        if self.source == TRUTH:
            raise ValueError(f"a pair compares a machine with a person; got two persons: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """What is to be added to each reward of a stratum, in [−1, 1], with its 90 % interval, from how many `pairs`."""

    arm: str
    source: str
    stratum: str
    offset: float
    pairs: int
    low: float
    high: float

    @property
    def key(self) -> Stratum:
        return self.arm, self.source, self.stratum

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Estimate:
    mean: float
    variance: float


def fit(pairs: Iterable[Pair], strata: Iterable[Stratum]) -> tuple[Offset, ...]:
    """The offset of each of `strata` and of every stratum that has pairs, sorted; none at all without pairs.

    A stratum without pairs of its own takes that of its source and stratum, or of its source; one of a source without
    any is left out, as are human grades.
    """
    held = sorted(pairs, key=lambda pair: (pair.arm, pair.source, pair.stratum, pair.machine, pair.human))
    sources = {pair.source for pair in held}
    wanted = {key for key in strata if key[1] in sources} | {(p.arm, p.source, p.stratum) for p in held}
    spread, freedom = _spread(held)
    reach = float(student.ppf((1 + LEVEL) / 2, freedom))
    return tuple(_offset(key, held, spread, reach) for key in sorted(wanted))


def _offset(key: Stratum, pairs: Sequence[Pair], spread: float, reach: float) -> Offset:
    arm, source, stratum = key
    of_source = [pair for pair in pairs if pair.source == source]
    of_stratum = [pair for pair in of_source if pair.stratum == stratum]
    own = [pair for pair in of_stratum if pair.arm == arm]
    estimate = _Estimate(mean=0.0, variance=0.0)
    for level in (of_source, of_stratum, own):
        estimate = _shrunk(level, estimate, spread)
    half = reach * estimate.variance**0.5
    low, high = (float(np.clip(end, -1, 1)) for end in (estimate.mean - half, estimate.mean + half))
    return Offset(arm=arm, source=source, stratum=stratum, offset=estimate.mean, pairs=len(own), low=low, high=high)


def _shrunk(pairs: Sequence[Pair], parent: _Estimate, spread: float) -> _Estimate:
    """One level's estimate: its own mean, as far as its pairs carry it away from its parent's."""
    if len(pairs) < LEAST_PAIRS:
        return _Estimate(mean=parent.mean, variance=spread / K + parent.variance)
    weights = np.array([1 / pair.probability for pair in pairs])
    own = float((weights * _differences(pairs)).sum() / weights.sum())
    n = float(weights.sum() ** 2 / (weights**2).sum())
    left = K / (n + K)
    return _Estimate(
        mean=parent.mean + (1 - left) * (own - parent.mean), variance=spread / (n + K) + left**2 * parent.variance
    )


def _spread(pairs: Sequence[Pair]) -> tuple[float, int]:
    """σ² of (human − machine) within the leaves, and its degrees of freedom."""
    leaves: dict[Stratum, list[Pair]] = {}
    for pair in pairs:
        leaves.setdefault((pair.arm, pair.source, pair.stratum), []).append(pair)
    squares = sum(float(((d - d.mean()) ** 2).sum()) for d in map(_differences, leaves.values()))
    freedom = len(pairs) - len(leaves) + SPREAD_PAIRS
    return (squares + SPREAD_PAIRS * SPREAD**2) / freedom, freedom


def _differences(pairs: Sequence[Pair]) -> Floats:
    return np.array([pair.human - pair.machine for pair in pairs])
