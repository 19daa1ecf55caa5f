"""Records of erasures: digests by which a restored backup is cleared of what was erased, without any names.

Each erasure stores them in its row, and in a file beside the backups, which outlives the database.
"""

import datetime as dt
import hashlib
import json
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from bandit.models import Erasure

logger = logging.getLogger(__name__)

FILE = "erasures.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """One erasure: its time, and the digests of the erased sessions and agents."""

    at: dt.datetime
    digests: tuple[str, ...]


def session_digest(agent: str, external_id: str) -> str:
    return hashlib.sha256(f"session\0{agent}\0{external_id}".encode()).hexdigest()


def agent_digest(name: str) -> str:
    return hashlib.sha256(f"agent\0{name}".encode()).hexdigest()


def recorded() -> list[Erased]:
    """The erasures that are recorded in this database."""
    rows = Erasure.objects.exclude(digests=None).exclude(closed_at=None).order_by("pk")
    return [Erased(at=row.opened_at, digests=tuple(row.digests)) for row in rows if row.digests]


def is_erased(agent: str, external_id: str) -> bool:
    """Whether a session of that id was ever erased here."""
    digest = session_digest(agent, external_id)
    rows = Erasure.objects.exclude(digests=None).only("digests")
    return any(digest in (row.digests or ()) for row in rows.iterator())


def read(folder: Path) -> list[Erased]:
    """The erasures recorded in a folder of backups. An unreadable line, such as a last one that was cut off, is skipped
    with a warning: the erasure's row in the database has these digests too.
    """
    try:
        return _parse((folder / FILE).read_text(), folder / FILE)
    except FileNotFoundError:
        return []


def _parse(text: str, path: Path) -> list[Erased]:
    erasures = []
    for line in text.splitlines():
        try:
            data = json.loads(line)
            erasures.append(Erased(at=dt.datetime.fromisoformat(data["at"]), digests=tuple(data["digests"])))
        except (ValueError, KeyError, TypeError):
            logger.warning("%s has an unreadable line: %.80r", path, line)
    return erasures


def append(erasures: Iterable[Erased], folder: Path) -> None:
    """Add erasures to those recorded in a folder of backups, each once."""
    path = folder / FILE
    with path.open("a+") as file:
        file.seek(0)
        text_before = file.read()
        recorded_before = set(_parse(text_before, path))
        if text_before and not text_before.endswith("\n"):  # a crash cut off the last line
            file.write("\n")
        for each in erasures:
            if each not in recorded_before:
                file.write(json.dumps({"at": each.at.isoformat(), "digests": each.digests}) + "\n")
        file.flush()
        os.fsync(file.fileno())


def append_to_backups() -> None:
    """Record this database's erasures beside the backups in BACKUP_DIR, so that after a restore the erased data is
    erased again.
    """
    folder = settings.BACKUP_DIR
    if folder is None or not folder.is_dir():
        return
    try:
        append(recorded(), folder)
    except OSError as error:
        logger.warning("an erasure could not be recorded in %s; the next backup does it: %s", folder, error)
