"""Erasing an agent: nothing of it is left in any file of the site, and nobody else notices."""

import datetime as dt
import json
import sqlite3
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from django.conf import settings as site_settings
from django.core.management import CommandError, call_command
from django.utils import timezone

from bandit.models import Bucket, Erasure, Grader, LedgerEntry, Selection
from bandit.selection import select
from grading.access.recording import record
from grading.backups import upgrading
from grading.evidence import store
from grading.models import Agent, ApiToken, AuditEvent, Evidence, Session
from grading.models.audit import AuditKind
from tests.backups.places import binaries
from tests.corpus import transcripts as logs
from tests.template_database import copy_sqlite

pytestmark = pytest.mark.django_db(transaction=True)  # the files are put in order outside of any

# 500 of them leave as little; that takes minutes.
SESSIONS = "60"
ENDED = dt.datetime(2026, 3, 31, 11, 0, 30, tzinfo=dt.UTC)


def submitted(site, agent: str, number: int, words: str = "plain"):
    name = f"{words}-id-{number}"
    patch = f"--- /dev/null\n+++ b/{words}-path-{number}.py\n@@ -0,0 +1 @@\n+x = '{words}-patch'\n"
    journal = BytesIO(f"{words}-journal {number}. Submitted a pull request. ".encode() * 4)
    journal.name = f"{words}-file.md"
    log = logs.log(name, ("user", f"{words}-task {number}"), ("Bash", {"command": "ls"}, "a b"))
    said = {"title": f"{words}-title {number}", "ended_at": ENDED, "category": "code"}
    return site.upload(name, log, journal=journal, patch=patch, agent=agent, **said).session


def buckets() -> list[tuple[object, ...]]:
    rows = Bucket.objects.order_by(
        "bandit", "arm", "effective_day", "grader__agent", "grader__source", "grader__version"
    )
    return list(rows.values_list("bandit", "arm", "effective_day", "grader__agent", "grader__source", "n", "s", "q"))


def test_an_agent_leaves_nothing_behind_and_moves_nobody_else(site):
    submitted(site, "alice", 1)
    before = buckets()
    for number in range(3):
        submitted(site, "zyxbob", number, "zyxword")
    agent = Agent.objects.get(name="zyxbob")
    ApiToken.objects.issue(agent, note="zyxword-note")
    record(AuditKind.TOKEN, "made a token for zyxbob", who="olga")
    select(bandit="category", decision_id="zyxword-d", supply=None, agent="zyxbob", now=timezone.now())
    assert LedgerEntry.objects.count() > len(before)
    call_command("erase_agent", "zyxbob", "--yes", "--why", "zyxbob asked for it")
    assert buckets() == before
    assert not Agent.objects.filter(name="zyxbob").exists()
    assert not Session.objects.filter(agent__name="zyxbob").exists()
    assert not Grader.objects.filter(agent="zyxbob").exists()
    assert not Selection.objects.filter(agent="zyxbob").exists()
    assert not AuditEvent.objects.filter(what__contains="zyxbob").exists()
    assert not any("zyx" in str(row) for row in Erasure.objects.values())
    call_command("audit_ledger")


def test_another_agents_bytes_that_are_the_same_stay(site):
    kept = submitted(site, "alice", 1)
    row = kept.evidence.get(kind="journal")
    other = site.session(agent="bob").session
    Evidence.objects.create(session=other, kind="journal", sha256=row.sha256, size=row.size)
    call_command("erase_agent", "bob", "--yes")
    assert store.is_kept(row.sha256)


def test_nothing_is_erased_unasked(site):
    session = submitted(site, "bob", 1)
    with pytest.raises(CommandError, match="nothing was erased"):
        call_command("erase_agent", "bob")
    with pytest.raises(CommandError, match="unknown are nobody"):
        call_command("erase_session", "bob", "nobody", "--yes")
    call_command("erase_session", "bob", session.external_id, "--yes")
    assert not Session.objects.exists()
    assert Agent.objects.filter(name="bob").exists()


@pytest.fixture
def upgrade_copy(site, settings, tmp_path) -> Path:
    """The folder of a copy that an upgrade made of the database, with a session of bob's in it."""
    settings.STATE_DIR, settings.PG_BIN = tmp_path, str(binaries())
    submitted(site, "bob", 1)
    return upgrading.copy_database(tmp_path / upgrading.COPIES / "grading-0099_columns").parent


