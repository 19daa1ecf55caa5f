"""Evidence bytes: addressed by their SHA-256, compressed, written once and never changed. Rows hold the hash only.

Everything streams, so that a file of any permitted size takes constant memory. A blob whose transaction was rolled back
is harmless: nothing refers to it, and the same bytes sent again find it there.
"""

import hashlib
import io
import math
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
from django.utils import timezone

from grading.models import Evidence, ExpiredBlob, Session, SessionLog
from grading.models.evidence import EvidenceKind
from grading.witness import Witness

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


class Gone(OSError):
    """Stored evidence was deleted because it was older than RETENTION_DAYS. What was said of it stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What identifies stored bytes: their SHA-256 in hex, and their length before compression."""

    sha256: str
    size: int


def store(stream: Readable) -> Stored:
    """Keep the bytes of `stream`, read from where it stands. Storing the same bytes again changes nothing; where what
    is there is damaged, they take its place.

    Raises TooLarge as soon as settings.EVIDENCE_MAX_BYTES is passed; nothing is kept then.
    """
    with incoming(stream) as here:
        here.keep()
        return here.stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """Bytes that were read and hashed, and are gone again unless they are kept."""

    stored: Stored
    scratch: "_Scratch"

    def open(self) -> BinaryIO:
        """The bytes, from their beginning."""
        self.scratch.seek(0)
        plain = zstandard.ZstdDecompressor().stream_reader(cast("BinaryIO", self.scratch), closefd=False)
        return io.BufferedReader(cast("io.RawIOBase", plain), CHUNK)

    def keep(self) -> None:
        """Keep the bytes as evidence."""
        os.fsync(self.scratch.fileno())
        name = _name(self.stored.sha256)
        # A new time tells retention, which may be at it now, that somebody needs these bytes.
        try:
            os.utime(default_storage.path(name))
        except FileNotFoundError:
            saved = default_storage.save(name, self.scratch)
            if saved != name:  # somebody stored the same bytes meanwhile
                default_storage.delete(saved)
        else:
            if damage(self.stored.sha256):
                Path(self.scratch.temporary_file_path()).replace(default_storage.path(name))
        # Without its folder's entry the bytes would outlast a power cut under no name.
        folder = os.open(Path(default_storage.path(name)).parent, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)


@contextmanager
def incoming(stream: Readable) -> Iterator[Incoming]:
    """The bytes of `stream`, for who wants to look at them before they are kept. Raises TooLarge as `store` does."""
    with _scratch() as scratch:
        yield Incoming(stored=_compress(stream, scratch), scratch=scratch)


def damage(sha256: str) -> str:
    """What is wrong with stored bytes, read in full; empty where they are what they were."""
    try:
        with default_storage.open(_name(sha256)) as file:
            return flaw(cast("BinaryIO", file), sha256)
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"unreadable: {error}"


def flaw(file: BinaryIO, sha256: str, size: float = math.inf) -> str:
    """What is wrong with a compressed file that is to hold the bytes of that hash; empty where it does. Of one that
    holds more than `size` bytes no more is read.
    """
    digest, count = hashlib.sha256(), 0
    try:
        plain = zstandard.ZstdDecompressor().stream_reader(file)
        while count <= size and (chunk := plain.read(CHUNK)):
            digest.update(chunk)
            count += len(chunk)
    except (zstandard.ZstdError, OSError) as error:
        return f"unreadable: {error}"
    return "" if digest.hexdigest() == sha256 else "not what was stored"


def open(row: Evidence) -> BinaryIO:  # noqa: A001 - reads as evidence.open(row)
    """The bytes of a row, checked against the row's hash at their end; decompressed as they are read, but for a small
    file, which is read and checked here.

    Raises Damaged, here or from a read, where the stored bytes are missing or are others; Gone where retention deleted
    them.
    """
    try:
        file = default_storage.open(_name(row.sha256))
    except FileNotFoundError as error:
        expired = ExpiredBlob.objects.filter(pk=row.sha256).first()
        if expired is not None:
            raise Gone(f"The {row.kind} is gone by retention since {expired.expired_at:%Y-%m-%d}") from error
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
    return next((row for row in counting(session) if row.kind == kind), None)


