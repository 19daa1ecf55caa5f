"""Importing logs that harnesses left on disk: each file is one session, whose id is read from the log itself."""

import datetime as dt
import hashlib
import os
import signal
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from django.db import connections
from pydantic import ValidationError

from grading import formats, intake, monitoring
from grading.busy import patiently
from grading.evidence import receiving, store
from grading.evidence.receiving import ParsedLog, ReceivedFile, SessionClaim
from grading.evidence.store import Incoming
from grading.intake.first_word import Speaker
from grading.intake.scanning import ImportOutcome
from grading.models import Agent, Evidence
from grading.models.evidence import EvidenceKind
from grading.models.imports import Fate
from gradingsite.supervisor import die_with_parent

GPTME_LOG = "conversation.jsonl"
# How long to retry while others write to the database.
RETRY_SECONDS = 600.0


def leads_out(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a file below one of these folders is really outside of them because of a link."""
    within = [folder.resolve() for folder in folders if folder.is_dir() and path.is_relative_to(folder)]
    return bool(within) and not any(path.resolve().is_relative_to(folder) for folder in within)


def import_log(path: Path, *, agent: Agent, category: str | None = None, folders: Iterable[Path] = ()) -> ImportOutcome:
    """Import one log through the ordinary intake, reading it once. The alarms are checked later, by `import_logs`.

    A file that doesn't begin like a session's log is left alone, with the reason. So is a file in one of `folders` that
    has become a link out of it: otherwise whoever may write there could have any file read.
    """
    fate = Fate.REFUSED
    try:
        if leads_out(path, folders):
            why = "links that lead out of the folder"
            return ImportOutcome(path=path, fate=fate, why=why, detail=f"it leads to {path.resolve()}")
        with path.open("rb") as file:
            formats.recognise(file)
        with path.open("rb") as file, store.incoming(file) as incoming:
            same = Evidence.objects.filter(sha256=incoming.stored.sha256, kind=EvidenceKind.TRANSCRIPT)
            existing = same.filter(session__agent=agent).order_by("pk").values_list("session", flat=True).first()
            if existing is not None:
                return ImportOutcome(path=path, fate=Fate.THERE, session=existing)
            with incoming.open() as plain:
                log = receiving.parse(plain, path.name)
            if log.report.recognised:
                return _submit(path, agent, incoming, log, category)
        why, detail = "logs in which nothing was recognised", ""
    except formats.UnknownFormat as error:
        fate, why, detail = Fate.OTHER, f"not a log of {formats.titles('or')}", error.reason
    except formats.EmptyTranscript:
        fate, why, detail = Fate.OTHER, "empty files", ""
    except ValidationError as error:
        why, detail = "logs whose identity or times cannot be true", str(error.errors()[0]["msg"])
    except store.TooLarge as error:
        why, detail = "files that are too large", str(error)
    except OSError as error:
        why, detail = "files that cannot be read", str(error.strerror)
    return ImportOutcome(path=path, fate=fate, why=why, detail=detail)


def _submit(path: Path, agent: Agent, incoming: Incoming, log: ParsedLog, category: str | None) -> ImportOutcome:
    """Submit a parsed log. A log without a session id gets the folder's name for gptme, else the file's.

    This also holds for a subagent's log without an id of its own: its parent session is named in the log.
    """
    header = log.header
    metadata = intake.SubmittedSession(
        session_id=header.session_id or (path.parent.name if path.name == GPTME_LOG else path.stem),
        started_at=header.started_at,
        ended_at=header.ended_at or dt.datetime.fromtimestamp(path.stat().st_mtime, tz=dt.UTC),
        category=category,
    )
    incoming.keep()
    speaker = Speaker()
    row = receiving.build_row(EvidenceKind.TRANSCRIPT, incoming.stored, path.name, speaker.witness)
    claim = SessionClaim(session_id=metadata.session_id, started_at=metadata.started_at, ended_at=metadata.ended_at)
    file = ReceivedFile(row=row, reading=receiving.read_log(row, log, claim))
    take_in = partial(intake.submit, agent=agent, metadata=metadata, transcript=file, speaker=speaker, alarms=False)
    receipt = patiently(take_in, seconds=RETRY_SECONDS)  # the others write, too
    wrong = [problem for problem in receipt.problems if problem.is_error]
    why, detail = "", ""
    if wrong:
        why, detail = f"kept, but not used for grading: {wrong[0].code}", wrong[0].got
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
    take_in = partial(import_log, agent=agent, category=category, folders=folders)
    try:
        yield from map(take_in, paths) if processes == 1 else _import_in_processes(paths, take_in, processes)
    finally:
        monitoring.refresh_afterwards(flagged=True)


def _import_in_processes(
    paths: Iterable[Path], take_in: Callable[[Path], ImportOutcome], processes: int
) -> Generator[ImportOutcome]:
    """Have new processes call `take_in` with each path. If the caller stops iterating, files not begun are left out."""
    connections.close_all()  # a connection can't be shared with the new processes
    pool = ProcessPoolExecutor(
        processes, mp_context=get_context("fork"), initializer=_start_process, initargs=(os.getpid(),)
    )
    try:
        waiting = {pool.submit(_import_group, take_in, group) for group in group_identical(paths)}
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
            digest = str(path).encode()  # for an unreadable file, which `import_log` reports
            with suppress(OSError), path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
            by_bytes[digest].append(path)
        yield from by_bytes.values()


def _import_group(take_in: Callable[[Path], ImportOutcome], paths: Iterable[Path]) -> list[ImportOutcome]:
    return [take_in(path) for path in paths]


def _start_process(parent: int) -> None:
    """Set up a process of the import: it leaves Ctrl-C to its parent, and ends when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    if os.getppid() != parent:  # it ended before this process could ask to be told
        os._exit(1)
