"""Which backups stay."""

import datetime as dt

import pytest

from grading.backups.keeping import to_keep

pytestmark = pytest.mark.pure

NOW = dt.datetime(2026, 3, 31, 12, 0, tzinfo=dt.UTC)  # a Tuesday


def days_ago(number: float) -> dt.datetime:
    return NOW - dt.timedelta(days=number)


def test_seven_days_and_four_weeks_of_nightly_backups_are_kept():
    """The last seven nights; of this week and the three before the last, which is the Sunday's."""
    found = sorted((NOW - each).days for each in to_keep(map(days_ago, range(60)), NOW))
    assert found == [0, 1, 2, 3, 4, 5, 6, 9, 16]


def test_days_without_a_backup_do_not_count():
    assert len(to_keep(map(days_ago, range(0, 300, 30)), NOW)) == 7


def test_of_a_day_the_last_one_stays():
    morning, evening = days_ago(3.2), days_ago(3)
    assert to_keep([morning, evening, NOW], NOW) == {evening, NOW}


def test_what_was_made_today_is_never_deleted():
    hours = {NOW - dt.timedelta(hours=each) for each in range(24)}
    assert to_keep(hours, NOW) == hours


def test_one_that_is_alone_stays():
    assert to_keep([days_ago(900)], NOW) == {days_ago(900)}
