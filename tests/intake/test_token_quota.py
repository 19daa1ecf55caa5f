"""What one token may ask and send in a day: counted exactly, refused in words, and over at the site's midnight."""

import datetime as dt
import threading

import pytest
import time_machine
from django.db import connection

from grading.intake import token_quota
from grading.intake.token_quota import OverQuota
from grading.models import ApiToken, TokenUsage
from tests.site import NOON

pytestmark = pytest.mark.django_db

NOW = NOON


@pytest.fixture
def token(site):
    return ApiToken.objects.issue(site.agent("bob"))[0]


def used(token):
    return [(row.requests, row.bytes) for row in TokenUsage.objects.filter(token=token).order_by("day")]


def test_requests_and_bytes_add_up_by_day(token, settings):
    settings.TIME_ZONE = "UTC"
    token_quota.spend(token, 100, NOW)
    token_quota.spend(token, 0, NOW)
    token_quota.spend(token, 5, NOW + dt.timedelta(days=1))
    assert used(token) == [(2, 100), (1, 5)]


def test_what_is_over_the_quota_is_refused_and_not_counted_until_midnight(token, settings):
    settings.TOKEN_DAILY_REQUESTS = 2
    for _ in range(2):
        token_quota.spend(token, 1, NOW)
    with pytest.raises(OverQuota, match="2 of 2 requests of the day are used") as refused:
        token_quota.spend(token, 1, NOW)
    assert refused.value.resets == NOW.replace(hour=0, minute=0) + dt.timedelta(days=1)
    assert used(token) == [(2, 2)]
    token_quota.spend(token, 1, refused.value.resets)


def test_a_request_that_begins_within_the_quota_may_go_beyond_it(token, settings):
    settings.TOKEN_DAILY_BYTES = 1000
    token_quota.spend(token, 999, NOW)
    token_quota.spend(token, 5000, NOW)
    with pytest.raises(OverQuota, match="5,999 of 1,000 bytes"):
        token_quota.spend(token, 0, NOW)


def test_tokens_have_quotas_of_their_own_and_nought_is_no_limit(token, settings):
    settings.TOKEN_DAILY_REQUESTS = 1
    token_quota.spend(token, 1, NOW)
    token_quota.spend(ApiToken.objects.issue(token.agent)[0], 1, NOW)
    settings.TOKEN_DAILY_REQUESTS = settings.TOKEN_DAILY_BYTES = 0
    token_quota.spend(token, 10**12, NOW)


@pytest.mark.django_db(transaction=True)
def test_at_once_no_more_are_let_in_than_the_quota_bears(token, settings):
    settings.TOKEN_DAILY_REQUESTS = 5
    let_in = []

    def ask():
        try:
            token_quota.spend(token, 1, NOW)
            let_in.append(1)
        except OverQuota:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(let_in), used(token)) == (5, [(5, 5)])


# --- over HTTP


@pytest.fixture
def ask(site, client, settings):
    secret = ApiToken.objects.issue(site.agent("eve"))[1]
    return lambda: client.get("/api/v1/bandits/category", headers={"Authorization": f"Bearer {secret}"})


@time_machine.travel(NOW, tick=False)
def test_over_the_quota_the_api_says_how_much_is_used_and_when_it_resets(ask, settings):
    settings.TOKEN_DAILY_REQUESTS = 1
    assert ask().status_code == 200
    refused = ask()
    said = refused.json()
    assert (refused.status_code, refused["Retry-After"]) == (429, str(12 * 3600))
    assert said["error"] == "over quota"
    assert said["expected"] == "at most 1 requests a day with one token"
    assert said["got"] == "1 since midnight (UTC)"
    assert "2026-04-01T00:00:00+00:00" in said["todo"]
    assert "TOKEN_DAILY_REQUESTS" in said["todo"]


@pytest.mark.parametrize(("floor", "status"), [(0, 422), (2**50, 507)])
def test_below_the_floor_of_free_space_no_session_is_taken_in_and_the_rest_goes_on(
    site, client, settings, ask, floor, status
):
    settings.FREE_SPACE_FLOOR = floor
    secret = ApiToken.objects.issue(site.agent("bob"))[1]
    sent = client.post("/api/v1/sessions", {"metadata": "{}"}, headers={"Authorization": f"Bearer {secret}"})
    assert sent.status_code == status
    if status == 507:
        assert sent["Retry-After"]
        assert "send it again later" in sent.json()["todo"]
    assert ask().status_code == 200
