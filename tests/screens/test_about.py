"""About: the version, what is new, what it runs on, whether an upgrade is pending, and a report without secrets."""

import tomllib

import pytest
from django.conf import settings as site_settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from grading.health import pulse
from grading.health.liveness import Component
from grading.screens.about import view as about
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

PAGE = "/settings/about/"


@pytest.fixture
def vera(site, client):
    client.force_login(site.person("vera", "viewer"))
    return client


def test_it_says_the_version_and_what_is_new_in_it(vera):
    project = tomllib.loads((site_settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    html = flat(vera.get(PAGE))
    assert f"gradingsite {project['version']}" in html
    assert f"version {project['version']}" in flat(vera.get("/settings/"))
    assert f'<p class="news">{project["version"]}' in html
    lines = about.latest_changes().splitlines()
    assert lines[1:] == (site_settings.BASE_DIR / "CHANGELOG.md").read_text().splitlines()[3 : 2 + len(lines)]
    assert lines[-1].startswith("- ")


def test_it_says_what_it_runs_on(vera):
    html = flat(vera.get(PAGE))
    engine = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[connection.vendor]
    assert f"{engine} {connection.get_database_version()[0]}." in html
    found = about.packages()
    assert "missing" not in found.values()
    assert {"Django", "celery", "anthropic"} <= set(found)


def test_a_database_of_another_version_is_told(vera):
    assert "No migrations are pending." in flat(vera.get(PAGE))
    recorder = MigrationRecorder(connection)
    recorder.record_applied("grading", "9999_from_the_future")
    html = flat(vera.get(PAGE))
    assert "A newer version of gradingsite has used this database" in html
    assert "grading.9999_from_the_future" in html
    recorder.record_unapplied("grading", "9999_from_the_future")
    latest = about._upgrade().latest["grading"]
    recorder.record_unapplied("grading", latest)
    html = flat(vera.get(PAGE))
    assert "needs this version’s migrations" in html
    assert f"grading.{latest}" in html


def test_the_report_holds_no_secret_address_path_or_name(vera, settings):
    settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "sk-ant-s3cret", "https://gateway.private.example"
    settings.NOTIFY_WEBHOOK, settings.NOTIFY_EMAIL = "https://hooks.private.example/t0ken", ["ops@private.example"]
    settings.SITE_URL, settings.EMAIL_HOST = "https://grades.private.example", "mail.private.example"
    report = vera.get(PAGE).context["report"]
    assert "judge: claude" in report
    assert "0 channels typed in the browser, 2 from the environment" in report
    for secret in (
        "s3cret",
        "private.example",
        "t0ken",
        "vera",
        str(site_settings.BASE_DIR),
        str(site_settings.STATE_DIR),
    ):
        assert secret not in report
    for line in report.splitlines():
        assert line.partition(": ")[2], f"“{line}” says nothing"


def test_every_document_can_be_read_and_nothing_else(vera):
    for name, (path, _about) in about.DOCUMENTS.items():
        text = (site_settings.BASE_DIR / path).read_text()
        response = vera.get(f"{PAGE}{name}/")
        assert response.context["text"] == text
    assert vera.get(f"{PAGE}settings/").status_code == 404


def test_it_lists_the_programs_of_each_host_with_their_latest_heartbeat(vera, settings):
    assert "No programs yet. Each running program sends a heartbeat" in flat(vera.get(PAGE))
    for settings.HOST_NAME in ("alpha", "beta"):
        pulse.beat([Component.WEB, Component.WORKER])
    html = flat(vera.get(PAGE))
    assert [html.count(f">{name}</td>") for name in ("web", "worker", "alpha", "beta")] == [2, 2, 2, 2]
