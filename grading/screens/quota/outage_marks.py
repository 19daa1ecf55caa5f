"""The first judge's outages and spells of overload, with the labels that charts show for them."""

import datetime as dt

from django.utils import timezone

from grading.days import midnight
from grading.judging.outlook import outages
from grading.judging.outlook.standing import JudgeStanding
from grading.screens.charts.timelines import OutageSpan
from grading.templatetags.gradingsite_tags import duration, moment

# Shorter outages are shown only on the quota page.
LEAST = dt.timedelta(minutes=10)


def outage_marks(first: JudgeStanding | None, now: dt.datetime, days: int) -> list[OutageSpan]:
    """The outages of the last `days`, oldest first. Three queries."""
    if first is None:
        return []
    since = midnight(timezone.localdate(now) - dt.timedelta(days=days - 1))
    past = [period for period in outages.periods(first.quota, since) if period.is_outage]
    periods = [period for period in past if period.until is None or period.until - period.since >= LEAST]
    marks = []
    for period in periods:
        what = period.label[:1].lower() + period.label[1:]
        state = what.partition(":")[0]  # without the reason
        if period.until is None:
            begun = moment(period.row.at)
            label, short = f"{what} since {begun}", f"{state} since {begun}"
        else:
            length = duration((period.until - period.since).total_seconds())
            label, short = f"{what} for {length}", f"{state} {length}"
        start, end = timezone.localtime(period.since), timezone.localtime(period.until or now)
        marks.append(OutageSpan(since=start, until=end, label=label, short=short))
    for spell in outages.spells(first.judge.model, since):
        lasted = spell.until - spell.since
        if lasted >= LEAST:
            start, end = timezone.localtime(spell.since), timezone.localtime(spell.until)
            took = duration(lasted.total_seconds())
            label, short = f"judge overloaded for {took}", f"overloaded {took}"
            marks.append(OutageSpan(since=start, until=end, label=label, short=short))
    return sorted(marks, key=lambda mark: mark.since)
