"""Trying a policy on the log, from the page that previews it."""

import html
from datetime import timedelta
from urllib.parse import parse_qsl

import pytest
import time_machine

from bandit.selection import select
from bandit.shadow import FAST, shadow
from tests.addresses import POLICY
from tests.bandit.helpers import policy
from tests.casts.log import NOW, START, live, variant
from tests.casts.page import flat

pytestmark = pytest.mark.django_db
PAGE = "/bandits/category/policy/"
NUMBERS = dict(parse_qsl(POLICY)) | {"half_life_days": "20"}


@pytest.fixture(autouse=True)
def _later():
    with time_machine.travel(NOW, tick=False):
        yield


def read(client, **query):
    return html.unescape(flat(client.get(PAGE, NUMBERS | query)))


def test_a_preview_offers_to_try_it_and_reads_no_log_before(operator):
    page = read(operator, preview="yes")
    assert "preview=yes&log=yes#shadow" in page
    assert 'id="shadow"' not in page
    assert "Try it on the log" not in read(operator, preview="yes", half_life_days="45")


def test_the_card_says_the_sentence_and_shows_the_numbers(operator):
    live(48)
    page = read(operator, preview="yes", log="yes")
    assert shadow(variant(half_life_days=20), NOW, every=FAST).sentence in page
    assert "This policy, less what ran" in page
    assert "weighted (SNIPS)" in page
    assert "48 of the last 48 decisions, 1 Mar" in page
    assert "<td>triage</td>" in page
    assert "<td>social</td>" not in page
    assert "Try it on the log" not in page


def test_without_nearly_all_rewards_the_card_tells_the_gain_alone(operator):
    live(48)
    for number in range(4):
        select(bandit="category", decision_id=f"open-{number}", supply=None, now=START + timedelta(days=9))
    page = read(operator, preview="yes", log="yes")
    assert "This policy, less what ran" in page
    assert "92 % of the draws have a reward; levels are shown from 95 % on" in page
    assert "SNIPS" not in page


def test_an_empty_log_says_what_to_do(operator):
    page = read(operator, preview="yes", log="yes")
    assert "Cannot tell yet: none of 0 decisions" in page
    assert "POST /api/v1/selections" in page


def test_an_earlier_version_is_tried_alike(operator):
    policy(half_life_days=20)
    assert 'id="shadow"' in read(operator, to="1", log="yes")
