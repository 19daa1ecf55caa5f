"""Trying a policy on the log, from the page that previews it."""

import html
from urllib.parse import parse_qsl

import pytest
import time_machine

from bandit.shadow import FAST, shadow
from tests import cast
from tests.addresses import POLICY
from tests.bandit.helpers import policy
from tests.casts.log import NOW, live, variant
from tests.casts.page import flat

pytestmark = pytest.mark.django_db
PAGE = "/bandits/category/policy/"
NUMBERS = dict(parse_qsl(POLICY)) | {"half_life_days": "21", "floor": "0.05"}


@pytest.fixture(autouse=True)
def _later():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def operator(client):
    client.force_login(cast.person("otto", "operator"))
    return client


def read(client, **query):
    return html.unescape(flat(client.get(PAGE, NUMBERS | query)))


def test_a_preview_offers_to_try_it_and_reads_no_log_before(operator):
    page = read(operator, preview="yes")
    assert "preview=yes&log=yes#shadow" in page
    assert 'id="shadow"' not in page
    assert "Try it on the log" not in read(operator, preview="yes", floor="0.01")


def test_the_card_says_the_sentence_and_shows_the_numbers(operator):
    live(32)
    page = read(operator, preview="yes", log="yes")
    assert shadow(variant(floor=0.05), NOW, every=FAST).sentence in page
    assert "weighted (SNIPS)" in page
    assert "32 of the last 32 decisions, 1 Mar" in page
    assert "<td>triage</td>" in page
    assert "<td>social</td>" not in page
    assert "Try it on the log" not in page


def test_an_empty_log_says_what_to_do(operator):
    page = read(operator, preview="yes", log="yes")
    assert "Cannot tell yet: none of 0 decisions" in page
    assert "POST /api/v1/selections" in page


def test_an_earlier_version_is_tried_alike(operator):
    policy(floor=0.2)
    assert 'id="shadow"' in read(operator, to="1", log="yes")
