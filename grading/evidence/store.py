"""Evidence bytes: addressed by their SHA-256, compressed, written once and never changed. Rows hold the hash only.

Everything streams, so that a file of any permitted size takes constant memory. A blob whose transaction was rolled back
is harmless: nothing refers to it, and the same bytes sent again find it there.
"""

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, Protocol, cast

import zstandard
from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db.models import QuerySet

from grading.models import Evidence, Session, SessionLog
from grading.models.evidence import EvidenceKind

CHUNK = 1 << 20
LEVEL = 3
TEXT_LIMIT = 2_000_000


class Readable(Protocol):
    """Anything with a `read(size)` that gives bytes: a file, an upload, a socket."""

    def read(self, size: int = ..., /) -> bytes: ...


class TooLarge(Exception):
    """The evidence is larger than the site accepts. Send less, or raise EVIDENCE_MAX_BYTES."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"expected at most {limit:,} bytes; send less, or raise EVIDENCE_MAX_BYTES on the site")
        self.limit = limit


class Damaged(OSError):
    """Stored evidence is missing or is not what was stored. Restore the evidence folder from a backup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What identifies stored bytes: their SHA-256 in hex, and their length before compression."""

    sha256: str
    size: int


def store(stream: Readable) -> Stored:
    """Keep the bytes of `stream`, read from where it stands. Storing the same bytes again changes nothing.

    Raises TooLarge as soon as settings.EVIDENCE_MAX_BYTES is passed; nothing is kept then.
    """
    with _scratch() as scratch:
        stored = _compress(stream, scratch)
        name = _name(stored.sha256)
        if not default_storage.exists(name):
            saved = default_storage.save(name, scratch)
            if saved != name:  # somebody stored the same bytes meanwhile
                default_storage.delete(saved)
    return stored


def open(row: Evidence) -> BinaryIO:  # noqa: A001 - reads as evidence.open(row)
    """The bytes of a row, checked against the row's hash at their end; decompressed as they are read, but for a small
    file, which is read and checked here.

    Raises Damaged, here or from a read, where the stored bytes are missing or are others.
    """
    try:
        file = default_storage.open(_name(row.sha256))
    except FileNotFoundError as error:
        raise Damaged(f"{row} is missing from the evidence folder; restore it from a backup") from error
    stream = io.BufferedReader(_Checked(file, row), CHUNK)
    if row.size > CHUNK:
        return stream
    with stream:
        return io.BytesIO(stream.read())


def usable(session: Session, kind: EvidenceKind) -> Evidence | None:
    """The evidence of a kind that is used for grading, or None: of several the latest, of logs the whole one."""
    if kind is EvidenceKind.TRANSCRIPT:
        return next(iter(logs(session)), None)
    return session.evidence.filter(kind=kind, problem="").order_by("-pk").first()


def logs(session: Session) -> list[Evidence]:
    """The logs of a session that count, its own first and then those of its subagents (`SessionLog.files`).

    A log that another one contains is not among them: it adds nothing.
    """
    rows = [row for row in readable_logs(session) if not is_shared(row)]
    held = SessionLog.objects.filter(session=session).first()
    by_hash = {row.sha256: row for row in rows}
    return [by_hash[sha256] for sha256 in (held.files if held else ()) if sha256 in by_hash] or rows[:1]


def readable_logs(session: Session) -> QuerySet[Evidence]:
    """The session's logs that nothing is wrong with by themselves, the latest first."""
    return session.evidence.filter(kind=EvidenceKind.TRANSCRIPT, problem="").order_by("-pk")


def is_shared(row: Evidence) -> bool:
    """Whether the agent submitted the same log for another session too, and it does not say itself whose it is.

    Derived, not stored: a second submission takes the log from the first as well, so that sessions get the same grades
    in whichever order they arrive. What another agent submits takes nothing away.
    """
    if row.kind != EvidenceKind.TRANSCRIPT or names_its_session(row):
        return False
    return sharers(row).exists()


def names_its_session(row: Evidence) -> bool:
    """Whether a log says whose it is, or which session started the subagent whose it is."""
    return bool(row.report.get("session_id") or row.report.get("parent_id"))


def sharers(row: Evidence) -> QuerySet[Evidence]:
    """The rows of the agent's other sessions with the same bytes."""
    same = Evidence.objects.filter(sha256=row.sha256, kind=row.kind, session__agent=row.session.agent_id)
    return same.exclude(session_id=row.session_id)


