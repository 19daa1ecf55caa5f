"""Sessions end after twelve hours without use, and a stolen database opens none."""

import datetime as dt

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session

from grading.access.sessions import SessionStore

pytestmark = pytest.mark.django_db


@pytest.fixture
def inside(site, client, clock):
    client.force_login(site.person("vera", "viewer"))
    return client


def is_in(client) -> bool:
    return client.get("/history/").status_code == 200


def test_the_key_in_the_database_signs_nobody_in(inside):
    cookie = inside.cookies[settings.SESSION_COOKIE_NAME].value
    row = Session.objects.get()
    assert row.session_key != cookie
    assert is_in(inside)
    inside.cookies[settings.SESSION_COOKIE_NAME] = row.session_key
    assert not is_in(inside)


def test_a_session_ends_after_twelve_idle_hours(inside, clock):
    clock.shift(dt.timedelta(hours=11, minutes=59))
    assert is_in(inside)
    clock.shift(dt.timedelta(hours=11, minutes=59))
    assert is_in(inside)
    clock.shift(dt.timedelta(hours=12, seconds=1))
    assert not is_in(inside)


def test_use_is_written_at_most_every_ten_minutes(inside, clock):
    ends = Session.objects.get().expire_date
    clock.shift(dt.timedelta(minutes=9))
    is_in(inside)
    assert Session.objects.get().expire_date == ends
    clock.shift(dt.timedelta(minutes=1))
    is_in(inside)
    assert Session.objects.get().expire_date == ends + dt.timedelta(minutes=10)


def test_a_page_that_asks_by_itself_keeps_no_session_alive(inside, clock):
    for _ in range(13):
        clock.shift(dt.timedelta(hours=1))
        inside.get("/runs/1/progress/")
        inside.post("/review/1/renew/", {"claim": "held"})
    assert not is_in(inside)


def test_signing_out_ends_the_session_and_its_row(inside):
    inside.post("/logout/")
    assert not Session.objects.exists()


def test_what_ended_is_taken_away(inside, clock):
    clock.shift(dt.timedelta(hours=13))
    SessionStore.clear_expired()
    assert not Session.objects.exists()
