"""Lists of what happened may have millions of rows: nobody counts them all, and every page of them can be reached."""

import pytest

from bandit import admin
from bandit.models import Arm, ArmEvent
from tests.casts.page import flat

pytestmark = pytest.mark.django_db
PAGE = "/bandit/armevent/"
EVENTS = 130


@pytest.fixture
def viewer(site, client):
    arm = Arm.objects.in_bandit("category").first()
    ArmEvent.objects.all().delete()
    acts = [ArmEvent(arm=arm, act=ArmEvent.Act.ADDED, by="otto", why=f"event {number}") for number in range(EVENTS)]
    ArmEvent.objects.bulk_create(acts)
    client.force_login(site.person("vera", "viewer"))
    return client


def test_a_list_is_counted_only_so_far_and_says_so(viewer, monkeypatch):
    monkeypatch.setattr(admin, "COUNT_AHEAD", 60)
    assert "more than 60 arm events" in flat(viewer.get(PAGE))
    response = viewer.get(PAGE, {"p": 2})
    assert "more than 110 arm events" in flat(response)
    assert len(response.context["cl"].result_list) == 50


def test_its_last_page_is_counted_to_the_end(viewer, monkeypatch):
    monkeypatch.setattr(admin, "COUNT_AHEAD", 60)
    response = viewer.get(PAGE, {"p": 3})
    assert "130 arm events" in flat(response)
    assert "more than" not in flat(response)
    assert len(response.context["cl"].result_list) == 30


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 40, "9999"])
def test_a_page_that_is_none_leads_back_to_the_list(viewer, page):
    assert "130 arm events" in flat(viewer.get(PAGE, {"p": page}, follow=True))