ERASURES = (("erase_agent", "bob"), ("erase_session", "bob", "plain-id-1"))


@pytest.mark.parametrize("command", ERASURES)
def test_erasure_names_the_copies_that_upgrades_made(command, upgrade_copy, capsys):
    """Before it asks and at its end, with their dates and how to delete them."""
    made = f"{upgrade_copy} (made {dt.datetime.now(dt.UTC):%Y-%m-%d}"
    with pytest.raises(CommandError, match="nothing was erased"):
        call_command(*command)
    assert made in capsys.readouterr().out
    call_command(*command, "--yes")
    before, after = capsys.readouterr().out.split("\nErased: ")
    assert made in before
    assert made in after
    assert f"rm -r {upgrade_copy}" in after
    assert upgrade_copy.is_dir()


@pytest.mark.parametrize("command", ERASURES)
def test_erasure_deletes_the_copies_only_if_asked_to_and_confirmed(command, upgrade_copy, capsys):
    with pytest.raises(CommandError, match="nothing was erased"):
        call_command(*command, "--delete-upgrade-copies")
    assert "To be deleted with it: copies" in capsys.readouterr().out
    assert upgrade_copy.is_dir()
    call_command(*command, "--delete-upgrade-copies", "--yes")
    assert f"Deleted: {upgrade_copy}" in capsys.readouterr().out
    assert not upgrade_copy.exists()


def test_erasure_of_a_site_that_was_never_upgraded_says_nothing_of_copies(site, settings, tmp_path, capsys):
    settings.STATE_DIR = tmp_path
    submitted(site, "bob", 1)
    call_command("erase_agent", "bob", "--yes", "--delete-upgrade-copies")
    assert "upgrade" not in capsys.readouterr().out


def test_an_export_holds_everything_and_is_for_its_owner_alone(site, tmp_path):
    session = submitted(site, "bob", 1, "zyxword")
    submitted(site, "alice", 1, "others")
    _row, secret = ApiToken.objects.issue(session.agent)
    file = tmp_path / "bob.zip"
    call_command("export_agent", "bob", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(file) as archive:
        (row,) = json.loads(archive.read("rows/session.json"))
        assert row["title"] == "zyxword-title 1"
        for table in ("grade", "settlement", "evidence", "ledgerentry", "apitoken", "submission"):
            assert f"rows/{table}.json" in archive.namelist()
        everything = b"".join(archive.read(name) for name in archive.namelist())
    assert b"zyxword-journal 1" in everything
    assert b"others" not in everything
    assert ApiToken.objects.get().digest.encode() not in everything
    assert secret.encode() not in everything
    with pytest.raises(CommandError, match="path of a new file"):
        call_command("export_agent", "bob", str(file))


SCRIPT = """
import django, sys
django.setup()
from io import BytesIO
from django.core.management import call_command
from grading.models import Agent
from tests.intake.test_forgetting import submitted
from tests.site import Site
site = Site()
Agent.objects.create(name="alice"); Agent.objects.create(name="zyxbob")
submitted(site, "alice", 1)
from grading.evidence import transcripts
from grading.models import Evidence
for number in range(int(sys.argv[1])):
    submitted(site, "zyxbob", number, "zyxword")
for row in Evidence.objects.filter(kind="transcript")[:20]:
    transcripts.page(row, 1)
call_command("erase_agent", "zyxbob", "--yes", "--why", "zyxbob")
"""


@pytest.mark.own_database
def test_no_byte_of_it_is_left_in_the_sites_folder(tmp_path, django_db_setup):
    """In a process of its own, on SQLite's real file; the second chunk of sessions too."""
    (tmp_path / "state").mkdir(mode=0o700)
    copy_sqlite(tmp_path / "state" / "db.sqlite3")
    environment = {
        "GRADINGSITE_STATE": str(tmp_path / "state"),
        "DJANGO_SETTINGS_MODULE": "gradingsite.settings",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "LOG_LEVEL": "ERROR",
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(site_settings.BASE_DIR),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, SESSIONS],
        env=environment,
        cwd=site_settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = [path for path in Path(tmp_path / "state").rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert "zyx" not in path.name
        assert b"zyx" not in path.read_bytes(), path
    with sqlite3.connect(tmp_path / "state" / "db.sqlite3") as database:
        assert database.execute("SELECT count(*) FROM grading_session").fetchone() == (1,)
