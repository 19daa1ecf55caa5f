"""What got worse beyond chance."""

import datetime as dt

from grading.insight.core.results import WorseAdvisory


def find_worse(now: dt.datetime) -> tuple[WorseAdvisory, ...]:
    """What got worse since a mark, beyond chance. At most .1 false ones are expected in 30 days, whatever is looked at
    and however often.
    """
    raise NotImplementedError
