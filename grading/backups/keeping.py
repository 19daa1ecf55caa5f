"""Which backups to keep."""

import datetime as dt
from collections.abc import Hashable, Iterable

DAYS, WEEKS = 7, 4
YOUNG = dt.timedelta(days=1)


def to_keep(moments: Iterable[dt.datetime], now: dt.datetime) -> set[dt.datetime]:
    """The moments of the backups to keep: the last of each of the 7 latest days and 4 latest weeks that have one, and
    all of the last day.
    """
    days: dict[Hashable, dt.datetime] = {}
    weeks: dict[Hashable, dt.datetime] = {}
    ordered = sorted(moments)
    for each in ordered:
        days[each.date()] = weeks[each.isocalendar()[:2]] = each
    young = {each for each in ordered if now - each < YOUNG}
    return {*list(days.values())[-DAYS:], *list(weeks.values())[-WEEKS:], *young}
