"""At night the ledger is added up again; a bucket that says something else is an alarm (A33)."""

import datetime as dt

import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from bandit.models import Bandit, BanditKind, Bucket
from grading import tasks
from grading.models import RuleRun
from grading.monitoring.alarms import open_alarms
from grading.monitoring.watch import refresh_alarms, watch, watch_at_night
from tests.bandit.helpers import DAY, reward

pytestmark = pytest.mark.django_db


def open_now():
    return open_alarms().filter(rule="A33")


def test_a_bucket_that_is_not_the_ledgers_sum_is_an_alarm_until_it_is_put_right():
    """I55, a stale snapshot written over corrections: alarm (A33). Sums are compared with the ledger at night."""
    reward("s1", code=0.5)
    tasks.at_night()
    assert not open_now().exists()
    Bucket.objects.update(n=2)
    tasks.at_night()
    detail = open_now().get().detail
    assert "Buckets that differ from the ledger: 1. category/code, judge, 2026-03-31: the ledger says" in detail
    assert "= (1, 500000, 250000000000, 0, 0, 0), the bucket says (2, 500000, 250000000000, 0, 0, 0)" in detail
    call_command("rebuild", repair=True, verbosity=0)
    tasks.at_night()
    assert not open_now().exists()


def test_a_session_that_counts_twice_is_one_too():
    Bandit.objects.filter(name="category").update(kind=BanditKind.MANY)
    reward("s1", code=0.5)
    reward("s1", code=0.5, infra=0.5)
    Bandit.objects.filter(name="category").update(kind=BanditKind.CHOICE)
    tasks.at_night()
    said = "Sessions that count more than once: 1. category: s1 has 2 live rewards: code 0.500, infra 0.500."
    assert open_now().get().detail.startswith(said)


def test_the_alarm_names_a_few_and_counts_the_others():
    for number in range(8):
        reward(f"s{number}", day=DAY - dt.timedelta(days=number), code=0.5)
    Bucket.objects.update(s=0, q=0)
    tasks.at_night()
    detail = open_now().get().detail
    assert detail.startswith("Buckets that differ from the ledger: 8.")
    assert detail.count("the bucket says") == 5
    assert "; and 3 more." in detail


def test_a_nightly_rule_looks_at_night_and_never_from_the_sweep():
    watch()
    assert not RuleRun.objects.filter(rule="A33").exists()
    watch_at_night()
    assert RuleRun.objects.filter(rule="A33").exists()


def test_nights_without_a_look_are_an_alarm():
    now = timezone.now()
    watch_at_night(now)
    refresh_alarms(now + dt.timedelta(days=2))
    assert not open_alarms().filter(rule="A29", about="Stored sums differ from the ledger").exists()
    refresh_alarms(now + dt.timedelta(days=2, minutes=11))
    assert open_alarms().filter(rule="A29", about="Stored sums differ from the ledger").exists()
    watch_at_night(now + dt.timedelta(days=3))
    refresh_alarms(now + dt.timedelta(days=3))
    assert not open_alarms().filter(rule="A29", about="Stored sums differ from the ledger").exists()


def test_the_clock_rings_once_a_night():
    (entry,) = [each for each in settings.CELERY_BEAT_SCHEDULE.values() if each["args"] == ["at night"]]
    assert (entry["schedule"].hour, entry["schedule"].minute) == ({2}, {30})