def text(session: Session, kind: EvidenceKind, limit: int = TEXT_LIMIT) -> str | None:
    """The session's latest usable journal or patch as text, at most `limit` bytes of it, or None."""
    row = usable(session, kind)
    return None if row is None else text_of(row, limit)


def text_of(row: Evidence, limit: int = TEXT_LIMIT) -> str:
    """The first `limit` bytes of a row as text; what is no UTF-8 becomes U+FFFD."""
    with open(row) as file:
        return file.read(limit).decode(errors="replace")


def is_kept(sha256: str) -> bool:
    """Whether the bytes are stored."""
    return default_storage.exists(_name(sha256))


def discard(sha256: str) -> bool:
    """Delete a blob that no row refers to any more, and what was derived from it; False where one still does. For
    erasure only.
    """
    if Evidence.objects.filter(sha256=sha256).exists():
        return False
    default_storage.delete(_name(sha256))
    folder = sha256[:2]
    with suppress(FileNotFoundError):
        for name in default_storage.listdir(folder)[1]:
            if name.startswith(f"{sha256}."):
                default_storage.delete(f"{folder}/{name}")
    return True


def derived(row: Evidence, kind: str) -> bytes | None:
    """What was derived from a row's bytes and kept under that name, or None where it has to be derived anew."""
    try:
        with default_storage.open(_name(row.sha256, f".{kind}")) as file:
            return zstandard.ZstdDecompressor().stream_reader(cast("BinaryIO", file)).read()
    except (FileNotFoundError, zstandard.ZstdError):
        return None


def keep_derived(row: Evidence, kind: str, found: bytes) -> None:
    """Keep what was derived from a row's bytes beside them. It is no evidence: it may be deleted at any time."""
    name = _name(row.sha256, f".{kind}")
    with _scratch() as scratch:
        _compress(io.BytesIO(found), scratch)
        default_storage.delete(name)
        saved = default_storage.save(name, scratch)
        if saved != name:  # somebody kept the same meanwhile
            default_storage.delete(saved)


def _name(sha256: str, kind: str = "") -> str:
    return f"{sha256[:2]}/{sha256}{kind}.zst"


class _Scratch(File):  # type: ignore[type-arg]  # generic in the stubs only
    """A finished temporary file. Its path lets file storage keep it by one rename, which is atomic."""

    def temporary_file_path(self) -> str:
        return str(self.name)


@contextmanager
def _scratch() -> Iterator[_Scratch]:
    folder = Path(settings.MEDIA_ROOT) / "incoming"
    folder.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=folder, delete=False) as file:
        try:
            yield _Scratch(file, file.name)
        finally:
            Path(file.name).unlink(missing_ok=True)


def _compress(stream: Readable, target: _Scratch) -> Stored:
    limit, size, digest = settings.EVIDENCE_MAX_BYTES, 0, hashlib.sha256()
    packer = zstandard.ZstdCompressor(level=LEVEL).compressobj()
    while chunk := stream.read(CHUNK):
        size += len(chunk)
        if size > limit:
            raise TooLarge(limit)
        digest.update(chunk)
        target.write(packer.compress(chunk))
    target.write(packer.flush())
    target.flush()
    os.fsync(target.fileno())
    target.seek(0)
    return Stored(sha256=digest.hexdigest(), size=size)


class _Checked(io.RawIOBase):
    """Decompresses on reading; at the end, says whether the bytes were those of the row."""

    def __init__(self, file: File, row: Evidence) -> None:  # type: ignore[type-arg]  # as above
        self._file, self._row = file, row
        self._plain = zstandard.ZstdDecompressor().stream_reader(cast("BinaryIO", file))
        self._digest, self._size = hashlib.sha256(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the stubs want any buffer
        try:
            count = self._plain.readinto(buffer)
        except zstandard.ZstdError as error:
            raise Damaged(f"{self._row} cannot be decompressed; restore it from a backup") from error
        self._digest.update(buffer[:count])
        self._size += count
        is_other = count == 0 and (self._size, self._digest.hexdigest()) != (self._row.size, self._row.sha256)
        if is_other or self._size > self._row.size:
            raise Damaged(f"{self._row} is not what was stored: {self._size:,} bytes; restore it from a backup")
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
