"""How long to wait before the next attempt. Pure; randomness is handed in."""

import datetime as dt
from random import Random

LONGEST_WAIT = dt.timedelta(hours=1)


def backoff(failures: int, base: dt.timedelta, rng: Random) -> dt.timedelta:
    """Full jitter: uniform in [0, min(an hour, base · 2^(failures − 1))], for `failures` ≥ 1."""
    ceiling = min(LONGEST_WAIT, base * float(2 ** min(max(failures - 1, 0), 30)))
    return ceiling * rng.random()
