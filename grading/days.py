"""The site's days: from midnight to midnight in SITE_TIME_ZONE."""

import datetime as dt

from django.utils import timezone


def start_of_day(now: dt.datetime) -> dt.datetime:
    """The last midnight before `now`."""
    return midnight(timezone.localdate(now))


def tomorrow(now: dt.datetime) -> dt.datetime:
    """The next midnight."""
    return midnight(timezone.localdate(now) + dt.timedelta(days=1))


def midnight(day: dt.date) -> dt.datetime:
    """The start of `day`."""
    return timezone.make_aware(dt.datetime.combine(day, dt.time()))
