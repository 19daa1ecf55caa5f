"""Whether a field is missing more often than can be put up with."""

USUAL = 0.05
LEVEL = 0.001


def is_missing_too_often(missing: int, n: int) -> bool:
    """Whether a field that is missing in `missing` of `n` sessions is so in more than USUAL of them, beyond chance.

    So it is where it is missing in the first three of all, in six of twenty, in fourteen of a hundred.
    """
    if missing <= USUAL * n:
        return False
    from scipy.special import betainc

    # The chance of so many or more of n is I(missing, n - missing + 1) at USUAL (DLMF 8.17.5).
    return float(betainc(missing, n - missing + 1, USUAL)) < LEVEL
