"""Reading logs in place: nothing is copied, a second reading is incremental, and no log can stop the others."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from grading.evidence import in_place, store
from grading.intake import erasing
from grading.models import Evidence, ImportedFile, LogInPlace, Repository, Session
from grading.models.imports import Fate
from grading.review import corrections
from grading.trial import keeping, reading
from tests.outcomes.repos import Repo
from tests.processes import wait_for
from tests.trial.homes import SAMPLES, make_home

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(tmp_path, settings):
    """A store of evidence of the test's own."""
    settings.MEDIA_ROOT = tmp_path / "evidence"
    return settings.MEDIA_ROOT


@pytest.fixture
def logs(tmp_path):
    return make_home(tmp_path / "home")


def read(home: Path, **options) -> reading.ReadingProgress:
    progress = reading.ReadingProgress()
    reading.read_logs([home], progress, **options)
    return progress


def copies(folder: Path) -> list[str]:
    """The blobs in the store, without the data derived from logs."""
    return [path.name for path in folder.rglob("*.zst") if path.name.count(".") == 1]


def row_of(log: Path) -> Evidence:
    latest = LogInPlace.objects.filter(path=str(log)).order_by("-size")[0]
    return Evidence.objects.get(sha256=latest.pk)


def text_of(row: Evidence) -> bytes:
    with store.open(row) as file:
        return file.read()


def test_commits_are_looked_up_while_the_trial_runs(settings, tmp_path, monkeypatch):
    """No worker does it, as on a normal site."""
    settings.STATE_DIR = tmp_path / "state"
    monkeypatch.setattr(reading, "FOLLOW_SECONDS", 0.01)
    monkeypatch.setattr(reading, "STOP", threading.Event())
    Repository.objects.create(name="engine", url=str(Repo(tmp_path / "engine").folder))
    thread = threading.Thread(target=reading.follow_in_thread)
    thread.start()
    try:
        wait_for(Repository.objects.filter(first_fetched_at__isnull=False).exists)
    finally:
        reading.STOP.set()
        thread.join()


def test_logs_are_read_in_place_and_not_copied(folder, logs, tmp_path):
    progress = read(tmp_path / "home")
    assert progress.fates == {Fate.IMPORTED: len(SAMPLES)}
    assert copies(folder) == []
    for log in logs:
        assert text_of(row_of(log)) == log.read_bytes()
        assert store.is_kept(row_of(log).sha256)


def test_the_latest_log_is_read_first(folder, logs, tmp_path):
    for age, log in enumerate(logs):
        os.utime(log, (2_000_000_000 - age, 2_000_000_000 - age))
    read(tmp_path / "home")
    paths = ImportedFile.objects.order_by("pk").values_list("path", flat=True)
    assert list(paths) == [str(log) for log in logs]


def test_a_second_reading_reads_only_what_is_new_and_keeps_corrections(folder, logs, tmp_path, admin_user):
    read(tmp_path / "home")
    log = next(each for each in logs if ".claude" in each.parts)
    session = row_of(log).session
    corrections.record_correction(session, admin_user, value=0.7, reason="I looked at it myself")
    more = log.with_name("more.jsonl")
    more.write_bytes(log.read_bytes().replace(session.external_id.encode(), b"0" * len(session.external_id)))
    progress = read(tmp_path / "home")
    assert (progress.unchanged, progress.total) == (len(logs), len(logs) + 1)
    assert progress.fates == {Fate.IMPORTED: 1}
    session.refresh_from_db()
    assert session.reward_value == pytest.approx(0.7)


