"""What sessions that a person graded too tell of machine grades: each stratum's bias, and a cap on a biased source.

A stratum's bias is the mean of (human − machine), shrunk towards that of the wider stratum it belongs to:
arm × source × stratum → source × stratum → source → 0.

A stratum's own mean m̂ = Σw·(human − machine) / Σw has the weights w = 1/probability of its pairs (the ratio form of
Horvitz and Thompson's estimator), since sessions are drawn with unequal probabilities; these pairs are worth
n = (Σw)²/Σw² equally weighted ones (Kish). The model is a sum of three normal effects, each of variance τ², and a
scatter σ² of single pairs:

    offset = u[source] + u[source, stratum] + u[arm, source, stratum]        m̂ = offset + noise of variance σ²/n

The offsets are the best linear prediction from all the means (Henderson 1975; the empirical-Bayes estimate of Efron and
Morris 1975). With one level it is n/(n + K)·m̂ (Bühlmann's credibility, 1967), where K = σ²/τ² is the number of pairs
that have as much weight as the parent. K = 2: pairs scatter by σ = .25 within a stratum, and the biases known at the
start were .2 to .7, about .3 in all, τ = .18 a level. σ² is pooled within strata with the prior PRIOR_SCATTER², worth
PRIOR_PAIRS pairs, so that three equal pairs don't prove an exact bias; the interval is Student's. A stratum with fewer
than two pairs has its parent's offset, with the variance of one more level.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bandit.core.estimate import LEVEL
from bandit.core.offsets import TRUTH, Stratum
from bandit.core.table import Floats

# The number of pairs that have as much weight as the parent stratum.
K = 2.0
PRIOR_SCATTER = 0.25
PRIOR_PAIRS = 4
MIN_PAIRS = 2
# The levels of the hierarchy, as indexes into (arm, source, stratum).
LEVELS = ((1,), (1, 2), (0, 1, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineHumanPair:
    """A machine's and a person's reward of one session, both in [0, 1]. The session was drawn for the person with
    `probability` in (0, 1]. Raises ValueError for numbers out of range and for human grades as the machine's.
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
    """The number in [−1, 1] to add to each reward of a stratum, with its 90 % interval and its number of `pairs`."""

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
class _StratumMean:
    """A stratum's mean of (human − machine), weighted, from `pairs` pairs worth `n` equally weighted ones; `squares` is
    the unweighted sum of squared deviations.
    """

    key: Stratum
    pairs: int
    n: float
    mean: float
    squares: float


def fit(pairs: Iterable[MachineHumanPair], strata: Iterable[Stratum]) -> tuple[Offset, ...]:
    """The offset of each of `strata` and of every stratum that has pairs, sorted; empty without pairs.

    A stratum without pairs of its own has the offset of its source and stratum, or of its source. Strata of a source
    without pairs, and of human grades, are left out.
    """
    from scipy.special import stdtrit

    means = _stratum_means(pairs)
    if not means:
        return ()
    sources_with_pairs = {each.key[1] for each in means}
    wanted = sorted({key for key in strata if key[1] in sources_with_pairs} | {each.key for each in means})
    # σ² of (human − machine) within strata, and its degrees of freedom.
    freedom = sum(each.pairs - 1 for each in means) + PRIOR_PAIRS
    variance = (sum(each.squares for each in means) + PRIOR_PAIRS * PRIOR_SCATTER**2) / freedom
    offsets, variances = _predict(means, wanted, variance)
    half = stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(variances)
    counts = {each.key: each.pairs for each in means}
    intervals = np.clip((offsets, offsets - half, offsets + half), -1, 1).T.tolist()
    return tuple(
        Offset(arm=key[0], source=key[1], stratum=key[2], offset=offset, pairs=counts.get(key, 0), low=low, high=high)
        for key, (offset, low, high) in zip(wanted, intervals, strict=True)
    )


def _stratum_means(pairs: Iterable[MachineHumanPair]) -> list[_StratumMean]:
    """Each stratum's mean, sorted by stratum. Pairs in any order give the same bits."""
    by_stratum: dict[Stratum, list[tuple[float, float]]] = {}  # (human − machine, weight) of each pair
    for pair in pairs:
        key = (pair.arm, pair.source, pair.stratum)
        by_stratum.setdefault(key, []).append((pair.human - pair.machine, 1 / pair.probability))
    means = []
    for key, weighted in sorted(by_stratum.items()):
        differences, weights = np.array(sorted(weighted)).T
        means.append(
            _StratumMean(
                key=key,
                pairs=len(differences),
                n=float(weights.sum() ** 2 / (weights**2).sum()),
                mean=float((weights * differences).sum() / weights.sum()),
                squares=float(((differences - differences.mean()) ** 2).sum()),
            )
        )
    return means


