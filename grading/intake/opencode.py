"""Exports the sessions of OpenCode's storage as files of their own, in the form of `opencode export`.

OpenCode keeps all its sessions in one SQLite database, and before version 1.2 in a folder `storage` with a file for
each session, message and part of a message. Neither is ever written to.
"""

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

logger = logging.getLogger(__name__)

SQLITE = b"SQLite format 3\x00"
TABLES = frozenset({"session", "message", "part"})
# The columns of a session, by the names that they have in an export.
SESSION_COLUMNS = {
    "id": "id",
    "projectID": "project_id",
    "parentID": "parent_id",
    "slug": "slug",
    "directory": "directory",
    "title": "title",
    "version": "version",
}
BUSY_SECONDS = 10
SIDE_FILES = ("-wal", "-shm")
MAX_PART_BYTES = 32 * 1024 * 1024


def export_sessions(files: Iterable[Path], folder: Path) -> tuple[list[Path], set[Path]]:
    """Write each session of OpenCode's storage among `files` into a file in `folder`.

    Returns the new files, and those of `files` that are parts of the storage.
    """
    exports: list[Path] = []
    sources: set[Path] = set()
    listed = list(files)
    for number, path in enumerate(listed):
        target = folder / str(number)
        if _is_database(path):
            exports += _export_database(path, target)
            sources |= {path, *(path.with_name(path.name + suffix) for suffix in SIDE_FILES)}
        elif storage := _storage_of(path):
            sources.add(path)
            info = _load(path) if path.parent.parent == storage / "session" else {}
            if isinstance(info.get("id"), str):
                target.mkdir()
                export = target / f"{_safe_name(info['id'])}.json"
                _write(export, info, _stored_messages(storage, info["id"]))
                exports.append(export)
    return exports, sources


def _storage_of(path: Path) -> Path | None:
    """The folder `storage` that a session's, message's or part's file is in; None if it is no such file."""
    if path.suffix != ".json":
        return None
    for folder in path.parents:
        if folder.name == "storage" and (folder / "session").is_dir() and (folder / "message").is_dir():
            return folder
    return None


def _is_database(path: Path) -> bool:
    """Whether a file is a database with OpenCode's tables."""
    with suppress(OSError, sqlite3.Error):
        with path.open("rb") as file:
            if file.read(len(SQLITE)) != SQLITE:
                return False
        with closing(_open_read_only(path)) as database:
            rows = database.execute("select name from sqlite_master where type = 'table'")
            return {name for (name,) in rows} >= TABLES
    return False


def _open_read_only(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing, also not beside the database.

    Opening a database in WAL mode creates its side files if they are missing. They are only missing when nobody has it
    open, and then it may be read as a file that doesn't change.
    """
    is_in_use = path.with_name(path.name + "-wal").exists()
    address = f"file:{quote(str(path.resolve()))}?mode=ro{'' if is_in_use else '&immutable=1'}"
    return sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS)


def _export_database(path: Path, target: Path) -> Iterator[Path]:
    """Export each session of a database, from a copy that SQLite's backup made of it."""
    target.mkdir()
    try:
        with TemporaryDirectory() as scratch, closing(sqlite3.connect(Path(scratch) / "copy.db")) as copy:
            with closing(_open_read_only(path)) as database:
                database.backup(copy)
            copy.row_factory = sqlite3.Row
            for row in copy.execute("select * from session order by id").fetchall():
                export = target / f"{_safe_name(str(row['id']))}.json"
                columns = row.keys()
                info = {name: row[column] for name, column in SESSION_COLUMNS.items() if column in columns}
                times = [name for name in ("created", "updated") if f"time_{name}" in columns]
                info["time"] = {name: row[f"time_{name}"] for name in times}
                _write(export, info, _database_messages(copy, str(row["id"])))
                yield export
    except sqlite3.Error as error:
        logger.warning("%s could not be read: %s", path, error)


def _database_messages(copy: sqlite3.Connection, session: str) -> Iterator[dict[str, Any]]:
    """The messages of a session with their parts, in order."""
    messages = "select id, data from message where session_id = ? order by time_created, id"
    for message_id, data in copy.execute(messages, [session]).fetchall():
        parts = copy.execute("select id, data from part where message_id = ? order by id", [message_id])
        yield {
            "info": {**_object(data), "id": message_id, "sessionID": session},
            "parts": [
                {**_object(part), "id": part_id, "sessionID": session, "messageID": message_id}
                for part_id, part in parts
            ],
        }


def _stored_messages(storage: Path, session: str) -> Iterator[dict[str, Any]]:
    """The messages of a session with their parts, in order."""
    messages = [_load(path) for path in _regular_files(storage / "message" / _safe_name(session))]
    for message in sorted(messages, key=_created):
        parts = _regular_files(storage / "part" / _safe_name(str(message.get("id"))))
        yield {"info": message, "parts": [_load(path) for path in parts]}


def _created(message: dict[str, Any]) -> tuple[float, str]:
    time = message.get("time")
    created = time.get("created") if isinstance(time, dict) else None
    return created if isinstance(created, int | float) else 0, str(message.get("id"))


def _regular_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.json") if path.is_file() and not path.is_symlink())


def _load(path: Path) -> dict[str, Any]:
    """The object in a file; an empty one if it can't be read."""
    with suppress(OSError, ValueError, RecursionError):
        if path.stat().st_size <= MAX_PART_BYTES:
            return _object(path.read_bytes())
    return {}


def _object(source: str | bytes) -> dict[str, Any]:
    """The JSON object in a text; an empty one if it is none."""
    with suppress(ValueError, TypeError, RecursionError):
        value = json.loads(source)
        if isinstance(value, dict):
            return value
    return {}


def _safe_name(identity: str) -> str:
    """A file's name from an id, which a log may have chosen."""
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in identity)[:120] or "session"


def _write(path: Path, info: dict[str, Any], messages: Iterable[dict[str, Any]]) -> None:
    """Write a session, one message at a time. The same session always gives the same bytes."""
    # SQLite columns may contain a BLOB, whatever their declared type.
    dump = partial(json.dumps, default=partial(bytes.decode, errors="replace"))
    with path.open("w", encoding="utf-8", errors="replace") as file:
        file.write('{"info": ' + dump(info) + ',\n"messages": [')
        for number, message in enumerate(messages):
            file.write((",\n" if number else "\n") + dump(message))
        file.write("\n]}\n")
