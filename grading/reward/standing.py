"""How a reward stands, as the ledger's keys say it, and what each standing lets it count. Pure.

A reward is plain where nothing speaks against it; stale where its verdict has not read all there is; claimed where the
graded agent alone vouches for what it rests on; contested where what the session left behind is worth far more than the
judge says: `contested/37` is by .37.
"""

import math

PLAIN, STALE, CLAIMED = "plain", "stale", "claimed"
CONTESTED = "contested/"
# By more than this, artifacts contest a verdict; from that on a contested reward counts nothing.
CONTESTED_ABOVE, WORTHLESS_FROM = 0.3, 0.5
# What a stale verdict's reward, and one that rests on a claim, count beside a fresh verdict's: as much as a trajectory.
FALLBACK = 0.3


def contested(gap: float) -> str:
    """The standing of a reward that is contested by `gap` in (.3, 1]: in hundredths, rounded up, at most 50.

    >>> contested(0.301), contested(0.37), contested(0.95)
    ('contested/31', 'contested/37', 'contested/50')
    """
    hundredths = math.ceil(round(100 * gap, 4))
    return f"{CONTESTED}{min(hundredths, round(100 * WORTHLESS_FROM))}"


def standing_weight(standing: str) -> float:
    """What a reward of this standing counts beside a plain one of the same source, in [0, 1].

    A contested one falls linearly, from 1 at a gap of .3 to 0 at .5. Raises ValueError for a standing that is none.

    >>> [standing_weight(each) for each in ("plain", "stale", "contested/31", "contested/40", "contested/50")]
    [1.0, 0.3, 0.95, 0.5, 0.0]
    """
    if standing in {"", PLAIN}:
        return 1.0
    if standing in {STALE, CLAIMED}:
        return FALLBACK
    hundredths = standing.removeprefix(CONTESTED)
    least, most = round(100 * CONTESTED_ABOVE), round(100 * WORTHLESS_FROM)
    if standing.startswith(CONTESTED) and hundredths.isdecimal() and least < int(hundredths) <= most:
        return round((most - int(hundredths)) / (most - least), 6)
    raise ValueError(f"expected plain, stale, claimed or contested/{least + 1} to contested/{most}; got {standing!r}")
