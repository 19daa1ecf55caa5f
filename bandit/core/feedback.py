"""Feedback: recent rewards of reading change how often a consumption arm is chosen."""

from dataclasses import dataclass

# From the original specification: boost from this average up; penalise below that one, given enough samples.
MIN_BOOSTED_AVERAGE = 0.5
MAX_PENALISED_AVERAGE = 0.3


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
    """The factor on a consumption arm's chance, given `n` rewards with this average in [0, 1]; None for no change."""
    if n and average >= MIN_BOOSTED_AVERAGE:
        factor, verdict = sizes.boost, f"at least {MIN_BOOSTED_AVERAGE:g}: boosted"
    elif n >= sizes.least and average < MAX_PENALISED_AVERAGE:
        factor, verdict = sizes.penalty, f"below {MAX_PENALISED_AVERAGE:g}: penalised"
    else:
        return None
    plural = "reward" if n == 1 else "rewards"
    sentence = f"{sizes.window}-day average {average:.2f} over {n} {plural}, {verdict}, chance × {factor:g}"
    return Feedback(factor=factor, sentence=sentence)
