"""Which backups to keep."""

import datetime as dt
from collections.abc import Hashable, Iterable

DAYS, WEEKS = 7, 4
YOUNG = dt.timedelta(days=1)


def to_keep(moments: Iterable[dt.datetime], now: dt.datetime) -> set[dt.datetime]:
    """The moments of the backups to keep.

    These are all of the last 24 hours, the last of each of the 7 latest days with a backup, and the last of each of the
    4 latest weeks with a backup.
    """
    last_of_day: dict[Hashable, dt.datetime] = {}
    last_of_week: dict[Hashable, dt.datetime] = {}
    ordered = sorted(moments)
    for moment in ordered:
        last_of_day[moment.date()] = moment
        last_of_week[moment.isocalendar()[:2]] = moment
    young = {moment for moment in ordered if now - moment < YOUNG}
    return {*list(last_of_day.values())[-DAYS:], *list(last_of_week.values())[-WEEKS:], *young}
