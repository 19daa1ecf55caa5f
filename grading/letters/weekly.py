"""The weekly letter: composed from the figures of Insight, written once, and queued with its notices."""

import datetime as dt
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from grading.days import midnight
from grading.insight import agents, since
from grading.insight.changes import compare
from grading.insight.core.results import PeriodChange, Span
from grading.insight.sentences import write_letter, write_subject
from grading.models import WeeklyLetter
from grading.monitoring import outbox
from grading.review import queue

WEEK = dt.timedelta(days=7)
# A letter is written at this hour of Monday in the site's zone, or at the first turn after it.
HOUR = dt.timedelta(hours=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterDraft:
    """What a letter says about one week. If no session ended in the week, it has no sentences and nothing is sent."""

    change: PeriodChange
    subject: str
    sentences: tuple[str, ...]


def last_week(now: dt.datetime) -> dt.date:
    """The Monday of the last whole week."""
    today = timezone.localdate(now)
    return today - dt.timedelta(days=today.weekday()) - WEEK


def write_due(now: dt.datetime) -> bool:
    """Write the letter about the last week if it is time and there is none yet. Returns whether it was written."""
    monday = last_week(now)
    if now < midnight(monday + WEEK) + HOUR or WeeklyLetter.objects.filter(monday=monday).exists():
        return False
    return store(monday, compose(monday), now)


def store(monday: dt.date, draft: LetterDraft, now: dt.datetime) -> bool:
    """Store a letter and queue its notices, in one transaction. Returns False if the week has a letter already, so that
    only one of two workers that write at once sends notices.
    """
    with transaction.atomic():
        columns = {"subject": draft.subject, "sentences": list(draft.sentences), "written_at": now}
        letter, is_new = WeeklyLetter.objects.get_or_create(monday=monday, defaults=columns)
        if is_new and letter.sentences:
            outbox.queue_letter(letter)
    return is_new


def compose(monday: dt.date) -> LetterDraft:
    """The letter about the week from `monday`. Marks and agents are as the worker last stored them."""
    week = Span(first=monday, last=monday + WEEK - dt.timedelta(days=1))
    change = compare(Span(first=monday - WEEK, last=monday - dt.timedelta(days=1)), week)
    if not change.after.sessions:
        return LetterDraft(change=change, subject="", sentences=())
    reading = since.stored_reading()
    effects = reading.effects if reading else ()
    statistics = write_letter(change, effects, since.outages_during(reading, week), agents.latest_cards())
    return LetterDraft(change=change, subject=write_subject(change), sentences=(*statistics, review_sentence()))


def review_sentence() -> str:
    """A sentence about how many sessions wait for review."""
    waiting = queue.count().open
    if not waiting:
        return "No sessions wait for review."
    if waiting == 1:
        return "One session waits for your review."
    return f"{waiting:,} sessions wait for your review, the most useful first."
