"""Keyset pagination of sessions by time: the last page costs no more than the first.

A place is the end time and the primary key of a session, so that sessions which arrive meanwhile shift no page.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q
from django.db.models.expressions import OrderBy

from grading.models import Session
from grading.models.sessions import SessionQuerySet

PAGE_SIZE = 50
# Larger numbers of sessions are not counted.
COUNTED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsPage:
    """One page, the latest first. `newer` and `older` are the query strings of its neighbours, "" if there is none.
    `count` is how many sessions all pages have, COUNTED + 1 if there are more than COUNTED.
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
        """The number of sessions, as text."""
        return f"{self.count:,}" if self.is_counted else f"more than {COUNTED:,}"


def page(sessions: SessionQuerySet, query: Mapping[str, str]) -> SessionsPage:
    """The page before or after the place in the query, or the last with `page=last`; else the first. Three queries."""
    place = _place(query.get("before") or query.get("after") or "")
    backwards = query.get("page") == "last" or (bool(query.get("after")) and place is not None)
    order = ("ended_at", "pk") if backwards else ("-ended_at", "-pk")
    rows = sessions if place is None else sessions.filter(_beyond(place, "gt" if backwards else "lt"))
    # Sort the keys first and load the rows afterwards, so that the database sorts small rows.
    keys = list(rows.order_by(*order).values_list("pk", flat=True)[: PAGE_SIZE + 1])
    by_key = sessions.in_bulk(keys[:PAGE_SIZE])
    has_more = len(keys) > PAGE_SIZE
    page_sessions = [by_key[key] for key in keys[:PAGE_SIZE] if key in by_key]
    if backwards:
        page_sessions.reverse()
    if place is not None and not page_sessions:  # a place beyond the end
        return page(sessions, {})
    is_newer, is_older = (has_more, place is not None) if backwards else (place is not None, has_more)
    return SessionsPage(
        object_list=page_sessions,
        newer=f"after={place_of(page_sessions[0])}" if is_newer else "",
        older=f"before={place_of(page_sessions[-1])}" if is_older else "",
        count=sessions.order_by()[: COUNTED + 1].count(),
    )


def sorted_page(sessions: SessionQuerySet, query: Mapping[str, str], *, by: Sequence[OrderBy]) -> SessionsPage:
    """Page number `page`, from 1, in an order other than time. Covers only the first COUNTED sessions, because every
    page sorts again. Three queries.
    """
    number = query.get("page", "")
    last = COUNTED // PAGE_SIZE
    is_page = number.isdecimal() and len(number) < 4 and int(number) > 0  # noqa: PLR2004 - more digits than pages
    at = min(int(number), last) if is_page else 1
    start = (at - 1) * PAGE_SIZE
    keys = list(sessions.order_by(*by).values_list("pk", flat=True)[start : start + PAGE_SIZE + 1])
    if not keys and at > 1:  # a page beyond the end
        return sorted_page(sessions, {}, by=by)
    by_key = sessions.in_bulk(keys[:PAGE_SIZE])
    return SessionsPage(
        object_list=[by_key[key] for key in keys[:PAGE_SIZE] if key in by_key],
        newer=f"page={at - 1}" if at > 1 else "",
        older=f"page={at + 1}" if len(keys) > PAGE_SIZE and at < last else "",
        count=sessions.order_by()[: COUNTED + 1].count(),
    )


def older(sessions: SessionQuerySet, query: Mapping[str, str]) -> SessionQuerySet:
    """The sessions older than the place `before`; all if the query names no place."""
    place = _place(query.get("before", ""))
    return sessions if place is None else sessions.filter(_beyond(place, "lt"))


def _beyond(place: tuple[dt.datetime, int], lookup: str) -> Q:
    """The sessions before (`lookup` "lt") or after ("gt") a place."""
    ended_at, key = place
    beyond = Q(**{f"ended_at__{lookup}": ended_at}) | Q(**{"ended_at": ended_at, f"pk__{lookup}": key})
    # Redundant, but lets the database use the index on ended_at.
    return beyond & Q(**{f"ended_at__{lookup}e": ended_at})


def place_of(session: Session) -> str:
    """The place of this session, as used in `before` and `after`."""
    return f"{session.ended_at.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}_{session.pk}"


def _place(text: str) -> tuple[dt.datetime, int] | None:
    """Parse a place; None if it isn't one."""
    timestamp, _, key = text.partition("_")
    try:
        at = dt.datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    is_key = key.isdecimal() and len(key) < 19  # noqa: PLR2004 - fits a bigint
    return (at, int(key)) if at.tzinfo is not None and is_key else None
