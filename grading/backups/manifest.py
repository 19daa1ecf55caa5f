"""The format of a backup: a folder named by its time, with a manifest that is written last.

    2026-03-31T02-30-00Z/
        manifest.json       what the backup holds; a folder without one is no backup
        SHA256SUMS          the checksums of the other files, as sha256sum reads them
        db.sqlite3          or database.dump, of PostgreSQL
        evidence/ab/ab….zst hard links into the previous backup, if that has the same file
        secrets/            the keys, unless they were left out

Until it is complete, the folder's name begins with `.unfinished-`.
"""

import datetime as dt
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FORMAT = 1
NAME = "%Y-%m-%dT%H-%M-%SZ"
MANIFEST, SUMS, SECRETS, EVIDENCE = "manifest.json", "SHA256SUMS", "secrets", "evidence"
DATABASES = {"sqlite": "db.sqlite3", "postgresql": "database.dump"}
UNFINISHED = ".unfinished-"
CHUNK = 1 << 20


class NoBackup(Exception):
    """The folder holds no finished backup. The message says what was expected and what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup holds.

    It has everything that the site received before `made_at`. `database` is sqlite or postgresql, `server` PostgreSQL's
    major version (0 for SQLite). `migrations` are (app, name), `rows` the number of rows by table, and `ledger` the
    ledger's `bandit.audit.fingerprint`. `lacking` are the hashes of evidence that the site had lost or damaged, `gone`
    those of evidence that was erased or expired while the backup was made. `sums` is the checksum of SHA256SUMS.
    """

    made_at: dt.datetime
    database: str
    server: int
    migrations: tuple[tuple[str, str], ...]
    rows: dict[str, int]
    ledger: str
    files: int
    secrets: tuple[str, ...]
    lacking: tuple[str, ...]
    gone: tuple[str, ...]
    sums: str

    def write(self, folder: Path) -> None:
        """Write the manifest durably, which makes the folder a backup."""
        text = json.dumps({"format": FORMAT, **asdict(self), "made_at": self.made_at.isoformat()}, indent=1)
        with (folder / MANIFEST).open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def read(folder: Path) -> Manifest:
    """The manifest of a finished backup. Raises NoBackup if the folder isn't one that this version can read."""
    if folder.name.startswith(UNFINISHED):
        raise NoBackup(f"{folder} was never finished: choose another backup")
    try:
        stored: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise NoBackup(f"expected a backup in {folder}; it has no {MANIFEST}") from None
    except ValueError as error:
        raise NoBackup(f"{folder / MANIFEST} cannot be read ({error}): choose another backup") from error
    if (number := stored.pop("format", None)) != FORMAT:
        raise NoBackup(f"expected a backup of format {FORMAT} in {folder}, found format {number}: use a newer version")
    try:
        lists = {name: tuple(stored[name]) for name in ("secrets", "lacking", "gone")}
        migrations = tuple((app, name) for app, name in stored["migrations"])
        made_at = dt.datetime.fromisoformat(stored["made_at"])
        return Manifest(**{**stored, **lists, "migrations": migrations, "made_at": made_at})
    except (KeyError, TypeError, ValueError) as error:
        raise NoBackup(f"{folder / MANIFEST} is not a valid manifest ({error!r}): choose another backup") from error


def finished(folder: Path) -> list[Path]:
    """The finished backups in a folder, oldest first."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in paths if moment_of(path) and (path / MANIFEST).is_file()]


def moment_of(path: Path) -> dt.datetime | None:
    """When a backup was made, as its name says; None for a folder with another name."""
    try:
        return dt.datetime.strptime(path.name, NAME).replace(tzinfo=dt.UTC)
    except ValueError:
        return None


def find(folder: Path) -> Path:
    """The folder itself if it is a backup, else the latest backup in it. Raises NoBackup."""
    if (folder / MANIFEST).is_file():
        return folder
    backups = finished(folder)
    if not backups:
        raise NoBackup(f"expected a backup, or a folder of backups; {folder} holds no finished one")
    return backups[-1]


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sums(folder: Path) -> Iterator[tuple[str, str]]:
    """(name, checksum) of each file of a backup, in the order in which they were written."""
    with (folder / SUMS).open() as file:
        for line in file:
            digest, _, name = line.rstrip("\n").partition("  ")
            yield name, digest
