"""The weekly letter as a page: one week's five sentences with their pictures, and how it was sent."""

import datetime as dt
from typing import Any
from urllib.parse import urlencode

from django.template.response import TemplateResponse
from django.utils import timezone

from grading import letters
from grading.insight import since
from grading.insight.changes import compare
from grading.insight.core.results import PeriodChange, Span
from grading.insight.sentences import write_headline
from grading.insight.trends import load_trend
from grading.models import Session, WeeklyLetter
from grading.monitoring.notices.channels import letter_destinations
from grading.screens.charts.trends import LETTER_WIDE, PHONE
from grading.screens.http import StaffRequest, staff_view
from grading.screens.insight import change_card, trend_card
from grading.screens.insight.forms import period_fields

WEEK = dt.timedelta(days=7)
WEEKS = 10
LISTED = 12


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    """The letter about the week of `week`, otherwise about the last whole week. A constant number of queries.

    The sentences are those that were written that Monday. The pictures are of today's figures.
    """
    now = timezone.now()
    latest = letters.last_week(now)
    requested = _monday(request.GET.get("week", ""))
    monday = latest if requested is None or requested > latest else requested
    written = {letter.monday: letter for letter in WeeklyLetter.objects.filter(monday__lte=latest)[:LISTED]}
    letter = written.get(monday) or WeeklyLetter.objects.filter(monday=monday).first()
    context: dict[str, Any] = {
        "title": f"The week of {monday:%-d %B %Y}",
        "monday": monday,
        "sunday": monday + WEEK - dt.timedelta(days=1),
        "letter": letter,
        "is_latest": monday == latest,
        "is_unknown": requested is None and bool(request.GET.get("week")),
        "weeks": [each for each in written.values() if each.sentences],
        "places": letter_destinations(),
        "notices": letter.notices.select_related("to").defer("body") if letter else (),
        "has_sessions": Session.objects.yours().exists(),
    }
    if letter is None and monday == latest:
        draft = letters.compose(monday)
        context |= {"subject": draft.subject, "sentences": draft.sentences, **pictures(monday, draft.change)}
    elif letter is not None and letter.sentences:
        change = compare(*_spans(monday))
        today = write_headline(change)
        context |= {
            "subject": letter.subject,
            "sentences": letter.sentences,
            "today": today if today not in letter.sentences else "",
            **pictures(monday, change),
        }
    return TemplateResponse(request, "insight/letter.html", context)


def pictures(monday: dt.date, change: PeriodChange) -> dict[str, Any]:
    """The reward's curve over the ten weeks up to this one, and the parts of the change from the week before."""
    span = Span(first=monday - (WEEKS - 1) * WEEK, last=monday + WEEK - dt.timedelta(days=1))
    trend = trend_card.without_empty_beginning(load_trend("reward", span))
    markers = trend_card.mark_lines(since.marks_during(since.stored_reading(), span))
    dots = trend_card.make_dots(trend.whole, trend.measure, {})
    return {
        "trend": trend_card.draw(trend, dots, markers, LETTER_WIDE),
        "small_trend": trend_card.draw(trend, dots, markers, PHONE),
        "trend_marks": markers,
        "periods": urlencode(period_fields(change.before_span, change.after_span)),
        "change": change_card.context(change, {}, ()),
    }


def _spans(monday: dt.date) -> tuple[Span, Span]:
    """The week before, and the week."""
    day = dt.timedelta(days=1)
    return Span(first=monday - WEEK, last=monday - day), Span(first=monday, last=monday + WEEK - day)


def _monday(text: str) -> dt.date | None:
    """The Monday of the week of a day in ISO 8601; None if it is no day."""
    try:
        day = dt.date.fromisoformat(text)
        return day - dt.timedelta(days=day.weekday())
    except (ValueError, OverflowError):
        return None
