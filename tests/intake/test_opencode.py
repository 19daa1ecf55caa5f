"""OpenCode's storage: a database in WAL mode, which is never written to, and the older folder of small files."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.core.management import call_command

from grading.intake.opencode import export_sessions
from grading.models import Session

LOGS = Path(__file__).parents[1] / "formats" / "opencode" / "logs"
LOG = json.loads((LOGS / "ses_333bf5e9fffedlqBAp5tEmkuCF.json").read_text())
for number, part in enumerate(part for message in LOG["messages"] for part in message["parts"]):
    part["id"] = f"prt_{number:05}"  # some are redacted in the published log, and so the same
TABLES = """
create table session (id text primary key, project_id text, parent_id text, slug text, directory text, title text,
    version text, time_created integer, time_updated integer);
create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
create table part (id text primary key, message_id text, session_id text, time_created integer, data text);
"""


@contextmanager
def opencode(path: Path, *session_ids: str) -> Iterator[None]:
    """OpenCode running with a database in WAL mode, of which the sessions are still in the WAL."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("pragma wal_autocheckpoint = 0")
        database.executescript(TABLES)
        for session_id in session_ids:
            insert(database, session_id)
        yield


def insert(database: sqlite3.Connection, session_id: str) -> None:
    info, created = LOG["info"], LOG["info"]["time"]["created"]
    values = (session_id, "p", None, "slug", info["directory"], info["title"], info["version"], created, created)
    database.execute("insert into session values (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    for message in LOG["messages"]:
        data = {name: value for name, value in message["info"].items() if name not in ("id", "sessionID")}
        message_id, at = f"{session_id}-{message['info']['id']}", data["time"]["created"]
        values = (message_id, session_id, at, at, json.dumps(data))
        database.execute("insert into message values (?, ?, ?, ?, ?)", values)
        for part in message["parts"]:
            data = {name: value for name, value in part.items() if name not in ("id", "sessionID", "messageID")}
            values = (f"{session_id}-{part['id']}", message_id, session_id, at, json.dumps(data))
            database.execute("insert into part values (?, ?, ?, ?, ?)", values)


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The name, bytes and change time of each file in a folder."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def exported(path: Path, folder: Path) -> list[dict]:
    folder.mkdir(exist_ok=True)
    exports, sources = export_sessions([path], folder)
    assert path in sources
    return [json.loads(export.read_text()) for export in exports]


def test_database_in_use_is_read_with_its_wal(tmp_path):
    path = tmp_path / "data" / "opencode.db"
    path.parent.mkdir()
    with opencode(path, "ses_a", "ses_b"):
        before = contents(path.parent)
        first, second = exported(path, tmp_path / "out")
        assert {name: value[0] for name, value in contents(path.parent).items() if not name.endswith("-shm")} == {
            name: value[0] for name, value in before.items() if not name.endswith("-shm")
        }
    assert [first["info"]["id"], second["info"]["id"]] == ["ses_a", "ses_b"]
    assert [len(message["parts"]) for message in first["messages"]] == [len(row["parts"]) for row in LOG["messages"]]


def test_blob_in_a_text_column_is_exported_as_text(tmp_path):
    path = tmp_path / "opencode.db"
    with opencode(path, "ses_a"), closing(sqlite3.connect(path)) as database:
        database.execute("update session set title = ?", [b"a title\xff"])
        database.commit()
        (export,) = exported(path, tmp_path / "out")
    assert export["info"]["title"] == "a title\ufffd"


def test_database_that_nobody_has_open_stays_untouched(tmp_path):
    path = tmp_path / "data" / "opencode.db"
    path.parent.mkdir()
    with opencode(path, "ses_a"):
        pass
    assert [each.name for each in path.parent.iterdir()] == ["opencode.db"]
    before = contents(path.parent)
    assert len(exported(path, tmp_path / "out")) == 1
    assert contents(path.parent) == before


def test_other_databases_are_no_storage(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as database:
        database.execute("create table session (id text)")
    assert export_sessions([tmp_path / "other.db"], tmp_path) == ([], set())


def test_damaged_database_gives_no_sessions(tmp_path):
    path = tmp_path / "opencode.db"
    with opencode(path, "ses_a"):
        pass
    data = bytearray(path.read_bytes())
    data[5000:] = b"\xff" * (len(data) - 5000)
    path.write_bytes(bytes(data))
    folder = tmp_path / "out"
    folder.mkdir()
    exports, _ = export_sessions([path], folder)
    assert all(json.loads(export.read_text())["info"] for export in exports)


def store_files(storage: Path) -> list[Path]:
    """A session as OpenCode kept it before version 1.2."""
    session_id = LOG["info"]["id"]
    files = {storage / "session" / "p" / f"{session_id}.json": LOG["info"]}
    for message in LOG["messages"]:
        message_id = message["info"]["id"]
        files[storage / "message" / session_id / f"{message_id}.json"] = message["info"]
        for part in message["parts"]:
            files[storage / "part" / message_id / f"{part['id']}.json"] = part
    for path, value in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    return list(files)


def test_a_message_with_an_impossible_time_stops_nothing(tmp_path):
    files = store_files(tmp_path / "storage")
    message = next(path for path in files if path.parent.parent.name == "message")
    message.write_text(json.dumps({**json.loads(message.read_text()), "time": {"created": 10**400}}))
    exports, _parts = export_sessions(files, tmp_path)
    assert exports


def test_older_storage_is_put_together(tmp_path):
    files = store_files(tmp_path / "storage")
    folder = tmp_path / "out"
    folder.mkdir()
    (export,), sources = export_sessions(files, folder)
    assert json.loads(export.read_text()) == LOG
    assert sources == set(files)


@pytest.mark.django_db
def test_import_takes_in_each_session_once(tmp_path, capsys):
    """A second import finds the same bytes, although they were exported again."""
    with opencode(tmp_path / "opencode.db", "ses_a", "ses_b"):
        call_command("import_sessions", str(tmp_path), processes=1)
        assert "2  imported" in capsys.readouterr().out
        call_command("import_sessions", str(tmp_path), processes=1)
    assert "2  " in capsys.readouterr().out
    sessions = Session.objects.order_by("external_id")
    assert [session.external_id for session in sessions] == ["ses_a", "ses_b"]
    assert {session.harness.name for session in sessions} == {"opencode"}
    assert all(session.cost_usd for session in sessions)
