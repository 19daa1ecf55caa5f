"""The time zone in which the current reader sees times.

Django's current zone stays the site's, because days in the ledger, budgets and charts are the site's days
(`grading.days`) for every reader.
"""

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.utils import timezone

Reader = Callable[[], str]
# Returns the reader's zone, or an empty string for the site's. Called once, when the first time is formatted.
_reader: ContextVar[Reader | None] = ContextVar("reader", default=None)


@contextmanager
def reading(reader: Reader) -> Iterator[None]:
    """Within the block, format times in the zone whose name `reader` returns."""
    token = _reader.set(cache(reader))
    try:
        yield
    finally:
        _reader.reset(token)


def current() -> dt.tzinfo:
    """The reader's zone, or the site's if they chose none or there is no reader."""
    reader = _reader.get()
    return named("" if reader is None else reader())


@cache
def names() -> frozenset[str]:
    return frozenset(available_timezones())


def named(name: str) -> dt.tzinfo:
    """The zone with that name, or the site's if there is none."""
    return ZoneInfo(name) if name in names() else timezone.get_default_timezone()


def local(moment: dt.datetime) -> dt.datetime:
    """`moment` in the reader's zone."""
    return timezone.localtime(moment, current())


def today() -> dt.date:
    """The reader's current day, for display only: counts use the site's days."""
    return local(timezone.now()).date()


def midnight(day: dt.date) -> dt.datetime:
    """The start of `day` in the reader's zone."""
    return timezone.make_aware(dt.datetime.combine(day, dt.time()), current())


def abbreviation(moment: dt.datetime) -> str:
    """The abbreviation of the reader's zone at that moment, such as UTC, CEST or +0530."""
    return f"{local(moment):%Z}"
