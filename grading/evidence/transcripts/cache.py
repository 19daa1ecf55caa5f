"""Where the indexes stand: a folder of files that may be deleted at any time without loss.

`<sha256>.<version>.sqlite3` is an index, `.part` beside it one that is being written, `.progress` how far it is.
"""

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings

from grading import redaction
from grading.formats import PARSER_VERSION
from grading.models import Evidence

INDEX_VERSION = "1"
"""Raised whenever the same events would give other rows."""

VERSION = f"p{PARSER_VERSION}-i{INDEX_VERSION}-r{redaction.VERSION}"
# Whoever builds says so more often than this; a builder that is silent for longer has died.
ALIVE_SECONDS = 3.0
# What failed is tried again after this, and what a dead builder left goes.
FORGIVEN_SECONDS, LEFT_SECONDS = 60.0, 3600.0
# Last use is written down no more often than this.
USE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """How far the building of an index is: the number of the last event, and of about how many; or what went wrong."""

    events: int = 0
    about: int = 0
    problem: str = ""

    def __str__(self) -> str:
        return (
            f"reading the transcript: {self.events:,} of about {self.about:,} events"
            if self.about
            else "reading the transcript"
        )


def path_of(row: Evidence) -> Path:
    """Where the index of a row is, or will be."""
    return _folder(row.sha256) / f"{row.sha256}.{VERSION}.sqlite3"


def held(row: Evidence) -> Path | None:
    """The index of a row, marked as used, or None."""
    path = path_of(row)
    try:
        if time.time() - path.stat().st_mtime > USE_SECONDS:
            os.utime(path)
    except OSError:
        return None
    return path


def progress(row: Evidence) -> IndexProgress | None:
    """What the builder of a row's index said last, or None where nobody is at work."""
    path = path_of(row).with_suffix(".progress")
    try:
        silent = time.time() - path.stat().st_mtime
        said = IndexProgress(**json.loads(path.read_text() or "{}"))
    except (OSError, ValueError):
        return None
    return said if silent < (FORGIVEN_SECONDS if said.problem else ALIVE_SECONDS) else None


def say(row: Evidence, said: IndexProgress) -> None:
    """Write down how far a row's index is. Raises OSError where the folder cannot be written."""
    path = path_of(row).with_suffix(".progress")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(said)))


def was_asked_for(row: Evidence) -> bool:
    """Whether somebody asked for the index, or began it, and it has not come."""
    return path_of(row).with_suffix(".progress").exists()


def done(row: Evidence) -> None:
    with suppress(OSError):
        path_of(row).with_suffix(".progress").unlink()


def forget(sha256: str) -> None:
    """Take away everything that was made from these bytes: part of an erasure."""
    for path in _folder(sha256).glob(f"{sha256}.*"):
        path.unlink(missing_ok=True)


def prune(spared: Path) -> None:
    """Delete what other versions and dead builders left, and the least recently used while all is too much."""
    now, kept = time.time(), []
    for path in _root().glob("*/*"):
        try:
            stat = path.stat()
        except FileNotFoundError:  # somebody else prunes
            continue
        if path.name.endswith(f".{VERSION}.sqlite3"):
            kept.append((stat.st_mtime, stat.st_size, path))
        elif path.suffix == ".sqlite3" or now - stat.st_mtime > LEFT_SECONDS:
            path.unlink(missing_ok=True)
    total = sum(size for _used, size, _path in kept)
    for _used, size, path in sorted(kept):
        if total <= settings.TRANSCRIPT_CACHE_BYTES:
            break
        if path != spared:
            path.unlink(missing_ok=True)
            total -= size


def _root() -> Path:
    return Path(settings.TRANSCRIPT_CACHE)


def _folder(sha256: str) -> Path:
    return _root() / sha256[:2]
