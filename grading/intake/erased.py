"""What was erased, told by hashes: enough to erase it again from a backup that still holds it, and no name in it.

Each erasure keeps them in its row, and in a file beside the backups, which outlives the database.
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
    """One erasure: when it was, and the digests of the sessions and agents that went."""

    at: dt.datetime
    digests: tuple[str, ...]


def digest_of_session(agent: str, external_id: str) -> str:
    return hashlib.sha256(f"session\0{agent}\0{external_id}".encode()).hexdigest()


def digest_of_agent(name: str) -> str:
    return hashlib.sha256(f"agent\0{name}".encode()).hexdigest()


def of_database() -> list[Erased]:
    """The erasures that this database knows of."""
    rows = Erasure.objects.exclude(digests=None).exclude(closed_at=None).order_by("pk")
    return [Erased(at=row.opened_at, digests=tuple(row.digests)) for row in rows if row.digests]


def is_erased(agent: str, external_id: str) -> bool:
    """Whether a session of that name was ever erased here."""
    digest = digest_of_session(agent, external_id)
    rows = Erasure.objects.exclude(digests=None).only("digests")
    return any(digest in (row.digests or ()) for row in rows.iterator())


def read(folder: Path) -> list[Erased]:
    """The erasures in a folder of backups. A last line that was cut off is no erasure: its row has it."""
    found = []
    try:
        lines = (folder / FILE).read_text().splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            held = json.loads(line)
            found.append(Erased(at=dt.datetime.fromisoformat(held["at"]), digests=tuple(held["digests"])))
        except (ValueError, KeyError, TypeError):
            logger.warning("%s has a line that is no erasure: %.80r", folder / FILE, line)
    return found


def tell(erased: Iterable[Erased], folder: Path) -> None:
    """Add erasures to those in a folder of backups; what is there already is not added again."""
    known = {(each.at, each.digests) for each in read(folder)}
    with (folder / FILE).open("a") as file:
        for each in erased:
            if (each.at, each.digests) not in known:
                file.write(json.dumps({"at": each.at.isoformat(), "digests": each.digests}) + "\n")
        file.flush()
        os.fsync(file.fileno())


def tell_backups() -> None:
    """Tell the backups in BACKUP_DIR of what was just erased: a restored one is cleared of it then."""
    folder = settings.BACKUP_DIR
    if folder is None or not folder.is_dir():
        return
    try:
        tell(of_database(), folder)
    except OSError as error:
        logger.warning("%s could not be told of an erasure; the next backup does it: %s", folder, error)
