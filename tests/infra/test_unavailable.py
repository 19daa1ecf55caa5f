"""A database that is away and a disk that is full are told as such, to people and to programs: never as a bug."""

import errno
import os
import sqlite3
import subprocess
import sys

import httpx2
import psycopg
import pytest
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from grading import busy
from grading.busy import Unavailable
from gradingsite import broker
from tests.casts.page import flat
from tests.processes import started, wait_for
from tests.site import Site


def caused(kind, cause):
    error = kind(str(cause))
    error.__cause__ = cause
    return error


def sqlite(code):
    error = sqlite3.OperationalError("said")
    error.sqlite_errorcode = code
    return caused(OperationalError, error)


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (sqlite(sqlite3.SQLITE_BUSY), Unavailable.BUSY),
        (sqlite(sqlite3.SQLITE_FULL), Unavailable.FULL),
        (sqlite(sqlite3.SQLITE_IOERR_WRITE), Unavailable.FULL),
        (sqlite(sqlite3.SQLITE_CANTOPEN), Unavailable.AWAY),
        (sqlite(sqlite3.SQLITE_ERROR), None),
        (caused(OperationalError, psycopg.errors.DiskFull("no space")), Unavailable.FULL),
        (caused(OperationalError, psycopg.errors.AdminShutdown("bye")), Unavailable.AWAY),
        (caused(OperationalError, psycopg.errors.DeadlockDetected("two")), Unavailable.BUSY),
        (caused(OperationalError, psycopg.OperationalError("connection refused")), Unavailable.AWAY),
        (caused(InterfaceError, psycopg.InterfaceError("the connection is closed")), Unavailable.AWAY),
        (caused(DatabaseError, psycopg.errors.UndefinedTable("no such table")), None),
        (InterfaceError("a cursor of ours"), None),
        (OSError(errno.ENOSPC, "No space left on device"), Unavailable.FULL),
        (OSError(errno.ENOENT, "no such file"), None),
        (ValueError("a bug"), None),
    ],
)
def test_what_is_in_the_way_is_told_from_a_bug(error, found):
    assert busy.trouble(error) is found


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="a limit of SQLite's")
def test_a_full_disk_is_said_in_words_and_nothing_is_half_saved(client):
    client.force_login(Site().person("omar", "operator"))
    client.raise_request_exception = False
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")  # what other tests left free would be room
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count={pages}")
        try:
            said = {"agent": "carol", "note": "y" * 90}
            replies = [client.post("/connect/", {**said, "agent": f"carol{n}"}) for n in range(100)]
        finally:
            cursor.execute("PRAGMA max_page_count=1073741823")
    refused = next(reply for reply in replies if reply.status_code >= 500)
    assert (refused.status_code, refused["Retry-After"]) == (503, "60")
    assert "The disk is full" in flat(refused)


@pytest.mark.worker
def test_a_database_that_is_away_is_a_503_for_pages_and_programs(tmp_path):
    port = str(broker.free_port())
    away = {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none", "GRADINGSITE_STATE": str(tmp_path), "PORT": port}
    command = [sys.executable, "-m", "gradingsite.web"]
    with (
        started(command, env={**os.environ, **away}, stderr=subprocess.DEVNULL),
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client,
    ):

        def answers():
            try:
                return client.get("/nowhere/").status_code
            except httpx2.TransportError:
                return False

        wait_for(answers)
        reply = client.get("/", headers={"Cookie": f"sessionid_{port}=abcdefghijklmnop"})
        assert (reply.status_code, reply.headers["Retry-After"]) == (503, "10")
        assert "The database does not answer" in reply.text
        token = {"Authorization": "Bearer gs_" + "x" * 40}
        files = {"journal": ("journal.md", b"# x\n")}
        for reply in (
            client.get("/api/v1/sessions/x", headers=token),
            client.post("/api/v1/sessions", headers=token, files=files),
        ):
            assert (reply.status_code, reply.headers["Retry-After"]) == (503, "10")
            assert reply.json()["error"] == "away"


@pytest.mark.parametrize("command", ["verify", "backup", "rebuild"])
def test_a_command_says_in_words_that_the_database_is_away(tmp_path, command):
    url = f"postgres://somebody@127.0.0.1:{broker.free_port()}/site"
    environment = os.environ | {"GRADINGSITE_STATE": str(tmp_path), "DATABASE_URL": url}
    words = [sys.executable, "manage.py", command, *[str(tmp_path / "backups")] * (command == "backup")]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "The database is away: " in ended.stderr
    assert "See whether it runs" in ended.stderr
    assert "Traceback" not in ended.stderr
