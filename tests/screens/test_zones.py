"""Each person reads times in their own zone; days that are counted, downloads and the API stay as they are."""

import csv
import datetime as dt
import io
import json

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from grading import zones
from grading.models import PersonZone
from grading.models.quota import QuotaState
from grading.review import audit
from grading.vocabulary import Reason
from tests.casts import quota as quota_cast
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

# 23:30 in UTC: 01:30 of the next day in Berlin, 19:30 of the same in New York.
NOW = dt.datetime(2026, 6, 30, 23, 30, tzinfo=dt.UTC)
PAGE = "/settings/zone/"


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False):
        yield


def reader(site, name, zone):
    client = Client()
    user = site.person(name, "operator")
    User.objects.filter(pk=user.pk).update(is_superuser=True)
    client.force_login(user)
    if zone:
        PersonZone.objects.create(user=user, zone=zone)
    return client


@pytest.fixture
def berlin(site):
    return reader(site, "bea", "Europe/Berlin")


@pytest.fixture
def york(site):
    return reader(site, "york", "America/New_York")


@pytest.fixture
def utc(site):
    return reader(site, "uta", "")


def test_two_people_read_the_same_page_in_their_own_zones(site, berlin, york, utc):
    session = site.session().session
    type(session).objects.filter(pk=session.pk).update(ended_at=NOW - dt.timedelta(hours=2))
    said = {
        "berlin": ("30 Jun, 23:30 CEST", berlin),
        "york": ("30 Jun, 17:30 EDT", york),
        "utc": ("30 Jun, 21:30 UTC", utc),
    }
    for words, client in said.values():
        html = flat(client.get(f"/sessions/{session.pk}/"))
        assert words in html
    assert "1 Jul, 01:30 CEST" in flat(berlin.get("/"))
    assert "30 Jun, 19:30 EDT" in flat(york.get("/"))


def test_the_foot_of_a_page_says_the_zone_and_how_days_are_counted(berlin, utc):
    html = flat(berlin.get("/quota/"))
    assert f'Times are in <a class="link" href="{PAGE}">CEST</a>, days are counted in UTC' in html
    assert "days are counted in" not in flat(utc.get("/quota/"))


def test_a_zone_is_chosen_by_its_name_and_taken_back(site, client):
    client.force_login(site.person("vera", "viewer"))
    html = flat(client.get(PAGE))
    assert '<option value="Asia/Kolkata">' in html
    html = flat(client.post(PAGE, {"zone": "asia/kolkata"}, follow=True))
    assert "You now read times in Asia/Kolkata." in html
    assert "It is 05:00 IST for you." in html
    assert PersonZone.objects.get().zone == "Asia/Kolkata"
    html = flat(client.post(PAGE, {"zone": "Mars/Olympus"}, follow=True))
    assert "Expected a zone such as Europe/Berlin" in html
    assert PersonZone.objects.get().zone == "Asia/Kolkata"
    assert "the site’s zone, UTC" in flat(client.post(PAGE, {"zone": ""}, follow=True))
    assert not PersonZone.objects.exists()


@pytest.mark.parametrize("zone", ["../../etc/passwd", "<script>alert(1)</script>", "Europe/Nowhere", "\0", "x" * 64])
def test_a_zone_that_is_none_is_the_sites(site, zone):
    client = reader(site, "eve", "Europe/Berlin")
    PersonZone.objects.filter(user__username="eve").update(zone=zone.replace("\0", "\x01"))
    assert "30 Jun, 23:30 UTC" in flat(client.get("/settings/"))


def test_dates_are_taken_in_the_readers_zone(site, berlin, york):
    first = site.session().session
    type(first).objects.filter(pk=first.pk).update(ended_at=NOW - dt.timedelta(minutes=30))
    for client, day, other in ((berlin, "2026-07-01", "2026-06-30"), (york, "2026-06-30", "2026-07-01")):
        for path, found in ((f"/sessions/?since={day}&until={day}", 1), (f"/sessions/?since={other}&until={other}", 0)):
            assert flat(client.get(path)).count(f'href="/sessions/{first.pk}/"') >= found
            assert (f'href="/sessions/{first.pk}/"' in flat(client.get(path))) == bool(found)


def test_history_and_its_download_take_the_same_days(berlin, york):
    berlin.post("/settings/notices/add/", {"kind": "webhook", "name": "on call", "url": "https://hooks.example/x"})
    assert "dded the webhook" in flat(berlin.get("/history/"))
    for client, day, other in ((berlin, "2026-07-01", "2026-06-30"), (york, "2026-06-30", "2026-07-01")):
        for query, found in ((f"since={day}&until={day}", True), (f"since={other}&until={other}", False)):
            assert ("dded the webhook" in flat(client.get(f"/history/?{query}"))) == found
            rows = client.get(f"/history.csv?{query}").getvalue().decode()
            assert ("added the webhook" in rows) == found
    (row,) = [row for row in csv.DictReader(io.StringIO(rows_of(berlin))) if "added the webhook" in row["what"]]
    assert row["at"] == "2026-06-30T23:30:00+00:00"


def rows_of(client):
    return client.get("/history.csv").getvalue().decode()


def test_days_that_are_counted_are_the_sites_for_everybody(berlin, york):
    quota_cast.attempt(quota_cast.job(NOW), NOW, cost_usd=0.07)
    for client in (berlin, york):
        table = client.get("/quota/costs/?days=1").context["days"]["rows"]
        assert [row["name"] for row in table] == ["30 Jun 2026"]
    with zones.reading(lambda: "Europe/Berlin"):
        assert timezone.localdate() == dt.date(2026, 6, 30)
        assert zones.today() == dt.date(2026, 7, 1)


def test_the_feed_says_until_when_in_the_zone_of_each_who_asks(berlin, york, settings):
    quota_cast.use(settings)
    quota_cast.quota(QuotaState.EXHAUSTED, reason=Reason.QUOTA_EXHAUSTED, until=NOW + dt.timedelta(hours=2))
    for _ in range(2):
        for client, words, at in ((berlin, "until 03:30 CEST", "01:30 CEST"), (york, "until 21:30 EDT", "19:30 EDT")):
            said = json.loads(client.get("/feed/").content)
            assert words in said["judge"]["words"]
            assert said["at"].endswith(at)


def test_lists_of_the_admin_are_in_the_readers_zone_and_forms_in_the_sites(site, berlin):
    session = site.session().session
    path = f"/grading/agent/{session.agent.pk}/change/"
    before = type(session.agent).objects.get().created_at
    assert "1:30 a.m." in flat(berlin.get("/grading/agent/")) or "01:30" in flat(berlin.get("/grading/agent/"))
    html = flat(berlin.get(path))
    assert "Times in this form are in UTC" in html
    assert type(session.agent).objects.get().created_at == before


def test_nothing_but_pages_is_in_somebodys_zone():
    assert zones.current() == timezone.get_default_timezone()
    with zones.reading(lambda: "Asia/Tokyo"):
        assert zones.abbreviation(NOW) == "JST"
        assert timezone.get_current_timezone() == timezone.get_default_timezone()
    filters = audit.HistoryFilters(since=dt.date(2026, 6, 30))
    assert filters.zone is None
