"""Content-addressed storage of evidence: blobs named by their SHA-256, compressed, never changed. Rows have the hash.

Everything streams, so that a file of any permitted size takes constant memory. A blob whose transaction was rolled back
is harmless: no row refers to it, and storing the same bytes again reuses it.
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
from typing import Any, BinaryIO, Protocol, cast

import zstandard
from django.conf import settings
from django.core.files import File
from django.core.files.storage import Storage, default_storage
from django.db.models import QuerySet
from django.utils import timezone

from grading.busy import StorageAway
from grading.evidence import in_place
from grading.evidence.storages import EvidenceStorage
from grading.models import BlobProblem, Evidence, LogInPlace, Session, SessionLog
from grading.models.evidence import EvidenceKind
from grading.models.health import BlobProblemKind
from grading.witness import Witness

CHUNK = 1 << 20
COMPRESSION_LEVEL = 3
TEXT_LIMIT = 2_000_000


class Readable(Protocol):
    """Anything with a `read(size)` that returns bytes: a file, an upload, a socket."""

    def read(self, size: int = ..., /) -> bytes: ...


class TooLarge(Exception):
    """The evidence is larger than the site accepts. Send less, or raise EVIDENCE_MAX_BYTES."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"expected at most {limit:,} bytes; send less, or raise EVIDENCE_MAX_BYTES on the site")
        self.limit = limit


class Damaged(OSError):
    """Stored evidence is missing or is not what was stored. Restore the evidence folder from a backup."""


class Gone(OSError):
    """Evidence is gone, by RETENTION_DAYS or because its harness deleted a log that was read in place. Its rows and
    grades stay.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The identity of stored bytes: their SHA-256 in hex, and their length before compression."""

    sha256: str
    size: int


def store(stream: Readable) -> Stored:
    """Store the bytes of `stream` from its current position. Storing the same bytes again changes nothing, but replaces
    a damaged blob.

    Raises TooLarge as soon as settings.EVIDENCE_MAX_BYTES is exceeded; nothing is stored then.
    """
    with incoming(stream) as received:
        received.keep()
        return received.stored


