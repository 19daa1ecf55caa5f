"""Whoever guesses passwords waits longer and longer; nobody else waits for it."""

import datetime as dt

import pytest
from axes.models import AccessAttempt

from grading.access import delays

pytestmark = pytest.mark.django_db

RIGHT, WRONG = "correct horse battery", "wrong"
HOME, CAFE = "192.0.2.7", "198.51.100.4"


def attempt(client, password=WRONG, name="olga", address=HOME, **extra):
    return client.post("/login/", {"username": name, "password": password}, REMOTE_ADDR=address, **extra)


def test_the_wait_doubles_and_ends():
    waits = [delays.wait(failures, 5).total_seconds() for failures in (0, 4, 5, 6, 7, 12, 10_000)]
    assert waits == [0, 0, 10, 20, 40, 900, 900]


def test_a_throttled_attempt_says_when_to_try_again_and_the_right_password_waits_too(client, olga, clock):
    for _ in range(5):
        assert attempt(client).status_code == 200
    response = attempt(client, RIGHT)
    assert response.status_code == 429
    assert response["Retry-After"] == "10"
    assert "Try again in 10 s" in response.content.decode()
    clock.shift(dt.timedelta(seconds=11))
    assert attempt(client, RIGHT).status_code == 302


def test_a_refused_attempt_lengthens_nothing(client, olga, clock):
    for _ in range(50):
        attempt(client)
    clock.shift(dt.timedelta(seconds=11))
    assert attempt(client, RIGHT).status_code == 302


def test_the_right_password_from_an_address_that_never_failed_is_never_refused(client, olga, clock):
    for number in range(60):
        attempt(client, address=f"203.0.113.{number}")
        attempt(client)
    assert attempt(client, RIGHT, address=CAFE).status_code == 302


def test_one_address_is_slow_with_many_names_too(client, olga, clock):
    for number in range(20):
        attempt(client, name=f"name-{number}")
    assert attempt(client, name="another").status_code == 429


def test_a_browser_that_its_user_signed_in_with_is_not_held_up_by_a_guesser_at_the_same_address(client, olga, clock):
    attempt(client, RIGHT)
    client.post("/logout/")
    guesser = type(client)()
    for number in range(40):
        attempt(guesser, name="olga" if number % 2 else f"name-{number}")
    assert attempt(guesser, RIGHT).status_code == 429
    assert attempt(client, RIGHT).status_code == 302


def test_a_known_browser_is_known_for_its_own_user_only_and_waits_as_well(site, client, olga, clock):
    site.person("rita", "reviewer")
    attempt(client, RIGHT)
    client.post("/logout/")
    for _ in range(5):
        attempt(client)
        attempt(client, name="rita")
    assert attempt(client, RIGHT).status_code == 429
    client.cookies["known_8000"] = "made:up"
    assert attempt(client, name="rita").status_code == 429


def test_rotating_within_ones_own_ipv6_network_gains_nothing(client, olga, clock):
    for number in range(5):
        attempt(client, address=f"2001:db8:1:2::{number}")
    assert attempt(client, address="2001:db8:1:2:ffff::1").status_code == 429
    assert attempt(client, address="2001:db8:1:3::1").status_code == 200


def test_an_account_of_ones_own_does_not_reset_the_address(site, client, olga, clock):
    site.person("eve", "viewer")
    for number in range(19):
        attempt(client, name=f"name-{number}")
    fresh = type(client)()
    assert attempt(fresh, RIGHT, name="eve").status_code == 302
    assert attempt(client, name="one more").status_code == 200
    assert attempt(client, name="yet another").status_code == 429


def test_whoever_waits_fills_no_table_with_names(client, olga, clock):
    for number in range(60):
        attempt(client, name=f"name-{number}")
    assert AccessAttempt.objects.count() == 20


def test_what_was_tried_is_stored_as_a_hash_and_for_a_day(client, olga, clock):
    attempt(client, name="hunter2\x1b\u202e")
    row = AccessAttempt.objects.get()
    assert "hunter2" not in "".join(map(str, vars(row).values()))
    assert (row.user_agent, row.get_data, row.post_data) == ("", "", "")
    clock.shift(dt.timedelta(days=1, seconds=1))
    attempt(client, name="other")
    assert AccessAttempt.objects.count() == 1


def test_a_password_asked_for_again_counts_as_an_attempt_until_it_is_right(client, olga, clock):
    client.force_login(olga)
    for _ in range(3):
        client.post("/second-factor/password/", {"password": "wrong"}, REMOTE_ADDR=HOME)
    assert AccessAttempt.objects.get().failures_since_start == 3
    client.post("/second-factor/password/", {"password": RIGHT}, REMOTE_ADDR=HOME)
    assert not AccessAttempt.objects.exists()
