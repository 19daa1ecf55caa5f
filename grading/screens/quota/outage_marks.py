"""The first judge's outages and spells of trouble, in the words that stand above the days of the dashboard."""

import datetime as dt

from django.db.models import Min
from django.utils import timezone

from grading.days import midnight
from grading.judging.outlook import outages
from grading.judging.outlook.outages import Period, Spell
from grading.judging.outlook.standing import JudgeStanding
from grading.models import JudgeJob
from grading.models.judging import Purpose
from grading.screens import charts
from grading.templatetags.gradingsite_tags import duration, moment

# Shorter ones are seen on the quota page.
LEAST = dt.timedelta(minutes=10)


def outage_marks(first: JudgeStanding | None, now: dt.datetime, days: int) -> list[charts.OutageSpan]:
    """Oldest first, in four queries."""
    if first is None:
        return []
    since = midnight(timezone.localdate(now) - dt.timedelta(days=days - 1))
    found = [period for period in outages.periods(first.quota, since) if period.is_outage]
    periods = [period for period in found if (period.until or now) - period.since >= LEAST or period.until is None]
    waits = JudgeJob.objects.filter(finished_at=None, purpose=Purpose.VERDICT).aggregate(since=Min("created_at"))[
        "since"
    ]
    marks = [_period(period, waits, now) for period in periods]
    spells = outages.spells(first.judge.model, since)
    marks += [_spell(spell) for spell in spells if spell.until - spell.since >= LEAST]
    return sorted(marks, key=lambda mark: mark.since)


def _period(period: Period, waits: dt.datetime | None, now: dt.datetime) -> charts.OutageSpan:
    """`waits`: since when the oldest job that is open has been waiting."""
    what = period.words[:1].lower() + period.words[1:]
    if period.until is None:
        words = f"{what} since {moment(period.row.at)}"
    else:
        lasted = duration((period.until - period.since).total_seconds())
        words = f"{what} for {lasted}" + (", since judged" if waits is None or waits >= period.until else "")
    return charts.OutageSpan(
        since=timezone.localtime(period.since), until=timezone.localtime(period.until or now), words=words
    )


def _spell(spell: Spell) -> charts.OutageSpan:
    words = f"judge overloaded for {duration((spell.until - spell.since).total_seconds())}"
    return charts.OutageSpan(since=timezone.localtime(spell.since), until=timezone.localtime(spell.until), words=words)