class Incoming(Protocol):
    """Bytes that were read and hashed, and that nothing refers to unless `keep` is called."""

    @property
    def stored(self) -> Stored: ...

    def open(self) -> BinaryIO:
        """The bytes from the beginning."""

    def keep(self) -> None:
        """Store the bytes as evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingCopy:
    """Bytes in a temporary file, which are deleted unless `keep` stores them."""

    stored: Stored
    scratch: "_Scratch"

    def open(self) -> BinaryIO:
        self.scratch.seek(0)
        plain = zstandard.ZstdDecompressor().stream_reader(cast("BinaryIO", self.scratch), closefd=False)
        return io.BufferedReader(cast("io.RawIOBase", plain), CHUNK)

    def keep(self) -> None:
        os.fsync(self.scratch.fileno())
        name = blob_name(self.stored.sha256)
        # `expire`, which may run concurrently, spares bytes with a new time.
        if not _storage().renew(name) or damage(self.stored.sha256):
            _storage().put(name, self.scratch.path)
        _storage().sync(name)


@contextmanager
def incoming(stream: Readable) -> Iterator[IncomingCopy]:
    """Read `stream` into a temporary file, to inspect its bytes before storing them. Raises TooLarge like `store`."""
    with scratch_file() as scratch:
        yield IncomingCopy(stored=_compress(stream, scratch), scratch=scratch)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLog:
    """A log that stays where it is. `keep` stores its path, and the time of its last change in nanoseconds."""

    stored: Stored
    path: Path
    file: BinaryIO
    modified: int

    def open(self) -> BinaryIO:
        """The bytes that were hashed, even if the harness has written more since."""
        return io.BufferedReader(in_place.FirstBytes(self.file, self.stored.size), CHUNK)

    def keep(self) -> None:
        """Store where the log is, unless a copy is stored or the same bytes were read from another file."""
        row = LogInPlace.objects.filter(pk=self.stored.sha256).first()
        is_elsewhere = row is not None and row.path != str(self.path) and in_place.exists(row.pk)
        if is_elsewhere or default_storage.exists(blob_name(self.stored.sha256)):
            return
        columns = {"path": str(self.path), "size": self.stored.size, "modified": self.modified}
        LogInPlace.objects.update_or_create(pk=self.stored.sha256, defaults=columns)


@contextmanager
def local(path: Path, file: BinaryIO) -> Iterator[LocalLog]:
    """Hash the log at `path`, which is open as `file`, up to its present end. Raises TooLarge like `store`."""
    status = os.fstat(file.fileno())
    if status.st_size > settings.EVIDENCE_MAX_BYTES:
        raise TooLarge(settings.EVIDENCE_MAX_BYTES)
    digest, size = hashlib.sha256(), 0
    while piece := file.read(min(CHUNK, status.st_size - size)):
        digest.update(piece)
        size += len(piece)
    stored = Stored(sha256=digest.hexdigest(), size=size)
    yield LocalLog(stored=stored, path=path, file=file, modified=status.st_mtime_ns)


def damage(sha256: str) -> str:
    """Read a blob in full and return what is wrong with it, or an empty string. Raises StorageAway."""
    try:
        with default_storage.open(blob_name(sha256)) as file:
            return flaw(cast("BinaryIO", file), sha256)
    except FileNotFoundError:
        return "missing"
    except StorageAway:
        raise  # says nothing about the blob
    except OSError as error:
        return f"unreadable: {error}"


def flaw(file: BinaryIO, sha256: str, size: float = math.inf) -> str:
    """What is wrong with a compressed file that should contain the bytes of that hash, or an empty string.

    Stops reading after `size` bytes.
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
    """The bytes of a row. A small file is read and checked against the row's hash here; a large one is decompressed as
    it is read, and checked at its end.

    Raises Damaged, here or from a read, if the bytes are missing or changed, and Gone if retention deleted them.
    """
    try:
        file = cast("BinaryIO", default_storage.open(blob_name(row.sha256)))
        checked = _Checked(row, file, zstandard.ZstdDecompressor().stream_reader(file))
    except FileNotFoundError as error:
        local = LogInPlace.objects.filter(pk=row.sha256).first()
        if local is not None:
            return _open_in_place(local, row)
        expired = BlobProblem.objects.expired().filter(pk=row.sha256).first()
        if expired is not None:
            raise Gone(f"The {row.kind} is gone by retention since {expired.since:%Y-%m-%d}") from error
        raise Damaged(f"{row} is missing from the evidence folder; restore it from a backup") from error
    stream = io.BufferedReader(checked, CHUNK)
    if row.size > CHUNK:
        return stream
    with stream:
        return io.BytesIO(stream.read())


def _open_in_place(local: LogInPlace, row: Evidence) -> BinaryIO:
    """The bytes of a log that was read in place, checked like stored ones. Raises Gone if they have changed."""
    why = f"The log is gone: its harness has deleted or rewritten {local.path}"
    try:
        file = Path(local.path).open("rb")  # noqa: SIM115 - the stream closes it
        plain = in_place.FirstBytes(file, local.size)
        stream = io.BufferedReader(_Checked(row, file, plain, why=why), CHUNK)
        if row.size > CHUNK:
            return stream
        with stream:
            return io.BytesIO(stream.read())
    except Gone:
        raise
    except OSError as error:
        raise Gone(why) from error


def usable(session: Session, kind: EvidenceKind) -> Evidence | None:
    """The evidence of a kind that is used for grading, or None: the latest, or for logs the main one."""
    if kind is EvidenceKind.TRANSCRIPT:
        return next(iter(logs(session)), None)
    return next((row for row in counting(session) if row.kind == kind), None)


