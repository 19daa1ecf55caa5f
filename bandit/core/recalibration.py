"""How far each stratum's rewards are off, from sessions that a person graded too: the mean of (human − machine), shrunk
towards that of the wider stratum it belongs to, arm × source × stratum → source × stratum → source → 0.

A stratum's own mean m̂ = Σw·(human − machine) / Σw has the weights w = 1/probability of its pairs (the ratio form of
Horvitz and Thompson's estimator), which makes up for sessions that were drawn with unlike chances; those pairs are
worth n = (Σw)²/Σw² equal ones (Kish). What is behind it is a sum of three normal effects, each of variance τ², and a
scatter σ² of single pairs:

    offset = u[source] + u[source, stratum] + u[arm, source, stratum]        m̂ = offset + noise of variance σ²/n

The offsets are the best linear prediction of that from all the means (Henderson 1975; the empirical-Bayes estimate of
Efron and Morris 1975). With one level it is n/(n + K)·m̂ (Bühlmann's credibility, 1967), where K = σ²/τ² is how many
pairs weigh as much as the parent. K = 2: pairs scatter by σ = .25 within a stratum, and the founding faults put offsets
of .2 to .7 on theirs, some .3 in all, τ = .18 a level. σ² is pooled within strata, starting from SPREAD with the
weight of SPREAD_PAIRS pairs, so that three like pairs are no proof; the interval is Student's. Fewer than two pairs say
nothing of their own: such a stratum takes its parent's offset, one level's doubt wider.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from operator import eq
from typing import Any

import numpy as np

from bandit.core.rectify import TRUTH, Stratum
from bandit.core.table import Floats

K = 2.0
SPREAD = 0.25
SPREAD_PAIRS = 4
LEAST_PAIRS = 2
LEVEL = 0.90
# Positions in (arm, source, stratum).
LEVELS = ((1,), (1, 2), (0, 1, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineHumanPair:
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
class _Leaf:
    """A stratum's pairs: how many, what they are worth in equal ones, their weighted mean, their sum of squares."""

    key: Stratum
    pairs: int
    n: float
    mean: float
    squares: float


def fit(pairs: Iterable[MachineHumanPair], strata: Iterable[Stratum]) -> tuple[Offset, ...]:
    """The offset of each of `strata` and of every stratum that has pairs, sorted; none at all without pairs.

    A stratum without pairs of its own takes that of its source and stratum, or of its source; one of a source without
    any is left out, as are human grades.
    """
    from scipy.special import stdtrit

    leaves = _leaves(pairs)
    sources = {leaf.key[1] for leaf in leaves}
    wanted = sorted({key for key in strata if key[1] in sources} | {leaf.key for leaf in leaves})
    if not leaves:
        return ()
    # σ² of (human − machine) within strata, and its degrees of freedom.
    freedom = sum(leaf.pairs - 1 for leaf in leaves) + SPREAD_PAIRS
    spread = (sum(leaf.squares for leaf in leaves) + SPREAD_PAIRS * SPREAD**2) / freedom
    means, variances = _predicted(leaves, wanted, spread)
    half = stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(variances)
    counts = {leaf.key: leaf.pairs for leaf in leaves}
    columns = zip(wanted, *(np.clip(each, -1, 1).tolist() for each in (means, means - half, means + half)), strict=True)
    return tuple(
        Offset(arm=key[0], source=key[1], stratum=key[2], offset=mean, pairs=counts.get(key, 0), low=low, high=high)
        for key, mean, low, high in columns
    )


def _leaves(pairs: Iterable[MachineHumanPair]) -> list[_Leaf]:
    found: dict[Stratum, list[tuple[float, float]]] = {}
    for pair in pairs:
        key = (pair.arm, pair.source, pair.stratum)
        found.setdefault(key, []).append((pair.human - pair.machine, 1 / pair.probability))
    leaves = []
    for key in sorted(found):
        differences, weights = np.array(sorted(found[key])).T
        leaves.append(
            _Leaf(
                key=key,
                pairs=len(differences),
                n=float(weights.sum() ** 2 / (weights**2).sum()),
                mean=float((weights * differences).sum() / weights.sum()),
                squares=float(((differences - differences.mean()) ** 2).sum()),
            )
        )
    return leaves


def _predicted(leaves: Sequence[_Leaf], wanted: Sequence[Stratum], spread: float) -> tuple[Floats, Floats]:
    """The offsets of `wanted` given the leaves' means, and their variances."""
    effect = spread / K
    asked = [_levels(key) for key in wanted]
    # An effect that fewer than LEAST_PAIRS pairs speak of is nobody else's.
    pairs: Counter[object] = Counter()
    for leaf in leaves:
        pairs.update(dict.fromkeys(_levels(leaf.key), leaf.pairs))
    said = [
        [label if pairs[label] >= LEAST_PAIRS else ("alone", label) for label in _levels(leaf.key)] for leaf in leaves
    ]
    noise = np.diag([spread / leaf.n for leaf in leaves])
    gain = np.linalg.solve(effect * _shared(said, said) + noise, effect * _shared(said, asked)).T
    means = gain @ np.array([leaf.mean for leaf in leaves])
    return means, effect * (len(LEVELS) - (gain * _shared(asked, said)).sum(axis=1))


def _levels(key: Stratum) -> list[object]:
    return [tuple(key[at] for at in level) for level in LEVELS]


def _shared(some: Sequence[Sequence[object]], others: Sequence[Sequence[object]]) -> Floats:
    """How many effects each of `some` has in common with each of `others`."""
    return np.array([[float(sum(map(eq, one, other))) for other in others] for one in some])
