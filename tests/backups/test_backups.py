"""One backup: what is in it, what it says of damage, and what it is not."""

import datetime as dt
import io
import json
import shutil
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection

from grading.backups import making, manifest
from grading.backups.manifest import NoBackup
from grading.intake import erased
from grading.intake.erasing import erase
from grading.models import BlobProblem, Evidence, Session
from tests.backups.places import binaries
from tests.casts import logs

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def programs(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "evidence"
    if connection.vendor == "postgresql":
        settings.PG_BIN = str(binaries())


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "backups"


def backup(folder: Path, *options: str) -> tuple[Path, str]:
    """Make one; where it is, and what was said."""
    said = io.StringIO()
    call_command("backup", str(folder), *options, stdout=said)
    return manifest.find(folder), said.getvalue()


def verify(*backup: Path) -> str:
    """What is wrong, in words."""
    said = io.StringIO()
    try:
        call_command("verify", *map(str, backup), stdout=io.StringIO(), stderr=said, verbosity=0)
    except CommandError:
        assert said.getvalue()
    return said.getvalue()


def blob_of(session: Session) -> Path:
    sha256 = session.evidence.get(kind="transcript").sha256
    return Path(default_storage.path(f"{sha256[:2]}/{sha256}.zst"))


def inside(backup: Path, blob: Path) -> Path:
    return backup / "evidence" / blob.parent.name / blob.name


def test_what_has_not_changed_is_linked_to_the_backup_before(site, folder):
    first = site.upload("s-1", logs.claude("s-1", logs.COMMIT)).session
    before, _ = backup(folder)
    site.upload("s-2", logs.claude("s-2", logs.COMMIT))
    after, said = backup(folder)
    same = [inside(each, blob_of(first)).stat().st_ino for each in (before, after)]
    assert same[0] == same[1]
    assert same[0] != blob_of(first).stat().st_ino  # what damages the site's own file leaves the backup alone
    assert "linked to the backup before" in said
    assert verify(before) == verify(after) == ""


def test_it_is_for_its_owner_alone_and_says_what_to_mind(site, folder):
    site.upload("s-1", logs.claude("s-1", logs.COMMIT))
    made, said = backup(folder)
    assert [path for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077] == []
    assert (made / "secrets" / "chance.key").read_bytes() == bytes(range(32))
    for words in ("holds the site's keys", "on the same disk", "SECRET_KEY is not in it"):
        assert words in said


def test_the_keys_can_be_left_out(folder):
    made, said = backup(folder, "--without-secrets")
    assert not (made / "secrets").exists()
    assert manifest.read(made).secrets == ()
    assert "holds the site's keys" not in said


def test_one_that_was_not_finished_is_none(site, folder):
    """A process that was killed left it."""
    site.upload("s-1", logs.claude("s-1", logs.COMMIT))
    made, _ = backup(folder)
    draft = folder / f".unfinished-{made.name}"
    made.rename(draft)
    with pytest.raises(NoBackup, match="holds no finished one"):
        manifest.find(folder)
    with pytest.raises(NoBackup, match="was never finished"):
        manifest.read(draft)
    (draft / manifest.MANIFEST).unlink()
    draft.rename(made)
    with pytest.raises(NoBackup, match="holds no finished one"):
        manifest.find(folder)
    shutil.rmtree(made)
    (folder / ".unfinished-2026-03-31T02-30-00Z").mkdir()
    backup(folder)
    assert list(folder.glob(".unfinished-*")) == []


@pytest.mark.parametrize("what", ["database", "evidence", "missing", "list"])
def test_a_damaged_backup_says_so(site, folder, what):
    session = site.upload("s-1", logs.claude("s-1", logs.COMMIT)).session
    made, _ = backup(folder)
    path = {
        "database": made / manifest.DATABASES[connection.vendor],
        "list": made / manifest.SUMS,
    }.get(what, inside(made, blob_of(session)))
    if what == "missing":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    assert path.name in verify(made)


def test_a_file_that_the_site_has_lost_is_taken_from_the_backup_before(site, folder):
    session = site.upload("s-1", logs.claude("s-1", logs.COMMIT)).session
    backup(folder)
    blob_of(session).unlink()
    assert "is missing from the evidence folder" in verify()
    made, said = backup(folder)
    assert "lost on the site, and taken from the backup before" in said
    assert inside(made, blob_of(session)).exists()
    assert verify(made) == ""


def test_a_file_that_is_damaged_on_the_site_is_not_taken_for_whole(site, folder):
    session = site.upload("s-1", logs.claude("s-1", logs.COMMIT)).session
    blob = blob_of(session)
    blob.write_bytes(blob.read_bytes()[:100])
    assert blob.name[:12] in verify()
    made, said = backup(folder)
    assert "lost or damaged on the site" in said
    assert manifest.read(made).lacking == (blob.name.partition(".")[0],)
    assert not inside(made, blob).exists()


def test_evidence_that_has_expired_is_no_problem(site, folder):
    session = site.upload("s-1", logs.claude("s-1", logs.COMMIT)).session
    blob = blob_of(session)
    BlobProblem.objects.create(sha256=blob.name.partition(".")[0], kind="expired")
    blob.unlink()
    made, said = backup(folder)
    assert "lost on the site" not in said
    assert "lost or damaged" not in said
    assert verify() == verify(made) == ""


def test_what_was_erased_is_told_beside_the_backups_without_its_name(site, folder, settings):
    settings.BACKUP_DIR = folder
    site.upload("s-1", logs.claude("s-1", logs.COMMIT))
    backup(folder)
    erase(Session.objects.all(), who="olga", why="asked for")
    (line,) = (folder / "erasures.jsonl").read_text().splitlines()
    assert len(json.loads(line)["digests"]) == 1
    assert "s-1" not in line
    backup(folder)
    assert (folder / "erasures.jsonl").read_text().splitlines() == [line]


def test_an_erasure_after_a_line_that_a_crash_cut_off_is_recorded(tmp_path):
    (tmp_path / erased.FILE).write_text('{"at": "2026-')
    erasure = erased.Erased(at=dt.datetime(2026, 7, 1, tzinfo=dt.UTC), digests=("a" * 64,))
    erased.append([erasure], tmp_path)
    erased.append([erasure], tmp_path)
    assert erased.read(tmp_path) == [erasure]


def test_a_bucket_that_somebody_changed_is_found(site):
    site.upload("s-1", logs.claude("s-1", logs.COMMIT))
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE bandit_bucket SET n = n + 1, s = 0, q = 0 WHERE id = (SELECT min(id) FROM bandit_bucket)"
        )
    assert "a bucket is not the ledger's sum" in verify()


def test_another_major_version_of_pg_dump_is_refused_in_words(folder, settings, tmp_path):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite needs no such program")
    settings.PG_BIN = str(tmp_path)
    (tmp_path / "pg_dump").write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 15.18'\n")
    (tmp_path / "pg_dump").chmod(0o700)
    with pytest.raises(CommandError, match=r"expected pg_dump of PostgreSQL 18, as the server is; .* is of 15"):
        backup(folder)
    assert [path.name for path in folder.iterdir() if path.is_dir()] == []


def test_two_backups_at_once_do_not_mix(folder):
    from grading.backups.making import alone

    folder.mkdir()
    with alone(folder), pytest.raises(CommandError, match="another backup is being made"):
        backup(folder)


def test_a_backup_every_night_needs_the_setting(folder, settings):
    settings.BACKUP_DIR = folder
    making.at_night()
    assert not folder.exists()
    settings.BACKUP_NIGHTLY = True
    making.at_night()
    assert manifest.find(folder)


def test_the_moment_is_before_what_it_holds(folder):
    before = dt.datetime.now(dt.UTC)
    made, _ = backup(folder)
    assert before <= manifest.read(made).made_at
    assert Evidence.objects.count() == 0