def counting(session: Session) -> list[Evidence]:
    """The evidence that a session may be graded by, latest first.

    Of each kind, only that of its strongest witness counts, and nothing of a weaker witness than the log's. Otherwise
    the graded agent could add to what its runner observed, or hide it behind a longer log of its own.
    """
    rows = sorted((row for row in session.evidence.all() if not row.problem), key=lambda row: -row.pk)
    strongest: dict[str, int] = {}
    for row in rows:
        strongest[row.kind] = max(strongest.get(row.kind, 0), Witness(row.witness).strength)
    log_strength = strongest.get(EvidenceKind.TRANSCRIPT, 0)
    return [row for row in rows if Witness(row.witness).strength >= max(strongest[row.kind], log_strength)]


def logs(session: Session) -> list[Evidence]:
    """The logs of a session that count, its own first, then those of its subagents (`SessionLog.files`).

    A log that another one contains isn't among them. Without a stored summary that names a usable log, the latest one
    counts.
    """
    rows = [row for row in readable_logs(session) if not is_shared(row)]
    summary = log_of(session)
    by_hash = {row.sha256: row for row in rows}
    hashes = [] if summary is None else summary.files
    return [by_hash[sha256] for sha256 in hashes if sha256 in by_hash] or rows[:1]


def log_of(session: Session) -> SessionLog | None:
    """The stored summary of the session's logs, or None. Best loaded with the session by select_related."""
    log: SessionLog | None = getattr(session, "log", None)
    return log


def readable_logs(session: Session) -> list[Evidence]:
    """The logs of the session's strongest witness that have no problem of their own, latest first."""
    return [row for row in counting(session) if row.kind == EvidenceKind.TRANSCRIPT]


def is_shared(row: Evidence) -> bool:
    """Whether the agent submitted the same log for another session too, and the log doesn't name its session.

    Derived, not stored: a second submission takes the log from the first session as well, so that sessions get the same
    grades in any order of arrival. Submissions of other agents have no effect.
    """
    if row.kind != EvidenceKind.TRANSCRIPT or names_its_session(row):
        return False
    return sharers(row).exists()


def names_its_session(row: Evidence) -> bool:
    """Whether a log names its session, or the session that started its subagent."""
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
    """The first `limit` bytes of a row as text. Invalid UTF-8 becomes U+FFFD."""
    with open(row) as file:
        return file.read(limit).decode(errors="replace")


def listed(prefix: str, storage: Storage = default_storage) -> dict[str, list[str]]:
    """The names of the files in a storage by hash, for the hashes that begin with these two digits.

    The files of a hash are its blob and the data derived from it.
    """
    names: dict[str, list[str]] = {}
    with suppress(FileNotFoundError):
        for name in sorted(storage.listdir(prefix)[1]):
            if name.endswith(".zst"):
                names.setdefault(name.partition(".")[0], []).append(f"{prefix}/{name}")
    return names


def is_kept(sha256: str) -> bool:
    """Whether the bytes are stored, or can be read in place."""
    return default_storage.exists(blob_name(sha256)) or in_place.exists(sha256)


def discard(sha256: str) -> bool:
    """Delete a blob and what was derived from it, for an erasure. If a row refers to it, only returns False."""
    if Evidence.objects.filter(sha256=sha256).exists():
        return False
    default_storage.delete(blob_name(sha256))
    LogInPlace.objects.filter(pk=sha256).delete()  # the file is its harness's
    BlobProblem.objects.filter(pk=sha256).delete()
    folder = sha256[:2]
    with suppress(FileNotFoundError):
        for name in default_storage.listdir(folder)[1]:
            if name.startswith(f"{sha256}."):
                default_storage.delete(f"{folder}/{name}")
    return True


