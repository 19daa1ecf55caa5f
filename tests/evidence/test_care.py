"""Care for stored evidence: what was damaged is found and told, the same bytes heal it, and left-over files go."""

import datetime as dt
import io
import os
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.storage import default_storage
from django.db.models.signals import post_save

from grading.evidence import care, store
from grading.models import Alarm, BlobProblem
from grading.monitoring.rule import RULES
from grading.monitoring.watch import watch
from tests.site import NOON

pytestmark = pytest.mark.django_db

BYTES = b"what was done\n" * 5000


def kept(site, content=BYTES):
    """A stored file that a session's row refers to; its path."""
    row = site.session().with_file("journal", content).evidence
    return row, Path(default_storage.path(f"{row.sha256[:2]}/{row.sha256}.zst"))


def truncate(path):
    path.write_bytes(path.read_bytes()[:20])


def flip(path):
    held = bytearray(path.read_bytes())
    held[len(held) // 2] ^= 1
    path.write_bytes(held)


def every_night():
    for night in range(care.NIGHTS):
        care.check(NOON + dt.timedelta(days=night))


def test_bytes_that_come_again_while_they_expire_stay(site):
    """Another process may store them between the look at their age and the deletion."""
    row, path = kept(site)
    os.utime(path, (0, 0))

    def store_again(**_signal):
        store.store(io.BytesIO(BYTES))

    post_save.connect(store_again, sender=BlobProblem)
    try:
        assert not store.expire(row.sha256, before=time.time() - 60)
    finally:
        post_save.disconnect(store_again, sender=BlobProblem)
    assert store.is_kept(row.sha256)
    assert not BlobProblem.objects.exists()
    os.utime(path, (0, 0))
    assert store.expire(row.sha256, before=time.time() - 60)
    assert BlobProblem.objects.expired().get().pk == row.sha256


@pytest.mark.parametrize("spoil", [truncate, flip, Path.unlink])
def test_the_same_bytes_heal_what_was_damaged(site, spoil):
    row, path = kept(site)
    spoil(path)
    assert store.damage(row.sha256)
    store.store(io.BytesIO(BYTES))
    assert store.damage(row.sha256) == ""
    with store.open(row) as file:
        assert file.read() == BYTES


def test_bytes_that_are_fine_stay_as_they_were_compressed(site, monkeypatch):
    _row, path = kept(site)
    incoming = Path(settings.MEDIA_ROOT) / "incoming"
    before, waiting = path.read_bytes(), set(incoming.iterdir())
    monkeypatch.setattr(store, "COMPRESSION_LEVEL", 19)
    store.store(io.BytesIO(BYTES))
    assert path.read_bytes() == before
    assert set(incoming.iterdir()) == waiting


def test_a_damaged_file_is_an_alarm_until_the_same_bytes_come_again(site):
    """I67, checksums recorded and never compared: alarm (A48). Files are read and compared at night."""
    row, path = kept(site)
    every_night()
    assert not BlobProblem.objects.exists()
    truncate(path)
    every_night()
    assert BlobProblem.objects.damaged().get().pk == row.sha256
    watch()
    alarm = Alarm.objects.get(rule="A48")
    assert row.sha256[:12] in alarm.detail
    assert RULES["A48"].sessions("", NOON) == (row.session_id,)
    store.store(io.BytesIO(BYTES))
    care.recheck_damaged()
    watch(alarm.opened_at + dt.timedelta(minutes=2))
    assert Alarm.objects.get(rule="A48").resolved_at is not None


def test_each_night_reads_its_share_and_all_is_read_once_in_thirty(site):
    rows = [kept(site, bytes([number]) * 10)[0].sha256 for number in range(60)]
    nights = [{each for each in rows if int(each[:8], 16) % care.NIGHTS == night} for night in range(care.NIGHTS)]
    assert sum(map(len, nights)) == 60
    assert max(map(len, nights)) < 15


def test_files_on_their_way_in_go_once_nobody_writes_to_them():
    folders = [Path(settings.MEDIA_ROOT) / "incoming", Path(settings.TEMP_DIR)]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        for name, age in (("left", 2 * care.LEFTOVER_SECONDS), ("going", 10)):
            (folder / name).write_bytes(b"x")
            os.utime(folder / name, (time.time() - age,) * 2)
    care.delete_leftovers()
    for folder in folders:
        assert not (folder / "left").exists()
        assert (folder / "going").exists()
        (folder / "going").unlink()
