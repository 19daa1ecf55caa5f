"""Importing logs that harnesses left on disk: each file is one session, whose id is read from the log itself.

scan ─► import_logs (in several processes, `import_log` for each file) ─► ImportRecord
"""

import datetime as dt
import hashlib
import logging
import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from django.conf import settings
from django.db import connections, transaction
from django.utils import timezone
from pydantic import ValidationError

from grading import formats, intake
from grading.busy import patiently, trouble
from grading.evidence import receiving, store
from grading.evidence.in_place import can_be_stored
from grading.evidence.receiving import ParsedLog, ReceivedFile, SessionClaim
from grading.evidence.store import Incoming
from grading.intake import erased
from grading.intake.first_word import Speaker
from grading.models import Agent, Evidence, ImportedFile, LogImport
from grading.models.evidence import EvidenceKind
from grading.models.imports import Fate
from grading.monitoring.watch import refresh_afterwards
from grading.plain import plain_text
from gradingsite.supervisor import die_with_parent

logger = logging.getLogger(__name__)

GPTME_LOG = "conversation.jsonl"
# Folders with many files, none of which are logs.
NEVER_LOGS = frozenset({".git", "node_modules"})
# How long to retry while others write to the database.
RETRY_SECONDS = 600.0
# Outcomes are written in batches, and at least so often.
BATCH_SIZE, WRITE_SECONDS = 500, 2.0
# Imports whose file rows are stored. Of earlier ones only the counts stay: a nightly import finds the same files again.
IMPORTS_WITH_FILES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOutcome:
    """What became of one file. If it wasn't imported: `why`, a phrase shared by many files, and the file's `detail`.

    `session` is the key of its session, if there is one.
    """

    path: Path
    fate: Fate
    why: str = ""
    detail: str = ""
    session: int | None = None


def scan(paths: Iterable[Path]) -> Iterator[Path | ImportOutcome]:
    """The regular files in these folders and those given in `paths`, in a stable order, each once.

    Yields the outcome of what it skips: links, other files that aren't regular, and, one for the whole folder, folders
    that can't be read or never contain logs. A path in `paths` may be a link itself.
    """
    real_paths: set[Path] = set()
    for path in paths:
        is_folder = path.is_dir()
        # No link below a folder is followed, so only the path that leads to it can have links.
        real_root = path.resolve() if is_folder else path.parent.resolve() / path.name
        for entry in _scan_folder(path) if is_folder else [_regular(path)]:
            entry_path = entry if isinstance(entry, Path) else entry.path
            real_path = real_root / entry_path.relative_to(path)
            if real_path not in real_paths:
                real_paths.add(real_path)
                yield entry


def _scan_folder(folder: Path) -> Iterator[Path | ImportOutcome]:
    """What `scan` yields for a folder: the files in it, then those in its subfolders."""
    errors: list[OSError] = []
    for parent, subfolders, files in os.walk(folder, onerror=errors.append):
        for name in sorted(files):
            path = Path(parent, name)
            is_link = path.is_symlink()
            yield ImportOutcome(path=path, fate=Fate.SKIPPED, why="links") if is_link else _regular(path)
        subfolders.sort()
        for name in list(subfolders):
            path = Path(parent, name)
            if path.is_symlink():
                yield ImportOutcome(path=path, fate=Fate.SKIPPED, why="links")
            elif name in NEVER_LOGS:
                subfolders.remove(name)
                yield ImportOutcome(path=path, fate=Fate.FOLDER, why=f"{name} folders, where no logs are")
    for error in errors:
        why = "folders that cannot be read"
        yield ImportOutcome(path=Path(error.filename), fate=Fate.FOLDER, why=why, detail=str(error.strerror))


def _regular(path: Path) -> Path | ImportOutcome:
    """The path if it is a regular file, or a link to one; otherwise the outcome."""
    return path if path.is_file() else ImportOutcome(path=path, fate=Fate.SKIPPED, why="devices, pipes and sockets")