def counting(session: Session) -> list[Evidence]:
    """The evidence that a session may be graded by, the latest first.

    Of each kind what its strongest witness sent, and beside a log nothing that a weaker one than the log's did: else
    the graded could add to what its runner saw, or hide it behind a longer log of its own.
    """
    rows = sorted((row for row in session.evidence.all() if not row.problem), key=lambda row: -row.pk)
    strongest: dict[str, int] = {}
    for row in rows:
        strongest[row.kind] = max(strongest.get(row.kind, 0), Witness(row.witness).strength)
    least = strongest.get(EvidenceKind.TRANSCRIPT, 0)
    return [row for row in rows if Witness(row.witness).strength >= max(strongest[row.kind], least)]


def logs(session: Session) -> list[Evidence]:
    """The logs of a session that count, its own first and then those of its subagents (`SessionLog.files`).

    A log that another one contains is not among them: it adds nothing.
    """
    rows = [row for row in readable_logs(session) if not is_shared(row)]
    held = log_of(session)
    by_hash = {row.sha256: row for row in rows}
    return [by_hash[sha256] for sha256 in (held.files if held else ()) if sha256 in by_hash] or rows[:1]


def log_of(session: Session) -> SessionLog | None:
    """The summary of the session's logs, as the session was loaded with it; None where it has no log."""
    log: SessionLog | None = getattr(session, "log", None)
    return log


def readable_logs(session: Session) -> list[Evidence]:
    """The logs of the session's strongest witness that nothing is wrong with by themselves, the latest first."""
    return [row for row in counting(session) if row.kind == EvidenceKind.TRANSCRIPT]


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


def listed(prefix: str) -> dict[str, list[str]]:
    """The files of the hashes that begin with these two digits: their bytes, and what was derived from them."""
    found: dict[str, list[str]] = {}
    with suppress(FileNotFoundError):
        for name in sorted(default_storage.listdir(prefix)[1]):
            if name.endswith(".zst"):
                found.setdefault(name.partition(".")[0], []).append(f"{prefix}/{name}")
    return found


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
    ExpiredBlob.objects.filter(pk=sha256).delete()
    folder = sha256[:2]
    with suppress(FileNotFoundError):
        for name in default_storage.listdir(folder)[1]:
            if name.startswith(f"{sha256}."):
                default_storage.delete(f"{folder}/{name}")
    return True


def expire(sha256: str, *, before: float) -> bool:
    """Delete a blob, but for what says whose its records are; False where it is not there, or somebody stored the same
    bytes after the moment `before` (as a timestamp). Those who store them meanwhile keep them.
    """
    path = Path(default_storage.path(_name(sha256)))
    away = path.with_suffix(".expiring")
    try:
        if path.stat().st_mtime >= before:
            return False
        ExpiredBlob.objects.update_or_create(pk=sha256, defaults={"expired_at": timezone.now()})
        path.rename(away)
    except FileNotFoundError:
        return False
    if away.stat().st_mtime >= before and not path.exists():  # somebody needs it since
        away.rename(path)
        return False
    away.unlink()
    return True


def derived(row: Evidence, kind: str) -> bytes | None:
    """What was derived from a row's bytes and kept under that name, or None where it has to be derived anew."""
    try:
        with default_storage.open(_name(row.sha256, f".{kind}")) as file:
            return zstandard.ZstdDecompressor().stream_reader(cast("BinaryIO", file)).read()
    except (FileNotFoundError, zstandard.ZstdError):
        return None


def derived_before(row: Evidence, prefix: str) -> bytes | None:
    """What was derived from a row's bytes under a name that begins so, by whichever version."""
    with suppress(FileNotFoundError):
        for name in sorted(default_storage.listdir(row.sha256[:2])[1], reverse=True):
            if name.startswith(f"{row.sha256}.{prefix}"):
                return derived(row, name.removeprefix(f"{row.sha256}.").removesuffix(".zst"))
    return None


def keep_derived(row: Evidence, kind: str, found: bytes) -> None:
    """Keep what was derived from a row's bytes beside them. It is no evidence: it may be deleted at any time."""
    name = _name(row.sha256, f".{kind}")
    with _scratch() as scratch:
        _compress(io.BytesIO(found), scratch)
        os.fsync(scratch.fileno())
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
