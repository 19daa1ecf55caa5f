"""Makes a backup while the site runs: first a snapshot of the database, then the evidence that its rows refer to.

Evidence is stored before its row, so all evidence that the snapshot refers to was stored at that moment.
"""

import datetime as dt
import fcntl
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from bandit.audit import fingerprint
from grading.backups import keeping, manifest
from grading.backups.blobs import EvidenceCopy, collect
from grading.backups.databases import BackupProblem, rows_by_table, server_version, snapshot
from grading.backups.manifest import EVIDENCE, SECRETS, SUMS, UNFINISHED, Manifest
from grading.intake import erased

logger = logging.getLogger(__name__)

Say = Callable[[str], None]
MAX_HASHES = 5


def make(target: Path, *, with_secrets: bool, say: Say) -> Path:
    """Make a backup in the folder `target` and delete expired ones. Returns the path of the new backup.

    Raises BackupProblem. A failed or killed run leaves nothing that could be taken for a backup.
    """
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    with alone(target):
        for leftover in target.glob(f"{UNFINISHED}*"):
            shutil.rmtree(leftover)
        made_at = unused_moment(target)
        finished = target / made_at.strftime(manifest.NAME)
        draft = target / f"{UNFINISHED}{finished.name}"
        draft.mkdir(mode=0o700)
        earlier = manifest.finished(target)
        previous = earlier[-1] if earlier else None
        try:
            done = fill(draft, previous, made_at, with_secrets=with_secrets)
            draft.rename(finished)
            erased.append(erased.recorded(), target)
        except OSError as error:
            raise BackupProblem(f"the backup was not finished: {error}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        os.sync()
        report(finished, done, say)
        for old in prune(target, made_at):
            say(f"Deleted {old}: of older backups the last of seven days and of four weeks are kept.")
    return finished


def at_night() -> None:
    """Make the nightly backup, if BACKUP_NIGHTLY is set. Raises BackupProblem."""
    if settings.BACKUP_NIGHTLY and settings.BACKUP_DIR is not None:
        make(settings.BACKUP_DIR, with_secrets=True, say=logger.info)


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """In this block, no other backup is made in this folder. Raises BackupProblem if one is being made already."""
    with (target / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupProblem(f"another backup is being made in {target}: wait for it to end") from None
        yield


def unused_moment(target: Path) -> dt.datetime:
    """The current time, once no backup in the folder is named after it."""
    while True:
        made_at = timezone.now()
        if not (target / made_at.strftime(manifest.NAME)).exists():
            return made_at
        time.sleep(0.1)


def fill(backup: Path, previous: Path | None, made_at: dt.datetime, *, with_secrets: bool) -> EvidenceCopy:
    """Write a backup's files, then its manifest once they are safe on disk."""
    with snapshot(backup) as alias:
        secrets = keep_secrets(backup / SECRETS) if with_secrets else ()
        done = collect(backup, previous, alias)
        paths = [manifest.DATABASES[connection.vendor], *(f"{SECRETS}/{name}" for name in secrets)]
        paths += sorted(str(file.relative_to(backup)) for file in (backup / EVIDENCE).glob(f"*/{SUMS}"))
        lines = (f"{manifest.checksum(backup / path)}  {path}\n" for path in paths)
        (backup / SUMS).write_text("".join(lines))
        os.sync()
        Manifest(
            made_at=made_at,
            database=connection.vendor,
            server=server_version(),
            migrations=tuple(MigrationRecorder(connections[alias]).applied_migrations()),
            rows=rows_by_table(alias),
            ledger=fingerprint(alias),
            files=done.copied + done.linked + len(done.rescued),
            secrets=secrets,
            lacking=tuple(done.lacking),
            gone=tuple(done.gone),
            sums=manifest.checksum(backup / SUMS),
        ).write(backup)
    return done


def keep_secrets(folder: Path) -> tuple[str, ...]:
    """Write the site's keys to a folder. Returns their names. A key set in the environment isn't backed up."""
    folder.mkdir(mode=0o700)
    keys = {"chance.key": settings.CHANCE_KEY}
    file = settings.STATE_DIR / "secret_key"
    if file.is_file() and file.read_text().strip() == settings.SECRET_KEY:
        keys["secret_key"] = settings.SECRET_KEY.encode()
    for name, key in keys.items():
        (folder / name).write_bytes(key)
    return tuple(sorted(keys))


def report(backup: Path, done: EvidenceCopy, say: Say) -> None:
    """Report what was backed up, and what the owner should know about it."""
    contents = manifest.read(backup)
    sessions = contents.rows.get("grading_session", 0)
    say(
        f"Made {backup}: {sessions:,} sessions, {contents.files:,} files: evidence, and files derived from it "
        f"({done.copied:,} copied, {done.linked:,} linked to the backup before)."
    )
    if contents.secrets:
        say(
            "It holds the site's keys: whoever reads it can predict draws, and read second factors. Keep it as private "
            "as the site, or leave them out with --without-secrets."
        )
    if "secret_key" not in contents.secrets:
        say("SECRET_KEY is not in it: without it, second factors must be set up again. Keep it elsewhere.")
    if backup.stat().st_dev == settings.STATE_DIR.stat().st_dev:
        say("It is on the same disk as the site, so both can be lost together. Copy it to another machine.")
    if done.rescued:
        say(f"{counted(done.rescued)} lost on the site, and taken from the backup before.")
    if done.lacking:
        say(f"{counted(done.lacking)} lost or damaged on the site, so that the backup lacks them too.")


def counted(hashes: list[str]) -> str:
    """The number of these hashes and some examples, as the start of a sentence."""
    examples = ", ".join(sha256[:12] for sha256 in hashes[:MAX_HASHES])
    return f"{len(hashes):,} files of evidence ({examples}, …) are"


def prune(target: Path, now: dt.datetime) -> list[str]:
    """Delete expired backups. Returns their names."""
    moments = {path: manifest.moment_of(path) for path in manifest.finished(target)}
    by_moment = {moment: path for path, moment in moments.items() if moment is not None}
    expired = [by_moment[moment] for moment in sorted(by_moment.keys() - keeping.to_keep(by_moment, now))]
    for path in expired:
        renamed = target / f"{UNFINISHED}{path.name}"  # so that a half-deleted backup does not look like a backup
        path.rename(renamed)
        shutil.rmtree(renamed)
    return [path.name for path in expired]
