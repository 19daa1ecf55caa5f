"""Reads the logs of a trial in a thread, the latest first, while its pages show what was read so far."""

import logging
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from django.db import connections
from django.utils import timezone
from tqdm import tqdm

from grading.access.recording import CONSOLE
from grading.busy import trouble
from grading.evidence.in_place import is_known
from grading.health import planner
from grading.insight import agents, since
from grading.intake import erased, naming, opencode
from grading.intake.importing import ImportRecord, import_log, scan
from grading.models import Agent
from grading.monitoring.watch import refresh_afterwards
from grading.outcomes import following
from grading.trial import keeping

logger = logging.getLogger(__name__)

AGENT = "local"
FOLLOW_SECONDS = 20.0


@dataclass(slots=True, kw_only=True)
class ReadingProgress:
    """How many logs there are, and how many are read (`done`). `unchanged` of these were read by an earlier trial.

    `stopped` says why reading ended early; empty if it did not.
    """

    total: int = 0
    done: int = 0
    unchanged: int = 0
    is_over: bool = False
    stopped: str = ""
    fates: Counter[str] = field(default_factory=Counter)


PROGRESS = ReadingProgress()
STOP = threading.Event()


def local_agent() -> Agent:
    """The agent to which a trial's sessions belong."""
    agent, _is_new = Agent.objects.get_or_create(name=AGENT)
    return agent


def read_in_thread(folders: Sequence[Path], keeps: bool, progress: ReadingProgress = PROGRESS) -> None:  # noqa: FBT001
    """Read the logs in these folders, and with `keeps` copy them. Never raises: `progress` says what went wrong."""
    try:
        read_logs(folders, progress)
        if keeps and not progress.stopped:
            keeping.keep_logs()
        store_figures()
    except Exception as error:
        problem = trouble(error)
        progress.stopped = f"{problem.title}. {problem.words}" if problem else f"{type(error).__name__}: {error}"
        logger.exception("reading the logs stopped")
    finally:
        progress.is_over = True
        connections.close_all()


def follow_in_thread() -> None:
    """Look up commits in followed repositories, as a worker does on a normal site, until the trial ends."""
    while not STOP.wait(FOLLOW_SECONDS):
        try:
            following.run_due(timezone.now())
        except Exception:
            logger.exception("looking up commits failed; it is tried again in %g seconds", FOLLOW_SECONDS)
        finally:
            connections.close_all()


def read_logs(folders: Sequence[Path], progress: ReadingProgress) -> None:
    """Import the logs in these folders that are new or have changed, the latest first. Raises what the database does.

    A log that can't be read is recorded with the reason, and the others are read.
    """
    with TemporaryDirectory(prefix="opencode-") as scratch:
        files = [path for path in scan(folders) if isinstance(path, Path)]
        exports, sources = opencode.export_sessions(files, Path(scratch))
        # Sessions that OpenCode keeps in its database are stored as files of their own; the other logs stay in place.
        _read_files([*latest_first(set(files) - sources), *exports], folders, set(exports), progress)


def _read_files(
    paths: Sequence[Path], folders: Sequence[Path], exports: Collection[Path], progress: ReadingProgress
) -> None:
    agent = local_agent()
    progress.total = len(paths)
    record = None
    leave_out = {digest for erasure in erased.recorded() for digest in erasure.digests}
    try:
        for path in tqdm(paths, desc="Reading", unit=" files", disable=None):
            if STOP.is_set():
                progress.stopped = "The trial was ended. Start it again to continue."
                break
            if is_known(path):
                progress.unchanged += 1
            else:
                record = record or ImportRecord(agent, folders, by=f"gradingsite try, at {CONSOLE}", category=None)
                outcome = import_log(
                    path, agent=agent, folders=folders, leave_out=leave_out, in_place=path not in exports
                )
                record.add(outcome)
                progress.fates[outcome.fate] += 1
            progress.done += 1
    finally:
        if record is not None:
            record.end(progress.stopped)
            refresh_afterwards(flagged=True)


def latest_first(paths: Iterable[Path]) -> list[Path]:
    """These files, the latest changed first. A file that has disappeared comes last."""
    changed = {}
    for path in paths:
        try:
            changed[path] = path.stat().st_mtime
        except OSError:
            changed[path] = 0.0
    return sorted(changed, key=lambda path: changed[path], reverse=True)


def store_figures() -> None:
    """Compute what a worker would compute for the pages."""
    naming.assign_models()
    planner.gather_statistics()
    since.store(timezone.now())
    agents.store(timezone.now())
