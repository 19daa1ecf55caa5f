"""Checks whether a site, or a backup, is complete and undamaged. Problems are returned as sentences."""

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

from django.db import connection

from bandit.audit import doubled, replay
from bandit.checks import missing_triggers
from bandit.models import LedgerEntry
from grading.backups.manifest import CHUNK, SUMS, Manifest, checksum, sums
from grading.evidence import store
from grading.models import Evidence, Session
from grading.reward import state
from gradingsite.state import site_command

Step = Callable[[int], object]
AT_A_TIME = 1000


def problems_of_site(step: Step = lambda _done: None) -> Iterator[str]:
    """The problems of this site. `step` is called with 1 for each file of evidence that is read."""
    yield from problems_of_database()
    for difference in replay().differences:
        yield f"a bucket is not the ledger's sum: {difference}"
    for problem in doubled():
        yield f"a session counts more than once: {problem}"
    for _count, mismatches in state.rebuild():
        for mismatch in mismatches:
            yield f"a session's reward columns disagree with its other rows: {mismatch}; see {site_command('rebuild')}"
    yield from problems_of_evidence(step)


def problems_of_database() -> Iterator[str]:
    """The problems of the database itself: damaged pages, dangling references, missing triggers."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA quick_check(20)")
            problems = [problem for (problem,) in cursor.fetchall() if problem != "ok"]
            yield from (f"the database file is damaged: {problem}" for problem in problems)
            cursor.execute("PRAGMA foreign_key_check")
            for table, row, other, _ in cursor.fetchmany(20):
                yield f"row {row} of {table} refers to a row of {other} that is not there"
    record = ("bandit_ledgerentry", "grading_grade", "grading_settlement", "grading_evidence")
    for name in missing_triggers(record):
        yield f"the database no longer refuses changes to its record: the trigger {name} is missing"


def problems_of_evidence(step: Step) -> Iterator[str]:
    """The problems of evidence files: missing or damaged ones. A file that retention deleted is no problem."""
    for row in every_file():
        step(1)
        try:
            with store.open(row) as file:
                while file.read(CHUNK):
                    pass
        except store.Gone:
            continue
        except OSError as error:
            if Evidence.objects.filter(sha256=row.sha256).exists():  # not erased meanwhile
                yield f"{error}"


def every_file() -> Iterator[Evidence]:
    """An evidence row for each distinct hash, in order of the hash.

    They are loaded in batches, so that no query is open for long: while one is, SQLite can't shorten its write-ahead
    log.
    """
    last = ""
    while rows := list(Evidence.objects.filter(sha256__gt=last).order_by("sha256", "pk")[:AT_A_TIME]):
        for sha256, same in groupby(rows, key=lambda row: row.sha256):
            if sha256 != last:
                yield next(same)
            last = sha256


def counts() -> dict[str, int]:
    """How much the site holds, by name."""
    return {
        "sessions": Session.objects.count(),
        "rows of the ledger": LedgerEntry.objects.count(),
        "files of evidence": Evidence.objects.order_by().values("sha256").distinct().count(),
    }


# --- a backup


def problems_of_backup(backup: Path, contents: Manifest, step: Step = lambda _done: None) -> Iterator[str]:
    """The problems of a backup: files that are missing or have changed since it was made."""
    if not (backup / SUMS).is_file() or checksum(backup / SUMS) != contents.sums:
        yield f"{SUMS} is missing or has changed"
        return
    files = 0
    for path, digest in sums(backup):
        yield from problem_of_file(backup / path, digest)
        if path.endswith(SUMS):
            folder = (backup / path).parent
            for name, file_digest in sums(folder):
                step(1)
                files += 1
                yield from problem_of_file(folder / name, file_digest)
    if files != contents.files:
        yield f"expected {contents.files:,} files, found {files:,}"


def problem_of_file(path: Path, digest: str) -> Iterator[str]:
    if not path.is_file():
        yield f"{path} is missing"
    elif checksum(path) != digest:
        yield f"{path} has changed"
