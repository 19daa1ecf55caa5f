"""What each host does for itself: its leftovers, its indexes, its disk and its backups."""

import datetime as dt
import io
import os
import time

import pytest
from django.utils import timezone

from grading import housekeeping
from grading.backups import manifest
from grading.evidence import care, store, transcripts
from grading.health import periodic, pulse, readiness
from grading.health.liveness import Component
from grading.intake import erased
from grading.intake.erasing import erase
from grading.models import Alarm, Heartbeat, PeriodicJob, Session
from grading.monitoring.rule import RULES
from grading.monitoring.watch import watch
from tests.backups.places import binaries
from tests.casts import logs
from tests.processes import wait_for
from tests.site import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]

DAY = dt.timedelta(days=1)


@pytest.fixture
def on_host(settings, tmp_path, evidence_in):
    """A function that continues this process on the host with this name, which has a state folder of its own."""
    evidence_in("database")

    def switch(name):
        state = tmp_path / name
        settings.HOST_NAME = name
        settings.TEMP_DIR, settings.MEDIA_ROOT = state / "tmp", state / "evidence"
        settings.TRANSCRIPT_CACHE = state / "cache"
        settings.TEMP_DIR.mkdir(parents=True, exist_ok=True)
        pulse.beat([Component.WEB, Component.WORKER])
        return state

    return switch


def test_each_host_deletes_what_its_own_dead_processes_left(on_host):
    leftovers = [on_host(host) / "tmp" / "left" for host in ("alpha", "beta")]
    for path in leftovers:
        path.write_bytes(b"x")
        os.utime(path, (time.time() - 2 * care.LEFTOVER_SECONDS,) * 2)
    on_host("alpha")
    housekeeping.run_due("tidy")
    assert [path.exists() for path in leftovers] == [False, True]
    on_host("beta")
    housekeeping.run_due("tidy")
    assert [path.exists() for path in leftovers] == [False, False]
    assert set(PeriodicJob.objects.values_list("name", "host", "turns")) == {("tidy", "alpha", 1), ("tidy", "beta", 1)}


def index(host_state):
    return sorted(path.name for path in (host_state / "cache").glob("*/*"))


def test_each_host_deletes_its_indexes_of_erased_logs(site, on_host, django_capture_on_commit_callbacks):
    rows = [site.session().with_file("transcript", logs.worked(name)).evidence for name in ("one", "two")]
    states = [on_host(host) for host in ("alpha", "beta")]
    for host in ("alpha", "beta"):
        on_host(host)
        for row in rows:
            assert transcripts.build(row) == ""
    with django_capture_on_commit_callbacks(execute=True):
        erase(Session.objects.filter(pk=rows[0].session_id), who="ada", why="test")
    assert [len(index(state)) for state in states] == [2, 1], "the host of the erasure deletes its index at once"
    on_host("alpha")
    housekeeping.run_due("tidy")
    assert [len(index(state)) for state in states] == [1, 1]
    assert rows[1].sha256 in index(states[0])[0]


def test_an_index_of_a_log_that_expired_goes_unless_the_log_came_again(site, on_host):
    log = logs.worked("one")
    row = site.session().with_file("transcript", log).evidence
    state = on_host("alpha")
    transcripts.build(row)
    assert store.expire(row.sha256, before=time.time() + 60)
    store.store(io.BytesIO(log))
    assert care.delete_stale_indexes() == 0
    assert store.expire(row.sha256, before=time.time() + 60)
    assert care.delete_stale_indexes() == 1
    assert index(state) == []


def test_an_erasure_is_recorded_beside_the_backups_of_another_host(site, on_host, settings, tmp_path):
    session = site.session().session
    on_host("alpha")
    erase(Session.objects.filter(pk=session.pk), who="ada", why="test")
    on_host("beta")
    settings.BACKUP_DIR = tmp_path / "backups"
    settings.BACKUP_DIR.mkdir()
    housekeeping.run_due("tidy")
    assert erased.read(settings.BACKUP_DIR) == erased.recorded() != []


def test_a_full_disk_is_an_alarm_about_its_host(on_host, settings):
    for host, floor in (("alpha", 0), ("beta", 2**60)):
        settings.FREE_SPACE_FLOOR = floor
        on_host(host)
    settings.FREE_SPACE_FLOOR = 0
    on_host("alpha")
    now = timezone.now()
    watch(now)
    alarm = Alarm.objects.get(rule="A43")
    assert alarm.about == "beta"
    assert "state folder of beta" in alarm.detail
    figures = readiness.metrics(now, {}).decode()
    assert f'gradingsite_disk_floor_bytes{{host="beta"}} {float(2**60)}' in figures
    assert 'gradingsite_disk_floor_bytes{host="alpha"} 0.0' in figures
    on_host("beta")
    watch(now + RULES["A43"].every)
    alarm.refresh_from_db()
    assert alarm.resolved_at is not None


@pytest.mark.django_db(transaction=True)
def test_the_nightly_backup_is_made_on_the_hosts_that_have_the_setting(on_host, settings, tmp_path):
    settings.PG_BIN = str(binaries())
    worker, web = (housekeeping.Housekeeping(is_worker=is_worker) for is_worker in (True, False))
    on_host("beta")
    assert worker.jobs == ["tidy"]
    settings.BACKUP_DIR, settings.BACKUP_NIGHTLY = tmp_path / "backups", True
    on_host("alpha")
    assert (worker.jobs, web.jobs) == (["tidy", "backup"], ["tidy"])
    for _check in range(2):
        housekeeping.run_due(*worker.jobs)
    assert len(manifest.finished(settings.BACKUP_DIR)) == 1
    assert PeriodicJob.objects.get(name="backup").key == "backup@alpha"


def test_backups_are_missed_until_another_host_makes_them(on_host):
    on_host("alpha")
    PeriodicJob.objects.create(name="backup", host="alpha", started_at=NOON, ended_at=NOON)
    Heartbeat.objects.update(beat_at=NOON + 2 * DAY)
    assert [row.key for row in periodic.missed(NOON + 2 * DAY)] == ["backup@alpha"]
    assert [row.key for row in periodic.missed(NOON + 4 * DAY)] == ["backup@alpha"], "although the host is gone"
    on_host("beta")
    later = NOON + 4 * DAY
    PeriodicJob.objects.create(name="backup", host="beta", started_at=later, ended_at=later)
    Heartbeat.objects.filter(host="beta").update(beat_at=later)
    assert periodic.missed(later) == []


def test_nobody_misses_the_backups_of_a_host_that_makes_none(on_host, settings):
    on_host("alpha")
    for host in ("alpha", "beta"):
        PeriodicJob.objects.create(name="backup", host=host, ended_at=NOON)
    settings.BACKUP_NIGHTLY = False
    housekeeping.forget_backups()
    assert PeriodicJob.objects.get().host == "beta"


@pytest.mark.django_db(transaction=True)
def test_the_thread_of_a_program_runs_what_is_due(on_host, monkeypatch):
    monkeypatch.setattr(housekeeping, "CHECK_SECONDS", 0.01)
    on_host("alpha")
    thread = housekeeping.Housekeeping(is_worker=False)
    thread.start()
    try:
        wait_for(PeriodicJob.objects.filter(name="tidy", host="alpha", turns=1, error="").exists)
    finally:
        thread.ends.set()
        thread.join()
