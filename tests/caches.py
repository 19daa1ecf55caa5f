"""What a process keeps of a database and of other programs: to be dropped where those are replaced under it."""

import sys
from operator import attrgetter

# By module, the function that drops what it keeps.
DROPS = {
    "bandit.reading": "_read.cache_clear",
    "grading.judging.client": "close",
    "grading.judging.allowance.limiter": "forget",
}


def drop_all() -> None:
    """Leave this process as one that has just started, whose database may be another."""
    for module, function in DROPS.items():
        if module in sys.modules:
            attrgetter(function)(sys.modules[module])()