def leads_out(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a file below one of these folders is really outside of them because of a link."""
    within = [folder.resolve() for folder in folders if folder.is_dir() and path.is_relative_to(folder)]
    return bool(within) and not any(path.resolve().is_relative_to(folder) for folder in within)


def import_log(
    path: Path,
    *,
    agent: Agent,
    category: str | None = None,
    folders: Iterable[Path] = (),
    in_place: bool = False,
    leave_out: Collection[str] = (),
) -> ImportOutcome:
    """Import one log through the ordinary intake, reading it once. The alarms are checked later, by `import_logs`.

    A file that doesn't begin like a session's log is left alone, with the reason. So is a file in one of `folders` that
    has become a link out of it: otherwise whoever may write there could have any file read. With `in_place`, no copy of
    the log is stored if its path can be. `leave_out` are the digests of erased sessions, which don't come back. A log
    that the reader fails at is refused; the errors of an unavailable database are raised. The outcome's `why` is in the
    plural, because the summary counts files by it.
    """
    fate = Fate.REFUSED
    try:
        if leads_out(path, folders):
            why = "links that lead out of the folder"
            return ImportOutcome(path=path, fate=fate, why=why, detail=f"it leads to {path.resolve()}")
        with path.open("rb") as file:
            formats.recognise(file)
        in_place = in_place and can_be_stored(path)
        with path.open("rb") as file, store.local(path, file) if in_place else store.incoming(file) as incoming:
            same = Evidence.objects.filter(sha256=incoming.stored.sha256, kind=EvidenceKind.TRANSCRIPT)
            existing = same.filter(session__agent=agent).order_by("pk").values_list("session", flat=True).first()
            if existing is not None:
                if in_place:
                    incoming.keep()  # the file may have moved
                return ImportOutcome(path=path, fate=Fate.THERE, session=existing)
            with incoming.open() as plain:
                log = receiving.parse(plain, path.name)
            if erased.session_digest(agent.name, _session_id(path, log)) in leave_out:
                return ImportOutcome(path=path, fate=fate, why="logs of sessions that were erased here")
            if not log.report.recognised:
                return ImportOutcome(path=path, fate=fate, why="logs in which nothing was recognised")
            return _submit(path, agent, incoming, log, category)
    except formats.UnknownFormat as error:
        why = f"logs of {error.harness}, which are not read yet" if error.harness else "not a log of a known harness"
        fate, detail = Fate.OTHER, error.reason
    except formats.EmptyTranscript:
        fate, why, detail = Fate.OTHER, "empty files", ""
    except ValidationError as error:
        why, detail = "logs whose identity or times cannot be true", str(error.errors()[0]["msg"])
    except store.TooLarge as error:
        why, detail = "files that are too large", str(error)
    except OSError as error:
        why, detail = "files that cannot be read", str(error.strerror)
    except Exception as error:
        if trouble(error) is not None:
            raise
        logger.exception("%s cannot be read", path)
        why, detail = "logs that the reader failed at", f"{type(error).__name__}: {error}"
    return ImportOutcome(path=path, fate=fate, why=why, detail=detail)


def _session_id(path: Path, log: ParsedLog) -> str:
    """The session of a log. Without an id in the log, it is the folder's name for gptme, else the file's, in which
    what isn't UTF-8 is replaced.

    This also holds for a subagent's log without an id of its own: its parent session is named in the log.
    """
    return plain_text(log.header.session_id or (path.parent.name if path.name == GPTME_LOG else path.stem))


def _submit(path: Path, agent: Agent, incoming: Incoming, log: ParsedLog, category: str | None) -> ImportOutcome:
    """Submit a parsed log."""
    header = log.header
    metadata = intake.SubmittedSession(
        session_id=_session_id(path, log),
        started_at=header.started_at,
        ended_at=header.ended_at or dt.datetime.fromtimestamp(path.stat().st_mtime, tz=dt.UTC),
        category=category,
    )
    incoming.keep()
    speaker = Speaker()
    row = receiving.build_row(EvidenceKind.TRANSCRIPT, incoming.stored, path.name, speaker.witness)
    claim = SessionClaim(session_id=metadata.session_id, started_at=metadata.started_at, ended_at=metadata.ended_at)
    file = ReceivedFile(row=row, reading=receiving.read_log(row, log, claim))
    submit = partial(intake.submit, agent=agent, metadata=metadata, transcript=file, speaker=speaker, alarms=False)
    receipt = patiently(submit, seconds=RETRY_SECONDS)  # the other processes write, too
    errors = [problem for problem in receipt.problems if problem.is_error]
    why, detail = "", ""
    if errors:
        why, detail = f"kept, but not used for grading: {errors[0].code}", errors[0].got
    elif header.is_subagent:
        why = "logs of subagents, which count for the session that started them"
    fate = Fate.IMPORTED if receipt.created else Fate.ADDED
    return ImportOutcome(path=path, fate=fate, why=why, detail=detail, session=receipt.session.pk)


def import_logs(
    paths: Sequence[Path], *, agent: Agent, category: str | None, folders: Sequence[Path], processes: int
) -> Generator[ImportOutcome]:
    """Import these logs with several processes, and yield the outcome of each when it is done.

    The imported logs stay, and the alarms are checked, also if the caller stops iterating. Raises BrokenProcessPool if
    a process was killed. Files with the same bytes go to one process in order, so that the first name always counts.
    """
    import_one = partial(import_log, agent=agent, category=category, folders=folders)
    try:
        yield from map(import_one, paths) if processes == 1 else _import_in_processes(paths, import_one, processes)
    finally:
        refresh_afterwards(flagged=True)


def _import_in_processes(
    paths: Iterable[Path], import_one: Callable[[Path], ImportOutcome], processes: int
) -> Generator[ImportOutcome]:
    """Have new processes call `import_one` with each path. If the caller stops iterating, the rest is left out."""
    connections.close_all()  # a connection can't be shared with the new processes
    pool = ProcessPoolExecutor(
        processes, mp_context=get_context("fork"), initializer=_start_process, initargs=(os.getpid(),)
    )
    try:
        waiting = {pool.submit(_import_group, import_one, group) for group in group_identical(paths)}
        for done in as_completed(waiting):
            yield from done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def group_identical(paths: Iterable[Path]) -> Iterator[list[Path]]:
    """Group these files by their bytes, which are read only if several have the same size."""
    by_size: dict[int, list[Path]] = defaultdict(list)
    for path in paths:
        size = 0  # for a missing file, which `import_log` reports
        with suppress(OSError):
            size = path.stat().st_size
        by_size[size].append(path)
    for same_size in by_size.values():
        if len(same_size) == 1:
            yield same_size
            continue
        by_bytes: dict[bytes, list[Path]] = defaultdict(list)
        for path in same_size:
            digest = os.fsencode(path)  # for an unreadable file, which `import_log` reports
            with suppress(OSError), path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
            by_bytes[digest].append(path)
        yield from by_bytes.values()


def _import_group(import_one: Callable[[Path], ImportOutcome], paths: Iterable[Path]) -> list[ImportOutcome]:
    return [import_one(path) for path in paths]


def _start_process(parent: int) -> None:
    """Set up a process of the import: it leaves Ctrl-C to its parent, and ends when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    if os.getppid() != parent:  # it ended before this process could ask to be told
        os._exit(1)


class ImportRecord:
    """Records an import: a row for the run, and one for each file, written in batches while it runs."""

    def __init__(self, agent: Agent, folders: Sequence[Path], *, by: str, category: str | None) -> None:
        self.row = LogImport.objects.create(
            agent=agent,
            folders=[plain_text(str(folder), 1000) for folder in folders],
            by=plain_text(by, 150),
            category=plain_text(category or "", 200),
        )
        self.counts: Counter[str] = Counter()
        self._waiting: list[ImportedFile] = []
        self._written = time.monotonic()

    def add(self, outcome: ImportOutcome) -> None:
        self.counts[outcome.fate] += 1
        self._waiting.append(
            ImportedFile(
                log_import=self.row,
                path=str(outcome.path),
                fate=outcome.fate,
                why=outcome.why[:200],
                detail=outcome.detail,
                session_id=outcome.session,
            )
        )
        if len(self._waiting) >= BATCH_SIZE or time.monotonic() - self._written > WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        """Write the outcomes that aren't written yet, and the counts."""
        self.row.counts = dict(self.counts)
        patiently(self._write, seconds=RETRY_SECONDS)
        self._waiting, self._written = [], time.monotonic()

    def end(self, stopped: str = "") -> None:
        """Write the rest and the end of the import, with the reason if it was stopped."""
        self.row.ended_at, self.row.stopped = timezone.now(), stopped[:200]
        self.write()

    def _write(self) -> None:
        with transaction.atomic():
            ImportedFile.objects.bulk_create(self._waiting)
            self.row.save(update_fields=["counts", "ended_at", "stopped"])


def forget_files(now: dt.datetime) -> int:
    """Delete the file rows of all but the latest imports and of those older than RETENTION_DAYS. Returns their number.
    The counts of the imports stay.
    """
    latest = list(LogImport.objects.order_by("-pk").values_list("pk", flat=True)[:IMPORTS_WITH_FILES])
    old = ImportedFile.objects.exclude(log_import__in=latest)
    count = old.delete()[0]
    if settings.RETENTION_DAYS:
        cutoff = now - dt.timedelta(days=settings.RETENTION_DAYS)
        count += ImportedFile.objects.filter(log_import__started_at__lt=cutoff).delete()[0]
    return count