def expire(sha256: str, *, before: float) -> bool:
    """Delete a blob that was last stored before `before` (a timestamp in seconds), but not the data derived from it.

    Returns whether it is gone: not if it was missing or newer, or if the same bytes are stored again meanwhile.
    """
    name = blob_name(sha256)
    try:
        if default_storage.get_modified_time(name).timestamp() >= before:
            return False
    except FileNotFoundError:
        return False
    # Recorded first: bytes that are gone without a record would look like damage.
    columns = {"kind": BlobProblemKind.EXPIRED, "since": timezone.now(), "what": ""}
    BlobProblem.objects.update_or_create(pk=sha256, defaults=columns)
    if _storage().remove_older(name, before):
        return True
    if default_storage.exists(name):
        BlobProblem.objects.expired().filter(pk=sha256).delete()
    return False


def derived(row: Evidence, kind: str) -> bytes | None:
    """The data that was derived from a row's bytes and stored under the name `kind`, or None if it must be derived."""
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    try:
        with default_storage.open(blob_name(row.sha256, f".{kind}")) as file:
            data = decompressor.decompress(file.read())
    except (FileNotFoundError, zstandard.ZstdError):
        return None
    return data if decompressor.eof else None  # a power cut may have left only a part of it


def derived_before(row: Evidence, prefix: str) -> bytes | None:
    """The data that any version derived from a row's bytes under a name that begins with `prefix`, or None."""
    with suppress(FileNotFoundError):
        for name in sorted(default_storage.listdir(row.sha256[:2])[1], reverse=True):
            if name.startswith(f"{row.sha256}.{prefix}"):
                return derived(row, name.removeprefix(f"{row.sha256}.").removesuffix(".zst"))
    return None


def keep_derived(row: Evidence, kind: str, data: bytes) -> None:
    """Store data derived from a row's bytes beside them. It may be deleted at any time, and a power cut may lose it."""
    name = blob_name(row.sha256, f".{kind}")
    with scratch_file() as scratch:
        _compress(io.BytesIO(data), scratch)
        _storage().put(name, scratch.path)


def require_storage() -> None:
    """Raise StorageAway if the storage of evidence cannot be used."""
    _storage().require()


def _storage() -> EvidenceStorage:
    return cast("EvidenceStorage", default_storage)


def blob_name(sha256: str, kind: str = "") -> str:
    """The name under which a storage has a blob, or data derived from it."""
    return f"{sha256[:2]}/{sha256}{kind}.zst"


class _Scratch(File):  # type: ignore[type-arg]  # generic in the stubs only
    """A temporary file. A storage may move it."""

    @property
    def path(self) -> Path:
        return Path(str(self.name))


@contextmanager
def scratch_file() -> Iterator[_Scratch]:
    """A new temporary file, on the disk of files of evidence. It is deleted after the block unless it was moved."""
    folder = Path(settings.MEDIA_ROOT) / "incoming"
    folder.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=folder, delete=False) as file:
        try:
            yield _Scratch(file, file.name)
        finally:
            Path(file.name).unlink(missing_ok=True)


def _compress(stream: Readable, target: _Scratch) -> Stored:
    """Write the compressed bytes of `stream` to `target` and rewind it. Raises TooLarge."""
    limit = settings.EVIDENCE_MAX_BYTES
    size = 0
    digest = hashlib.sha256()
    packer = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL).compressobj()
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
    """The bytes of `plain`, which reads from `file`. Raises at the end if they are not those of the row: Damaged or,
    with the reason `why` of a log that was read in place, Gone.
    """

    def __init__(self, row: Evidence, file: BinaryIO, plain: Any, *, why: str = "") -> None:
        self._row, self._file, self._plain, self._why = row, file, plain, why
        self._digest, self._size = hashlib.sha256(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the stubs want any buffer
        try:
            count: int = self._plain.readinto(buffer)
        except zstandard.ZstdError as error:
            raise Damaged(f"{self._row} cannot be decompressed; restore it from a backup") from error
        self._digest.update(buffer[:count])
        self._size += count
        is_wrong = count == 0 and (self._size, self._digest.hexdigest()) != (self._row.size, self._row.sha256)
        if self._why and is_wrong:
            raise Gone(self._why)
        if is_wrong or self._size > self._row.size:
            raise Damaged(f"{self._row} is not what was stored: {self._size:,} bytes; restore it from a backup")
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
