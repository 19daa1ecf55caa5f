"""In which zone a person reads times. Days that are counted stay the site's: see `grading.days`.

Django's own zone is left alone: by it days begin and end in ledger, budgets and charts, whoever asks.
"""

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.utils import timezone

Reader = Callable[[], str]
# Asked once, when the first time is written: what the reader has chosen, empty for the site's zone.
_reader: ContextVar[Reader | None] = ContextVar("reader", default=None)


@contextmanager
def reading(reader: Reader) -> Iterator[None]:
    """Times are written in the zone whose name `reader` returns, for as long as the block lasts."""
    token = _reader.set(cache(reader))
    try:
        yield
    finally:
        _reader.reset(token)


def current() -> dt.tzinfo:
    """The zone of whoever reads the page; the site's where they chose none, or where nobody reads."""
    reader = _reader.get()
    return named("" if reader is None else reader())


@cache
def names() -> frozenset[str]:
    return frozenset(available_timezones())


def named(name: str) -> dt.tzinfo:
    """The zone of that name, or the site's where there is none."""
    return ZoneInfo(name) if name in names() else timezone.get_default_timezone()


def local(moment: dt.datetime) -> dt.datetime:
    """The moment on the reader's clock."""
    return timezone.localtime(moment, current())


def today() -> dt.date:
    """The reader's day: to say whether a time is of today, never to count by."""
    return local(timezone.now()).date()


def midnight(day: dt.date) -> dt.datetime:
    """When a day begins for the reader."""
    return timezone.make_aware(dt.datetime.combine(day, dt.time()), current())


def abbreviation(moment: dt.datetime) -> str:
    """UTC, CEST, +0530: how the reader's zone is called at that moment."""
    return f"{local(moment):%Z}"
