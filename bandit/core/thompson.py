"""From P(best) to the chosen arm: the feedback factor of consumption arms, and Thompson sampling.

The random number is a hash, so that repeating a decision gives the same arm.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

# From the original specification: boost from this average up; penalise below that one, given enough samples.
MIN_BOOSTED_AVERAGE = 0.5
MAX_PENALISED_AVERAGE = 0.3


def uniform(bandit: str, decision_id: str) -> float:
    """A pseudo-random number in [0, 1): the first 53 bits of the SHA-256 of the two names.

    >>> uniform("category", "d-1") == uniform("category", "d-1")
    True
    """
    digest = hashlib.sha256(f"{bandit}\0{decision_id}".encode()).digest()
    return (int.from_bytes(digest[:8]) >> 11) / 2**53


def draw(chances: Mapping[str, float], u: float) -> str:
    """The arm on which `u` in [0, 1) falls when `chances` (sum 1) are laid end to end in the order of their names.

    Drawing from P(best) is Thompson sampling: a sample of every posterior, and the arm with the highest.

    >>> draw({"b": 0.5, "a": 0.5}, 0.4), draw({"b": 0.5, "a": 0.5}, 0.6)
    ('a', 'b')
    """
    if not chances:
        raise ValueError("nothing to draw from; expected at least one arm")
    names = sorted(name for name, chance in chances.items() if chance > 0)
    cumulative = 0.0
    for name in names:
        cumulative += chances[name]
        if u < cumulative:
            return name
    return names[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A `factor` on an arm's P(best), and the sentence that explains it."""

    factor: float
    sentence: str


def feedback(n: int, average: float, *, boost: float, penalty: float, window: int, min_samples: int) -> Feedback | None:
    """The factor on a consumption arm's chance, given its `n` rewards of this `average` in [0, 1] in `window` days.

    It is `boost` ≥ 1 or `penalty` in (0, 1]. None for no change: without rewards, with an average in between, or with
    fewer than `min_samples` rewards for a penalty.
    """
    if n and average >= MIN_BOOSTED_AVERAGE:
        factor, verdict = boost, f"at least {MIN_BOOSTED_AVERAGE:g}: boosted"
    elif n >= min_samples and average < MAX_PENALISED_AVERAGE:
        factor, verdict = penalty, f"below {MAX_PENALISED_AVERAGE:g}: penalised"
    else:
        return None
    plural = "reward" if n == 1 else "rewards"
    sentence = f"{window}-day average {average:.2f} over {n} {plural}, {verdict}, probability × {factor:g}"
    return Feedback(factor=factor, sentence=sentence)
