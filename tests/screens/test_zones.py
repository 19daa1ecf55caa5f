"""Pages show times and take dates in the site's zone; downloads stay in UTC."""

import csv
import datetime as dt
import io
import json

import pytest
import time_machine
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from grading.models import AuditEvent
from grading.models.quota import QuotaState
from grading.vocabulary import Reason
from tests.casts import quota as quota_cast
from tests.casts.page import flat
from tests.databases import database

pytestmark = pytest.mark.django_db

# 23:30 in UTC: 01:30 of the next day in Berlin, 19:30 of the same in New York.
NOW = dt.datetime(2026, 6, 30, 23, 30, tzinfo=dt.UTC)
# What SITE_TIME_ZONE sets, the day that it is then, and the day that it isn't.
ZONES = (("Europe/Berlin", "2026-07-01", "2026-06-30"), ("America/New_York", "2026-06-30", "2026-07-01"))


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def olga(site, client):
    client.force_login(site.person("olga", "operator"))
    return client


def test_pages_are_in_the_sites_zone(site, olga, settings):
    session = site.session(ended_at=NOW - dt.timedelta(hours=2)).session
    for zone, words in (("UTC", "21:30 UTC"), ("Europe/Berlin", "23:30 CEST"), ("America/New_York", "17:30 EDT")):
        settings.TIME_ZONE = zone
        html = flat(olga.get(f"/sessions/{session.pk}/"))
        assert f"30 Jun, {words}" in html
        assert f"Times are in {zone}" in html


def test_dates_are_days_of_the_sites_zone(site, olga, settings):
    session = site.session(ended_at=NOW - dt.timedelta(minutes=30)).session
    for zone, day, other in ZONES:
        settings.TIME_ZONE = zone
        for query, is_listed in ((f"since={day}&until={day}", True), (f"since={other}&until={other}", False)):
            assert (f'href="/sessions/{session.pk}/"' in flat(olga.get(f"/sessions/?{query}"))) == is_listed


def test_history_and_its_download_take_the_same_days(olga, settings):
    olga.post("/settings/notices/add/", {"kind": "webhook", "name": "on call", "url": "https://hooks.example/x"})
    for zone, day, other in ZONES:
        settings.TIME_ZONE = zone
        for query, is_listed in ((f"since={day}&until={day}", True), (f"since={other}&until={other}", False)):
            assert ("dded the webhook" in flat(olga.get(f"/history/?{query}"))) == is_listed
            assert ("added the webhook" in download(olga, query)) == is_listed
    (row,) = [row for row in csv.DictReader(io.StringIO(download(olga))) if "added the webhook" in row["what"]]
    assert row["at"] == "2026-06-30T23:30:00+00:00"


def download(client, query=""):
    return client.get(f"/history.csv?{query}").getvalue().decode()


def test_the_feed_says_until_when_in_the_sites_zone(olga, settings):
    quota_cast.use(settings)
    quota_cast.quota(QuotaState.EXHAUSTED, reason=Reason.QUOTA_EXHAUSTED, until=NOW + dt.timedelta(hours=2))
    for zone, words, at in (
        ("Europe/Berlin", "until 03:30 CEST", "01:30 CEST"),
        ("America/New_York", "until 21:30 EDT", "19:30 EDT"),
    ):
        settings.TIME_ZONE = zone
        body = json.loads(olga.get("/feed/").content)
        assert words in body["judge"]["text"]
        assert body["at"].endswith(at)


def test_lists_and_forms_of_the_admin_are_in_the_sites_zone(site, olga, settings):
    settings.TIME_ZONE = "Europe/Berlin"
    agent = site.session().session.agent
    assert "1 Jul 2026, 1:30 a.m." in flat(olga.get("/grading/agent/"))
    assert "Times are in Europe/Berlin" in flat(olga.get(f"/grading/agent/{agent.pk}/change/"))


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_history_keeps_the_zones_that_people_had_chosen(tmp_path):
    with database("zones", tmp_path):
        executor = MigrationExecutor(connection)
        others = [node for node in executor.loader.graph.leaf_nodes() if node[0] != "grading"]
        old = executor.migrate([("grading", "0072_delete_hidden_checklist"), *others]).apps
        vera = old.get_model("auth", "User").objects.create(username="vera")
        old.get_model("grading", "PersonZone").objects.create(user=vera, zone="Asia/Kolkata")
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
        events = list(AuditEvent.objects.values_list("kind", "who", "what"))
    assert events == [("person", "vera", "read times in Asia/Kolkata before the upgrade")]
