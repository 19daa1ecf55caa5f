"""Evidence bytes: by hash, compressed, bounded, and checked when they are read."""

import hashlib
import io
import tracemalloc
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.storage import default_storage

from grading.evidence import store
from grading.models import Evidence


class Endless:
    """A stream of `size` bytes that never exists as a whole."""

    def __init__(self, size: int) -> None:
        self.left = size

    def read(self, size: int = -1) -> bytes:
        count = min(self.left, size)
        self.left -= count
        return b"log line\n" * (count // 9) + b"x" * (count % 9)


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def kept(data: bytes) -> Evidence:
    stored = store.store(io.BytesIO(data))
    return Evidence(kind="transcript", sha256=stored.sha256, size=stored.size)


def blob(row: Evidence) -> Path:
    return Path(default_storage.path(f"{row.sha256[:2]}/{row.sha256}.zst"))


def test_what_was_stored_comes_back():
    row = kept(b"hello\n" * 1000)
    assert (row.sha256, row.size) == (hashlib.sha256(b"hello\n" * 1000).hexdigest(), 6000)
    assert store.open(row).read() == b"hello\n" * 1000
    assert blob(row).stat().st_size < 100


def test_the_same_bytes_are_stored_once(folder):
    kept(b"same")
    kept(b"same")
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 1


def test_an_empty_file_can_be_stored():
    assert store.open(kept(b"")).read() == b""


def test_too_much_is_refused_while_reading_and_leaves_nothing(folder, settings):
    settings.EVIDENCE_MAX_BYTES = 5 * 2**20
    stream = Endless(10**12)
    with pytest.raises(store.TooLarge, match="at most 5,242,880 bytes"):
        store.store(stream)
    assert stream.left > 10**12 - 8 * 2**20
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_a_large_file_takes_little_memory():
    tracemalloc.start()
    stored = store.store(Endless(60 * 2**20))
    with store.open(Evidence(kind="transcript", sha256=stored.sha256, size=stored.size)) as file:
        while file.read(65_536):
            pass
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stored.size == 60 * 2**20
    assert peak < 12 * 2**20


@pytest.mark.parametrize("harm", [lambda data: data[:-5], lambda data: b"garbage" + data, lambda _data: b""])
def test_a_damaged_blob_is_never_read_as_evidence(harm):
    row = kept(b"important\n" * 500)
    blob(row).write_bytes(harm(blob(row).read_bytes()))
    with pytest.raises(store.Damaged, match="restore it from a backup"), store.open(row) as file:
        file.read()


@pytest.mark.parametrize("harm", [lambda data: data[:-5], lambda data: b"garbage" + data, lambda _data: b""])
def test_damaged_derived_data_are_derived_again(harm):
    row = kept(b"hello")
    store.keep_derived(row, "records-1", b"records" * 100)
    assert store.derived(row, "records-1") == b"records" * 100
    file = blob(row).with_name(f"{row.sha256}.records-1.zst")
    file.write_bytes(harm(file.read_bytes()))
    assert store.derived(row, "records-1") is None


def test_other_bytes_under_the_same_name_are_noticed():
    row, other = kept(b"mine"), kept(b"meant")
    blob(row).write_bytes(blob(other).read_bytes())
    with pytest.raises(store.Damaged, match="is not what was stored"):
        store.open(row).read()


def test_a_blob_that_is_larger_than_its_row_says_is_not_read_to_its_end():
    row, large = kept(b"mine"), store.store(Endless(60 * 2**20))
    blob(row).write_bytes(blob(Evidence(kind="transcript", sha256=large.sha256, size=large.size)).read_bytes())
    tracemalloc.start()
    with pytest.raises(store.Damaged, match="is not what was stored"):
        store.open(row)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * 2**20


@pytest.mark.django_db
def test_a_missing_blob_is_said_in_words():
    row = kept(b"gone")
    blob(row).unlink()
    with pytest.raises(store.Damaged, match="missing from the evidence folder"):
        store.open(row)


@pytest.mark.django_db
def test_a_blob_is_only_discarded_when_no_row_needs_it(site):
    row = kept(b"needed")
    row.session = site.session().session
    row.save()
    assert not store.discard(row.sha256)
    assert store.discard(kept(b"orphan").sha256)
    assert blob(row).exists()


def test_the_limit_is_a_setting():
    assert settings.EVIDENCE_MAX_BYTES == 256 * 2**20
