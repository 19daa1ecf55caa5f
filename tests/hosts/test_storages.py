"""Evidence in files, in the database and in a bucket: the same to everybody who reads and writes it."""

import io
import time
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from django.utils import timezone

from grading.busy import StorageAway
from grading.evidence import care, store
from grading.models import BlobProblem, Evidence, Session
from gradingsite.broker import free_port
from gradingsite.evidence import evidence_storage
from tests.api.test_api import Caller, assert_explained
from tests.casts import logs
from tests.hosts.conftest import BUCKET

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]

PLACES = ("files", "database", BUCKET)
BYTES = b"what was done\n" * 5000


@pytest.fixture(params=PLACES)
def place(request, bucket, evidence_in):
    return evidence_in(request.param)


def stored_row(site, content=BYTES):
    return site.session().with_file("journal", content).evidence


def content(place, name):
    with place.open(name) as file:
        return file.read()


def test_what_was_stored_is_read(site, place):
    row = stored_row(site)
    assert place.exists(store.blob_name(row.sha256))
    assert store.open(row).read() == BYTES
    assert store.damage(row.sha256) == ""
    assert store.listed(row.sha256[:2]) == {row.sha256: [store.blob_name(row.sha256)]}


def test_storing_the_same_again_changes_nothing_and_replaces_what_is_damaged(site, place):
    row = stored_row(site)
    name = store.blob_name(row.sha256)
    before = content(place, name)
    assert store.store(io.BytesIO(BYTES)).sha256 == row.sha256
    assert content(place, name) == before
    place.delete(name)
    place.save(name, ContentFile(b"something else"))
    assert store.damage(row.sha256)
    store.store(io.BytesIO(BYTES))
    assert store.open(row).read() == BYTES


def test_a_missing_blob_is_found_and_names_its_session(site, place):
    row = stored_row(site)
    place.delete(store.blob_name(row.sha256))
    with pytest.raises(store.Damaged):
        store.open(row)
    care.check_blob(row.sha256, timezone.now())
    assert BlobProblem.objects.damaged().get().what == "missing"
    store.store(io.BytesIO(BYTES))
    care.recheck_damaged()
    assert not BlobProblem.objects.exists()


def test_retention_deletes_old_bytes_and_spares_those_stored_again(site, place):
    row = stored_row(site)
    assert not store.expire(row.sha256, before=time.time() - 3600)
    assert not BlobProblem.objects.exists()
    assert store.expire(row.sha256, before=time.time() + 3600)
    assert BlobProblem.objects.expired().get().pk == row.sha256
    with pytest.raises(store.Gone):
        store.open(row)
    assert not store.expire(row.sha256, before=time.time() + 3600)
    assert BlobProblem.objects.expired().count() == 1


def test_derived_data_lies_beside_the_blob_and_goes_with_it(place):
    stored = store.store(io.BytesIO(BYTES))
    row = Evidence(kind="journal", sha256=stored.sha256, size=stored.size)
    store.keep_derived(row, "records-1", b"records")
    store.keep_derived(row, "records-1", b"newer records")
    assert store.derived(row, "records-1") == b"newer records"
    assert store.derived_before(row, "records") == b"newer records"
    assert store.discard(row.sha256)
    assert store.listed(row.sha256[:2]) == {}


def test_an_upload_is_graded(site, place):
    receipt = site.upload("s-1", logs.claude("s-1", logs.COMMIT), ended_at=timezone.now())
    assert receipt.problems == ()
    assert receipt.session.artifacts.filter(kind="commit").exists()


def test_a_server_that_is_away_damages_nothing(site, bucket, evidence_in, settings):
    evidence_in(BUCKET)
    row = stored_row(site)
    settings.EVIDENCE_ENDPOINT = f"http://127.0.0.1:{free_port()}"
    evidence_in(BUCKET)
    with pytest.raises(StorageAway):
        store.open(row)
    with pytest.raises(StorageAway):
        care.check_blob(row.sha256, timezone.now())
    assert not BlobProblem.objects.exists()


def test_an_upload_without_the_server_is_answered_503_and_stores_nothing(bucket, evidence_in, settings):
    settings.EVIDENCE_ENDPOINT = f"http://127.0.0.1:{free_port()}"
    evidence_in(BUCKET)
    reply = Caller().submit(transcript=logs.claude("71a3"))
    assert_explained(reply, 503)
    assert reply.headers["Retry-After"] == "30"
    assert not Session.objects.exists()


def test_a_bucket_that_is_not_there_is_no_missing_blob(bucket, evidence_in):
    storage = evidence_in("s3://another-bucket")
    with pytest.raises(StorageAway):
        store.store(io.BytesIO(BYTES))
    with pytest.raises(StorageAway, match="no bucket another-bucket"):
        storage.require()
    evidence_in(BUCKET).require()


@pytest.mark.pure
@pytest.mark.parametrize("value", ["", "s3://", "s3:/bucket", "folder", "FILES", "http://bucket"])
def test_other_places_are_refused(value):
    with pytest.raises(ImproperlyConfigured, match="files, database or s3://bucket/folder"):
        evidence_storage(value)


@pytest.mark.parametrize(("source", "target"), [("files", BUCKET), (BUCKET, "database"), ("database", "files")])
def test_evidence_is_copied_and_the_site_goes_on_with_the_copy(site, bucket, evidence_in, capsys, source, target):
    evidence_in(source)
    rows = [stored_row(site, b"%d" % number + BYTES) for number in range(12)]
    store.keep_derived(rows[0], "records-1", b"records")
    call_command("move_evidence", target, verbosity=0)
    assert "13 files copied" in capsys.readouterr().out
    call_command("move_evidence", target, verbosity=0)
    assert "0 files copied" in capsys.readouterr().out
    evidence_in(target)
    assert [store.damage(row.sha256) for row in rows] == [""] * 12
    assert store.derived(rows[0], "records-1") == b"records"


def test_damaged_and_missing_blobs_are_named_and_not_copied(site, bucket, evidence_in):
    files = evidence_in("files")
    intact, damaged, missing = (stored_row(site, b"%d" % number + BYTES) for number in range(3))
    Path(files.path(store.blob_name(damaged.sha256))).write_bytes(b"nothing")
    files.delete(store.blob_name(missing.sha256))
    with pytest.raises(CommandError, match="2 blobs are missing or damaged"):
        call_command("move_evidence", BUCKET, verbosity=0)
    bucket_storage = evidence_in(BUCKET)
    copied = [bucket_storage.exists(store.blob_name(row.sha256)) for row in (intact, damaged, missing)]
    assert copied == [True, False, False]


def test_a_place_cannot_be_copied_to_itself(site, evidence_in):
    evidence_in("files")
    with pytest.raises(CommandError, match="--from"):
        call_command("move_evidence", "files", verbosity=0)
