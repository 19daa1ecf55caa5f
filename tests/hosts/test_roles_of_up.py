"""`manage.py up web|worker|beat`: one role of a site on several hosts; and each host's heartbeats."""

import datetime as dt
import os
import re
import signal
import subprocess
import sys

import httpx2
import pytest
from django.conf import settings as site_settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from grading.health import pulse, readiness
from grading.health.liveness import GRACE, SILENT, Component, Life, Liveness
from grading.models import Alarm, Heartbeat
from grading.monitoring import attending
from gradingsite.broker import free_port
from gradingsite.supervisor import die_with_parent
from tests import postgres
from tests.processes import wait_for

pytestmark = pytest.mark.django_db

ROLES = ("web", "worker", "beat")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="of SQLite")
@pytest.mark.parametrize("role", ROLES)
def test_a_role_needs_a_database_that_hosts_can_share(role):
    with pytest.raises(CommandError, match="PostgreSQL"):
        call_command("up", role)


@pytest.mark.postgresql
@pytest.mark.skipif(connection.vendor == "sqlite", reason="of PostgreSQL")
def test_a_role_needs_a_broker_that_hosts_can_share(monkeypatch):
    monkeypatch.delenv("REDIS_URL", raising=False)
    with pytest.raises(CommandError, match="REDIS_URL"):
        call_command("up", "worker")


def observe(liveness, second):
    liveness.observe(pulse.counts(), float(second), float(second))


def test_a_host_that_stops_is_missed_and_one_that_is_stopped_is_not(settings):
    liveness, alarm = Liveness(every=1.0), Alarm.objects.filter(rule="A46", resolved_at=None)
    hosts = {"alpha", "beta", "gamma"}
    for second in range(2 * GRACE):
        for settings.HOST_NAME in sorted(hosts):
            pulse.beat([Component.WEB, Component.WORKER, Component.SCHEDULER, Component.BROKER])
        observe(liveness, second)
    assert {liveness.life(part) for part in liveness.parts} == {Life.ALIVE}
    settings.HOST_NAME = "gamma"
    for part in Component:
        pulse.forget(part)
    for second in range(2 * GRACE, 2 * GRACE + 2 * SILENT):
        settings.HOST_NAME = "alpha"
        pulse.beat([Component.WEB, Component.WORKER, Component.SCHEDULER, Component.BROKER])
        observe(liveness, second)
    attending.update_attended_alarms(liveness)
    assert sorted(alarm.values_list("about", flat=True)) == ["scheduler@beta", "web@beta", "worker@beta"]
    assert "on beta has not responded" in alarm.get(about="web@beta").detail
    Heartbeat.objects.filter(host="beta").update(beat_at=timezone.now() - dt.timedelta(days=2))
    observe(liveness, 2 * GRACE + 2 * SILENT)
    attending.update_attended_alarms(liveness)
    assert not alarm.exists()


def test_metrics_name_the_host(settings):
    settings.HOST_NAME = "alpha"
    pulse.beat([Component.WORKER])
    assert 'program="worker"' in (text := readiness.metrics(timezone.now(), {}).decode())
    assert re.search(r'heartbeat_age_seconds\{.*host="alpha"', text)


def start(role, folder, **environment):
    """`manage.py up ROLE` with a state folder of its own; its output goes to `log` there."""
    folder.mkdir()
    with (folder / "log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, str(site_settings.BASE_DIR / "manage.py"), "up", role],
            env={**os.environ, "GRADINGSITE_STATE": str(folder / "state"), "HOST_NAME": folder.name, **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )


@pytest.mark.own_database
def test_three_hosts_make_one_site(tmp_path, redis_url):
    """A web host, a worker and a scheduler start at once on an empty database. One with other keys is refused."""
    with postgres.server() as database:
        port = free_port()
        shared = {
            "DATABASE_URL": database,
            "REDIS_URL": redis_url,
            "SECRET_KEY": "s" * 50,
            "CHANCE_KEY": "ab" * 32,
            "EVIDENCE": "database",
            "PORT": str(port),
            "WEB_CONCURRENCY": "1",
            "HEARTBEAT_SECONDS": "1",
            "ANTHROPIC_API_KEY": "",
        }
        running = [start(role, tmp_path / f"{role}-host", **shared) for role in ROLES]
        try:
            address = f"http://127.0.0.1:{port}"
            hosts = {f"{role}-host" for role in ROLES}
            wait_for(lambda: hosts <= {*re.findall(r'host="(.*?)"', read(f"{address}/metrics"))}, seconds=300)
            refused = start("worker", tmp_path / "stranger", **{**shared, "SECRET_KEY": "t" * 50})
            assert refused.wait(60) == 1
            assert "another SECRET_KEY than" in (tmp_path / "stranger" / "log").read_text()
            assert read(f"{address}/healthz/live")
        finally:
            for process in running:
                process.send_signal(signal.SIGTERM)
            for process in running:
                process.wait(30)
        logs = {role: (tmp_path / f"{role}-host" / "log").read_text() for role in ROLES}
        assert "password" in logs["web"]
        assert not any("FELL" in log for log in logs.values()), logs


def read(address):
    try:
        return httpx2.get(address, timeout=10).text
    except httpx2.TransportError:
        return ""
