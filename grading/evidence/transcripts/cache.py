"""The cache folder of the indexes. Its files may be deleted at any time without loss.

`<sha256>.<version>.sqlite3` is an index, `.part` one that is being written, `.progress` the progress of its builder.
"""

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from django.conf import settings

from grading import redaction
from grading.formats import PARSER_VERSION
from grading.models import Evidence

INDEX_VERSION = "2"
"""Incremented whenever the same events would give other rows."""

VERSION = f"p{PARSER_VERSION}-i{INDEX_VERSION}-r{redaction.VERSION}"
# A builder that wrote no progress for this long has died.
BUILDER_TIMEOUT_SECONDS = 3.0
# A failed index is built again after this.
RETRY_SECONDS = 60.0
# A temporary file that is older was left by a dead builder.
LEFTOVER_SECONDS = 3600.0
# The time of the last use is written at most this often.
USE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """The progress of building an index: the last event's number and the estimated total, or what went wrong."""

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
    """The path of a row's index, whether it exists or not."""
    return _folder(row.sha256) / f"{row.sha256}.{VERSION}.sqlite3"


def find_index(row: Evidence) -> Path | None:
    """The path of a row's index, or None if it doesn't exist. Marks it as used."""
    path = path_of(row)
    try:
        if time.time() - path.stat().st_mtime > USE_SECONDS:
            os.utime(path)
    except OSError:
        return None
    return path


def progress(row: Evidence) -> IndexProgress | None:
    """The last progress of the builder of a row's index, or None if no builder is active.

    A builder that failed counts as active for RETRY_SECONDS.
    """
    path = path_of(row).with_suffix(".progress")
    try:
        age = time.time() - path.stat().st_mtime
        last = IndexProgress(**json.loads(path.read_text()))
    except (OSError, ValueError):
        return None
    timeout = RETRY_SECONDS if last.problem else BUILDER_TIMEOUT_SECONDS
    return last if age < timeout else None


def write_progress(row: Evidence, latest: IndexProgress) -> None:
    """Write the progress of a row's index. Raises OSError if the folder can't be written."""
    path = path_of(row).with_suffix(".progress")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two builders may write it while somebody reads it, so it is replaced as a whole.
    with NamedTemporaryFile("w", dir=path.parent, prefix=f"{row.sha256}.", suffix=".part", delete=False) as file:
        file.write(json.dumps(asdict(latest)))
    Path(file.name).replace(path)


def was_requested(row: Evidence) -> bool:
    """Whether the index was requested or begun, and isn't finished."""
    return path_of(row).with_suffix(".progress").exists()


def delete_progress(row: Evidence) -> None:
    """Delete the progress of an index that is finished."""
    with suppress(OSError):
        path_of(row).with_suffix(".progress").unlink()


def forget(sha256: str) -> None:
    """Delete everything that was made from these bytes."""
    for path in _folder(sha256).glob(f"{sha256}.*"):
        path.unlink(missing_ok=True)


def cached_hashes() -> list[str]:
    """The hashes of the logs that the folder has something of."""
    return sorted({path.name.partition(".")[0] for path in _root().glob("*/*")})


def prune(spared: Path) -> None:
    """Delete the files of other versions and dead builders, then the least recently used indexes, except `spared`,
    until the cache is within TRANSCRIPT_CACHE_BYTES.
    """
    now = time.time()
    indexes = []
    for path in _root().glob("*/*"):
        try:
            stat = path.stat()
        except FileNotFoundError:  # another process prunes, too
            continue
        if path.name.endswith(f".{VERSION}.sqlite3"):
            indexes.append((stat.st_mtime, stat.st_size, path))
        elif path.suffix == ".sqlite3" or now - stat.st_mtime > LEFTOVER_SECONDS:
            path.unlink(missing_ok=True)
    total = sum(size for _used, size, _path in indexes)
    for _used, size, path in sorted(indexes):
        if total <= settings.TRANSCRIPT_CACHE_BYTES:
            break
        if path != spared:
            path.unlink(missing_ok=True)
            total -= size


def _root() -> Path:
    return Path(settings.TRANSCRIPT_CACHE)


def _folder(sha256: str) -> Path:
    return _root() / sha256[:2]
