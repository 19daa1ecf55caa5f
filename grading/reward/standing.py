"""The standing of a reward, as in the ledger's keys, and how much a reward of each standing counts. Pure.

A reward is stale if its verdict has not read all evidence; claimed if only the graded agent vouches for its evidence;
contested if what the session left behind is worth far more than the judge says (`contested/37`: by .37); of few samples
if rules graded a log of a harness of which too few logs were read; otherwise it is plain.
"""

import math

PLAIN, STALE, CLAIMED, FEW_SAMPLES = "plain", "stale", "claimed", "few_samples"
CONTESTED = "contested/"
# Artifacts contest a verdict that they exceed by more than the first; from the second on, the reward counts nothing.
CONTESTED_ABOVE, WORTHLESS_FROM = 0.3, 0.5
# A stale or claimed reward counts this much relative to a fresh verdict's: as much as a trajectory.
FALLBACK_WEIGHT = 0.3
# A reward by a log of whose harness too few real logs were read counts half.
FEW_SAMPLES_WEIGHT = 0.5


def contested(gap: float) -> str:
    """The standing of a reward that is contested by `gap` in (.3, 1]: in hundredths, rounded up, at most 50.

    >>> contested(0.301), contested(0.37), contested(0.95)
    ('contested/31', 'contested/37', 'contested/50')
    """
    hundredths = math.ceil(round(100 * gap, 4))
    return f"{CONTESTED}{min(hundredths, round(100 * WORTHLESS_FROM))}"


def standing_weight(standing: str) -> float:
    """How much a reward of this standing counts relative to a plain one of the same source, in [0, 1].

    For a contested reward it falls linearly from 1 at a gap of .3 to 0 at .5. ValueError for an unknown standing.

    >>> [standing_weight(each) for each in ("plain", "stale", "contested/31", "contested/40", "contested/50")]
    [1.0, 0.3, 0.95, 0.5, 0.0]
    """
    if standing in {"", PLAIN}:
        return 1.0
    if standing in {STALE, CLAIMED}:
        return FALLBACK_WEIGHT
    if standing == FEW_SAMPLES:
        return FEW_SAMPLES_WEIGHT
    hundredths = standing.removeprefix(CONTESTED)
    least, most = round(100 * CONTESTED_ABOVE), round(100 * WORTHLESS_FROM)
    if standing.startswith(CONTESTED) and hundredths.isdecimal() and least < int(hundredths) <= most:
        return round((most - int(hundredths)) / (most - least), 6)
    raise ValueError(
        f"expected plain, stale, claimed, few_samples or contested/{least + 1} to contested/{most}; got {standing!r}"
    )
