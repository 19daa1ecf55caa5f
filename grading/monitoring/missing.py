"""Whether a field is missing more often than can be put up with."""

from scipy.stats import binom

USUAL = 0.05
LEVEL = 0.001


def is_missing_too_often(missing: int, n: int) -> bool:
    """Whether a field that is missing in `missing` of `n` sessions is so in more than USUAL of them, beyond chance.

    So it is where it is missing in the first three of all, in six of twenty, in fourteen of a hundred.
    """
    return n > 0 and float(binom.sf(missing - 1, n, USUAL)) < LEVEL
