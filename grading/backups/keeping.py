"""Which backups to keep."""

import datetime as dt
from collections.abc import Hashable, Iterable

DAYS, WEEKS = 7, 4
YOUNG = dt.timedelta(days=1)


def to_keep(moments: Iterable[dt.datetime], now: dt.datetime) -> set[dt.datetime]:
    """The moments of the backups to keep: the last of each of the 7 latest days and 4 latest weeks that have one, and
    all of the last day.
    """
    last_of_day: dict[Hashable, dt.datetime] = {}
    last_of_week: dict[Hashable, dt.datetime] = {}
    ordered = sorted(moments)
    for each in ordered:
        last_of_day[each.date()] = last_of_week[each.isocalendar()[:2]] = each
    young = {each for each in ordered if now - each < YOUNG}
    return {*list(last_of_day.values())[-DAYS:], *list(last_of_week.values())[-WEEKS:], *young}
