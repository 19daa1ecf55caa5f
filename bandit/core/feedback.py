"""Feedback: what reading has led to lately moves how often it is chosen."""

from dataclasses import dataclass

# The seed's own numbers: an average from .5 up is encouraged, below .3 with enough samples discouraged.
GOOD = 0.5
POOR = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """`boost` ≥ 1 and `penalty` in (0, 1] multiply P(best); `window` in days; `least` samples before a penalty."""

    boost: float
    penalty: float
    window: int
    least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    factor: float
    sentence: str


def feedback(n: int, average: float, sizes: Sizes) -> Feedback | None:
    """What `n` rewards with this average in [0, 1] over the window do to a consumption arm; None for nothing."""
    if n and average >= GOOD:
        factor, verdict = sizes.boost, f"at least {GOOD:g}: boosted"
    elif n >= sizes.least and average < POOR:
        factor, verdict = sizes.penalty, f"below {POOR:g}: penalised"
    else:
        return None
    plural = "reward" if n == 1 else "rewards"
    sentence = f"{sizes.window}-day average {average:.2f} over {n} {plural}, {verdict}, chance × {factor:g}"
    return Feedback(factor=factor, sentence=sentence)
