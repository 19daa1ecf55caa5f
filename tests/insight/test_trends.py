"""Trends: means by week and day with their intervals, by group, of the sessions that are chosen."""

import datetime as dt

import pytest

from grading.insight.core.results import Span, TrendSplit, TrendStep
from grading.insight.loading import CellFilter
from grading.insight.trends import load_trend, split_span
from grading.models import SessionFacts
from grading.review.corrections import record_correction
from grading.vocabulary import Source
from tests.site import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]

MONDAY = dt.date(2026, 3, 23)
# The week from Monday the 23rd and the two days of the next until noon.
SPAN = Span(first=MONDAY, last=NOON.date())


def session(site, day: int, value: float | None, category: str = "code", **fields):
    """A session that ended at noon of this day of March, with a verdict of this value."""
    builder = site.session(category, ended_at=NOON.replace(day=day), **fields)
    return (builder if value is None else builder.judged(value)).settle()


def values(line) -> list[float | None]:
    return [None if point.mean.value is None else round(point.mean.value, 6) for point in line.points]


def test_means_by_week_with_what_is_missing(site):
    """Sessions without a grade have the floor as their reward, and count as missing."""
    for day, value in ((23, 0.4), (24, 0.6), (24, None), (30, 0.9)):
        session(site, day, value)
    trend = load_trend("reward", SPAN)
    assert values(trend.whole) == [0.5, 0.9]
    first = trend.whole.points[0].mean
    assert (first.sessions, first.known, first.missing) == (3, 2, 1)
    # Student's interval of two values: .5 ± 6.314 · .1414 / √2, and not beyond 0 and 1.
    assert (first.low, first.high) == (0.0, 1.0)
    assert trend.whole.points[1].mean.low is None


def test_interval_of_four_days_counts_days(site):
    """Two alike sessions a day are hardly more than one: the interval is that of the four days' means."""
    for day, value in ((23, 0.4), (24, 0.5), (25, 0.6), (26, 0.7)):
        session(site, day, value)
        session(site, day, value)
    mean = load_trend("reward", SPAN).whole.points[0].mean
    # The mean of 4 days with sd .1291: .55 ± 2.353 · .1291 / √4 = .55 ± .1519.
    assert mean.value == pytest.approx(0.55)
    assert (mean.low, mean.high) == (pytest.approx(0.3981, abs=1e-4), pytest.approx(0.7019, abs=1e-4))


def test_equal_values_have_no_interval(site):
    """Two rewards of .33 don't show that the next one will be .33."""
    for _ in range(2):
        session(site, 23, 0.33)
    mean = load_trend("reward", SPAN).whole.points[0].mean
    assert (mean.value, mean.low, mean.high) == (pytest.approx(0.33), None, None)


def test_days_and_weeks_have_no_gaps():
    assert split_span(SPAN, TrendStep.WEEK) == [
        Span(first=MONDAY, last=dt.date(2026, 3, 29)),
        Span(first=dt.date(2026, 3, 30), last=dt.date(2026, 3, 31)),
    ]
    assert [each.first.day for each in split_span(SPAN, TrendStep.DAY)] == [*range(23, 32)]


def test_groups_by_size_and_sessions_without_one(site):
    for day in (23, 24, 30):
        session(site, day, 0.5)
    session(site, 23, 0.7, "infra")
    session(site, 23, 0.1, None)
    trend = load_trend("reward", SPAN, split=TrendSplit.CATEGORY)
    assert {line.name: values(line) for line in trend.lines} == {
        "code": [0.5, 0.5],
        "": [0.1, None],
        "infra": [0.7, None],
    }
    assert trend.lines[0].name == "code"
    few = load_trend("reward", SPAN, split=TrendSplit.CATEGORY, most_lines=1)
    assert ([line.name for line in few.lines], few.groups) == (["code"], 3)


@pytest.mark.parametrize(
    ("measure", "value", "known"),
    [
        ("sessions", 3.0, 3),
        ("final", 1.0, 2),
        ("tokens", 200.0, 2),
        ("cost", 15_000.0, 1),
        ("failed_share", 0.25, 2),
        ("claimed_without_green", 0.5, 2),
        ("suites", 0.5, 2),
    ],
)
def test_each_measure_is_of_the_sessions_that_have_it(site, measure, value, known):
    one, two = session(site, 23, 0.5, tokens=100), session(site, 23, 0.5, tokens=300)
    session(site, 24, None)
    type(one).objects.filter(pk=one.pk).update(cost_micro=15_000, cost_unknown="")
    suites = [{"suite": "pytest", "state": "red"}], [{"suite": "pytest", "state": "green"}]
    for each, share, claimed, run in ((one, 0.5, True, suites[0]), (two, 0.0, False, suites[1])):
        SessionFacts.objects.update_or_create(
            session=each, defaults={"failed_share": share, "claimed_without_green": claimed, "suites": run}
        )
    mean = load_trend(measure, SPAN).whole.points[0].mean
    assert (mean.value, mean.known, mean.sessions) == (pytest.approx(value), known, 3)


def test_a_share_of_all_sessions_is_not_certain(site):
    """Three of three final rewards leave room: Wilson's interval reaches from 3 ÷ (3 + 1.645²) to 1."""
    for day in (23, 24, 25):
        session(site, day, 0.5)
    mean = load_trend("final", SPAN).whole.points[0].mean
    assert (mean.value, mean.low, mean.high) == (1.0, pytest.approx(3 / (3 + 1.644854**2)), 1.0)


def test_filters_samples_and_exclusions(site):
    session(site, 23, 0.5, agent="alice")
    session(site, 23, 0.9)
    session(site, 23, 0.1, is_sample=True)
    assert values(load_trend("reward", SPAN).whole)[0] == pytest.approx(0.7)
    assert values(load_trend("reward", SPAN, filters=CellFilter(agent="alice")).whole)[0] == 0.5


def test_provisional_rewards_are_counted(site):
    site.session("code", ended_at=NOON.replace(day=23)).with_judge_job().graded(Source.JOURNAL, 0.3).settle()
    session(site, 23, 0.5)
    mean = load_trend("reward", SPAN).whole.points[0].mean
    assert (mean.known, mean.provisional) == (2, 1)


def test_a_correction_changes_the_mean_exactly(site):
    first, _second = session(site, 23, 0.4), session(site, 24, 0.6)
    record_correction(first, site.person("rita", "reviewer"), value=0.8, reason="it works")
    assert values(load_trend("reward", SPAN).whole)[0] == 0.7


def test_unknown_measures_are_refused():
    with pytest.raises(KeyError):
        load_trend("beauty", SPAN)
