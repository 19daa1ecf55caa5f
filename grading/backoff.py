"""How long to wait before the next attempt. Pure: the source of randomness is an argument."""

import datetime as dt
from random import Random, SystemRandom

MAX_WAIT = dt.timedelta(hours=1)
# The source of randomness of a running site.
DICE = SystemRandom()


def backoff(failures: int, base: dt.timedelta, rng: Random) -> dt.timedelta:
    """A random wait with full jitter: uniform in [0, min(MAX_WAIT, base · 2^(failures − 1))], for `failures` ≥ 1."""
    ceiling = min(MAX_WAIT, base * float(2 ** min(max(failures - 1, 0), 30)))
    return ceiling * rng.random()