def test_a_log_that_is_being_written_is_read_up_to_a_moment_and_stays_readable(folder, logs, tmp_path):
    log = next(each for each in logs if ".claude" in each.parts)
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) // 2])  # in the middle of a line
    read(tmp_path / "home")
    row = row_of(log)
    log.write_bytes(whole)
    assert text_of(row) == whole[: len(whole) // 2]
    progress = read(tmp_path / "home")
    assert progress.fates == {Fate.ADDED: 1}
    assert text_of(row_of(log)) == whole
    assert row_of(log).session == row.session


@pytest.mark.parametrize("change", ["deleted", "rewritten", "cut"])
def test_a_log_that_its_harness_takes_away_is_gone_and_its_figures_stay(folder, logs, tmp_path, change):
    read(tmp_path / "home")
    row = row_of(logs[0])
    match change:
        case "deleted":
            logs[0].unlink()
        case "rewritten":
            logs[0].write_bytes(b"x" * row.size)
        case "cut":
            logs[0].write_bytes(b"")
    with pytest.raises(store.Gone, match="its harness has deleted or rewritten"):
        text_of(row)
    assert Session.objects.filter(pk=row.session_id).exists()


def test_damaged_and_huge_files_stop_nothing(folder, logs, tmp_path, settings):
    odd = logs[0].parent
    (odd / "empty.jsonl").touch()
    (odd / "binary.jsonl").write_bytes(bytes(range(256)) * 1000)
    (odd / "torn.jsonl").write_bytes(logs[0].read_bytes()[:700])
    (odd / "deep.jsonl").write_bytes(b'{"type":"user","message":' + b"[" * 100_000)
    (odd / "loop.jsonl").symlink_to(odd / "loop.jsonl")
    os.mkfifo(odd / "pipe.jsonl")
    with (odd / "huge.jsonl").open("wb") as file:
        file.write(logs[0].read_bytes())
        file.truncate(settings.EVIDENCE_MAX_BYTES + 1)  # takes no room on disk
    progress = read(tmp_path / "home")
    assert progress.fates[Fate.IMPORTED] >= len(logs)
    huge = ImportedFile.objects.get(path=str(odd / "huge.jsonl"))
    assert (huge.fate, huge.why) == (Fate.REFUSED, "files that are too large")


def test_a_log_whose_path_cannot_be_stored_is_copied(folder, logs, tmp_path):
    """A folder named in Latin-1."""
    renamed = tmp_path / os.fsdecode(b"h\xe9")
    (tmp_path / "home").rename(renamed)
    assert read(renamed).fates[Fate.IMPORTED]
    assert not LogInPlace.objects.exists()
    assert text_of(Evidence.objects.order_by("pk")[0])


def test_a_link_out_of_the_folder_is_not_followed(folder, logs, tmp_path):
    outside = tmp_path / "private.jsonl"
    shutil.move(logs[0], outside)
    logs[0].symlink_to(outside)
    read(tmp_path / "home")
    assert not LogInPlace.objects.filter(path=str(logs[0])).exists()


def test_an_erased_session_does_not_come_back(folder, logs, tmp_path):
    read(tmp_path / "home")
    row = row_of(logs[0])
    name = row.session.external_id
    erasing.erase(Session.objects.filter(pk=row.session_id), who="you", why="private")
    assert not LogInPlace.objects.filter(pk=row.sha256).exists()
    assert logs[0].exists()  # it is the harness's
    read(tmp_path / "home")
    assert not Session.objects.filter(external_id=name).exists()
    assert ImportedFile.objects.filter(why="logs of sessions that were erased here").count() == 1


def test_reading_stops_when_asked_and_goes_on_later(folder, logs, tmp_path):
    reading.STOP.set()
    try:
        progress = read(tmp_path / "home")
    finally:
        reading.STOP.clear()
    assert progress.done == 0
    assert "Start it again" in progress.stopped
    assert read(tmp_path / "home").done == len(logs)


# --- keeping ---------------------------------------------------------------------------------------------------------


def test_kept_logs_are_copies_that_no_agent_can_rewrite(folder, logs, tmp_path):
    read(tmp_path / "home")
    originals = {log: (row_of(log), log.read_bytes()) for log in logs}
    assert keeping.keep_logs() == 0
    assert not LogInPlace.objects.exists()
    inodes = {path.stat().st_ino for path in folder.rglob("*") if path.is_file()}
    for log, (row, text) in originals.items():
        assert log.stat().st_ino not in inodes
        log.write_bytes(b"rewritten")
        assert text_of(row) == text


def test_keeping_says_how_many_logs_are_gone(folder, logs, tmp_path):
    read(tmp_path / "home")
    row = row_of(logs[0])
    logs[0].unlink()
    logs[1].write_bytes(b"rewritten by its harness")
    assert keeping.keep_logs() == 2
    with pytest.raises(store.Gone):
        text_of(row)
    assert len(copies(folder)) == len(logs) - 2


def test_retention_and_erasure_reach_the_copies(folder, logs, tmp_path, settings):
    from django.utils import timezone

    from grading.evidence import care

    read(tmp_path / "home")
    rows = [row_of(log) for log in logs]
    keeping.keep_logs()
    erasing.erase(Session.objects.filter(pk=rows[0].session_id), who="you", why="private")
    assert f"{rows[0].sha256}.zst" not in copies(folder)
    settings.RETENTION_DAYS = 30
    for path in folder.rglob("*.zst"):
        os.utime(path, (0, 0))
    care.expire(timezone.now() + timezone.timedelta(days=31))
    assert copies(folder) == []


def test_a_log_in_place_stays_known_after_it_was_kept(folder, logs, tmp_path):
    read(tmp_path / "home")
    keeping.keep_logs()
    progress = read(tmp_path / "home")
    assert progress.fates == {Fate.THERE: len(logs)}
    assert not LogInPlace.objects.exists()
    assert Session.objects.count() == len({row.session_id for row in Evidence.objects.all()})
    assert not in_place.exists("0" * 64)