def _predict(means: Sequence[_StratumMean], wanted: Sequence[Stratum], variance: float) -> tuple[Floats, Floats]:
    """The offsets of the `wanted` strata given the observed `means`, and the offsets' variances; `variance` is σ².

    The covariance of two strata's offsets is τ² times the number of effects that they share. The best linear prediction
    multiplies the means by gain = cov(wanted, observed)·(cov(observed, observed) + noise)⁻¹.
    """
    effect_variance = variance / K  # τ²
    pairs_of_effect: Counter[object] = Counter()
    for each in means:
        for effect in _effects(each.key):
            pairs_of_effect[effect] += each.pairs

    def relabel_rare(effect: object) -> object:
        """An effect with fewer than MIN_PAIRS pairs gets another label, so that no wanted stratum shares it. The pairs
        still count for the levels above.
        """
        return effect if pairs_of_effect[effect] >= MIN_PAIRS else ("alone", effect)

    observed = [[relabel_rare(effect) for effect in _effects(each.key)] for each in means]
    predicted = [_effects(key) for key in wanted]
    noise = np.diag([variance / each.n for each in means])
    covariance = effect_variance * _shared_effects(observed, observed) + noise
    gain = np.linalg.solve(covariance, effect_variance * _shared_effects(observed, predicted)).T
    offsets = gain @ np.array([each.mean for each in means])
    variances = effect_variance * (len(LEVELS) - (gain * _shared_effects(predicted, observed)).sum(axis=1))
    return offsets, variances


def _effects(key: Stratum) -> list[object]:
    """Labels of the effects that add up to a stratum's offset: (source,), (source, stratum), (arm, source, stratum)."""
    return [tuple(key[at] for at in level) for level in LEVELS]


def _shared_effects(some: Sequence[Sequence[object]], others: Sequence[Sequence[object]]) -> Floats:
    """How many effects each stratum of `some` shares with each of `others`, shape (some, others).

    A stratum is the labels of its effects, in the order of LEVELS.
    """

    def shared(one: Sequence[object], other: Sequence[object]) -> float:
        return float(sum(label == other_label for label, other_label in zip(one, other, strict=True)))

    return np.array([[shared(one, other) for other in others] for one in some])


@dataclass(frozen=True, slots=True, kw_only=True)
class CapAdvice:
    """A `cap` in pseudo-observations on a source, computed by `advise_cap` from `pairs` sessions.

    `bias` is b, `bias_variance` its variance σ_f²/n_f, and `mean` μ, the mean of people's grades.
    """

    source: str
    cap: float
    pairs: int
    bias: float
    bias_variance: float
    mean: float


def advise_cap(pairs: Iterable[MachineHumanPair], source: str) -> CapAdvice | None:
    """A cap on the evidence of one biased source, from sessions that a person graded too.

    However many rewards a source gives, their mean has a mean squared error of at least b² + σ_f²/n_f: b is the mean of
    (machine − human) over n_f pairs, and σ_f² the variance of single differences. A pseudo-observation is one toss of a
    coin, of variance σ² = μ(1 − μ), μ the mean of people's grades. So all rewards of the source together are worth at
    most this many pseudo-observations:

        cap = σ² / (b² + σ_f²/n_f)

    Pairs are weighted by 1/probability of being drawn; n_f is the number of equally weighted pairs with the same
    precision (Kish). None if there are fewer than two pairs, they show no error, or μ is 0 or 1.
    """
    own = [pair for pair in pairs if pair.source == source]
    if len(own) < MIN_PAIRS:
        return None
    weights = np.array([1 / pair.probability for pair in own])
    weights /= weights.sum()
    human = np.array([pair.human for pair in own])
    off = np.array([pair.machine - pair.human for pair in own])
    mean, bias = float(weights @ human), float(weights @ off)
    # The weighted sample variance divided by n_f = 1/Σw²; unbiased if the weights are equal.
    inverse_n = float((weights**2).sum())
    bias_variance = float(weights @ (off - bias) ** 2) * inverse_n / (1 - inverse_n)
    error = bias**2 + bias_variance
    if not error or not 0 < mean < 1:
        return None
    cap = mean * (1 - mean) / error
    return CapAdvice(source=source, cap=cap, pairs=len(own), bias=bias, bias_variance=bias_variance, mean=mean)
