"""Sessions on a site for the tests of Insight."""

import datetime as dt

from grading.insight.core.results import Span
from grading.models import SessionFacts
from tests.site import NOON

WEEK = dt.timedelta(days=7)
MONDAY = dt.date(2026, 3, 16)
BEFORE = Span(first=MONDAY, last=MONDAY + dt.timedelta(days=6))
AFTER = Span(first=MONDAY + WEEK, last=MONDAY + WEEK + dt.timedelta(days=6))
OLD, NEW = "a" * 64, "b" * 64


def noon_of(span, number):
    """Noon of a day of the span, which begins again after its last."""
    return NOON.replace(month=span.first.month, day=span.first.day) + dt.timedelta(days=number % span.days)


def hand_in(site, span, rewards, *, category="code", rubric=OLD, version="", minutes=None, **fields):
    """Judged sessions on the days of the span, in turn. None: no grade."""
    sessions = []
    for number, reward in enumerate(rewards):
        builder = site.session(category, ended_at=noon_of(span, number), **fields)
        if reward is not None:
            builder.judged(reward, model="j", rubric=rubric, version="d")
        if version or minutes is not None:
            SessionFacts.objects.create(session=builder.session, harness_version=version, minutes=minutes)
        sessions.append(builder.settle())
    for session in sessions:
        session.refresh_from_db()
    return sessions
