"""Pages of a list in the order of time, from a place on: the last page costs no more than the first.

A place is the moment and the key of a session. Whatever comes in meanwhile, no session is shown twice or left out.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q
from django.db.models.expressions import OrderBy

from grading.models import Session
from grading.models.sessions import SessionQuerySet

PAGE_SIZE = 50
# Where there are more, nobody counts them.
COUNTED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsPage:
    """One page, the latest first. `newer` and `older` are the query strings of its neighbours, empty where there is
    none; `count` is how many sessions there are on all pages, COUNTED + 1 for more than that.
    """

    object_list: Sequence[Session]
    newer: str
    older: str
    count: int

    @property
    def is_counted(self) -> bool:
        return self.count <= COUNTED

    @property
    def words(self) -> str:
        """How many there are."""
        return f"{self.count:,}" if self.is_counted else f"more than {COUNTED:,}"


def page(sessions: SessionQuerySet, asked: Mapping[str, str]) -> SessionsPage:
    """The page that `before` or `after` names, or `page=last`; else the first. Three queries."""
    place = _place(asked.get("before") or asked.get("after") or "")
    backwards = asked.get("page") == "last" or (bool(asked.get("after")) and place is not None)
    rows, order = sessions, ("ended_at", "pk") if backwards else ("-ended_at", "-pk")
    if place is not None:
        rows = rows.filter(_further(place, "gt" if backwards else "lt"))
    # Which they are first, and then all that is shown of them: what is sorted is small.
    keys = list(rows.order_by(*order).values_list("pk", flat=True)[: PAGE_SIZE + 1])
    shown = {session.pk: session for session in sessions.filter(pk__in=keys[:PAGE_SIZE])}
    more, held = len(keys) > PAGE_SIZE, [shown[key] for key in keys[:PAGE_SIZE] if key in shown]
    if backwards:
        held.reverse()
    if place is not None and not held:  # a place beyond the end
        return page(sessions, {})
    is_newer, is_older = (more, place is not None) if backwards else (place is not None, more)
    return SessionsPage(
        object_list=held,
        newer=f"after={named(held[0])}" if is_newer else "",
        older=f"before={named(held[-1])}" if is_older else "",
        count=sessions.order_by()[: COUNTED + 1].count(),
    )


def sorted_page(sessions: SessionQuerySet, asked: Mapping[str, str], *, by: Sequence[OrderBy]) -> SessionsPage:
    """The page that `page` numbers, from 1, in an order that isn't that of time; of the first COUNTED sessions only,
    for each page is sorted anew. Three queries.
    """
    number = asked.get("page", "")
    last = COUNTED // PAGE_SIZE
    at = min(int(number), last) if number.isdecimal() and 0 < len(number) < 4 and int(number) else 1  # noqa: PLR2004
    start = (at - 1) * PAGE_SIZE
    keys = list(sessions.order_by(*by).values_list("pk", flat=True)[start : start + PAGE_SIZE + 1])
    if not keys and at > 1:  # a page beyond the end
        return sorted_page(sessions, {}, by=by)
    shown = {session.pk: session for session in sessions.filter(pk__in=keys[:PAGE_SIZE])}
    return SessionsPage(
        object_list=[shown[key] for key in keys[:PAGE_SIZE] if key in shown],
        newer=f"page={at - 1}" if at > 1 else "",
        older=f"page={at + 1}" if len(keys) > PAGE_SIZE and at < last else "",
        count=sessions.order_by()[: COUNTED + 1].count(),
    )


def older(sessions: SessionQuerySet, asked: Mapping[str, str]) -> SessionQuerySet:
    """Those of the sessions that come after the place `before`; all, where that names none."""
    place = _place(asked.get("before", ""))
    return sessions if place is None else sessions.filter(_further(place, "lt"))


def _further(place: tuple[dt.datetime, int], than: str) -> Q:
    further = Q(**{f"ended_at__{than}": place[0]}) | Q(**{"ended_at": place[0], f"pk__{than}": place[1]})
    # Said once more in the way that an index understands.
    return further & Q(**{f"ended_at__{than}e": place[0]})


def named(session: Session) -> str:
    """The place of this session, as `before` and `after` have it."""
    return f"{session.ended_at.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}_{session.pk}"


def _place(text: str) -> tuple[dt.datetime, int] | None:
    """Parse a place; None if it isn't one."""
    moment, _, key = text.partition("_")
    try:
        at = dt.datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (at, int(key)) if at.tzinfo is not None and key.isdecimal() and len(key) < 19 else None  # noqa: PLR2004 - bigint
