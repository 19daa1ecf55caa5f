"""Restores a site from a backup, into an empty state folder and database."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from django.conf import settings
from django.contrib.sessions.models import Session as SignIn
from django.core.files import File
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from bandit.audit import fingerprint
from grading.backups import manifest
from grading.backups.databases import BackupProblem, put_back, rows_by_table, server_version, stopped
from grading.backups.manifest import DATABASES, EVIDENCE, SECRETS, SUMS, Manifest, sums
from grading.backups.verifying import problems_of_backup
from grading.health import planner
from grading.intake import erased, erasing, redacting
from grading.intake.erased import Erased, agent_digest, session_digest
from grading.models import Agent, BlobProblem, Session
from grading.models.health import BlobProblemKind
from gradingsite import schema
from gradingsite.state import site_command

Say = Callable[[str], None]
BATCH_SIZE = 50
WHO, WHY = site_command("restore"), "it was erased after the backup had been made"
# The files of a SQLite site in the state folder.
SITE_FILES = ("db.sqlite3", "db.sqlite3-wal", "db.sqlite3-shm", "evidence", "cache", "secret_key", "chance.key")


def restore(backup: Path, *, replace: bool, say: Say) -> None:
    """Restore the site to its state at the backup, and repeat the erasures made since.

    With `replace`, an existing site is moved aside. Raises NoBackup, and BackupProblem if the backup is damaged or of
    another kind, or if a site exists and `replace` is not set. The site is unchanged then.
    """
    contents = manifest.read(backup)
    erasures = erased.read(backup.parent)
    require_compatible(contents)
    with stopped():
        problem = next(iter(problems_of_backup(backup, contents)), None)
        if problem is not None:
            raise BackupProblem(f"{backup} is damaged: {problem}. Choose another one.")
        if not is_empty():
            if not replace:
                raise BackupProblem(
                    f"there is a site already: {settings.DATABASES['default']['NAME']} or {settings.MEDIA_ROOT} is "
                    "not empty. Name another GRADINGSITE_STATE, or add --replace, which moves that site aside"
                )
            say(f"Moved the site that was here to {move_aside()}.")
        restore_keys(backup, contents, say)
        put_back(backup / DATABASES[contents.database])
        require_same(contents)
        call_command("migrate", verbosity=0)
        for path in evidence_of(backup):
            name = f"{path.parent.name}/{path.name}"
            if not default_storage.exists(name):  # a bucket may still have it
                with path.open("rb") as file:
                    default_storage.save(name, File(file))
        os.sync()
        changed = redacting.redact_again(WHO)
        if changed:
            say(redacting.summary(changed))
        expired = [BlobProblem(sha256=sha256, kind=BlobProblemKind.EXPIRED) for sha256 in contents.gone]
        update = ("kind", "since", "what")
        BlobProblem.objects.bulk_create(expired, update_conflicts=True, unique_fields=["sha256"], update_fields=update)
        SignIn.objects.all().delete()
        planner.gather_statistics()
        say(f"Restored {contents.rows['grading_session']:,} sessions, as of {contents.made_at:%Y-%m-%d %H:%M:%S} UTC.")
        erase_again([erasure for erasure in erasures if erasure.at >= contents.made_at], say)
        if not (backup.parent / erased.FILE).is_file():
            say(f"There is no {erased.FILE} beside the backup, so data erased since then is back. Erase it again.")
        say(
            "People must sign in again. Tokens revoked and users deactivated since the backup work again: revoke and "
            "deactivate them again."
        )
        since_backup = f"--resend {contents.made_at:%Y-%m-%dT%H:%M:%SZ}"
        say(f"To send later sessions again, run on each agent's machine: submit_session.py {since_backup}")


def require_compatible(contents: Manifest) -> None:
    """Raise BackupProblem unless this code and this kind of database can restore the backup."""
    if contents.database != connection.vendor:
        raise BackupProblem(
            f"the backup is of {contents.database}, and DATABASE_URL names {connection.vendor}: restore it to its own "
            f"kind first; {site_command('move_to')} takes a site from SQLite to PostgreSQL"
        )
    if contents.server > server_version():
        raise BackupProblem(
            f"the backup is of PostgreSQL {contents.server}, and this server is {server_version()}: use as new a server"
        )
    if newer := schema.unknown(contents.migrations):
        app, name = newer[0]
        raise BackupProblem(f"the backup is of a newer version, which has {app}.{name}: use that version's code")
    try:
        schema.require_upgradable(contents.migrations)
    except schema.SchemaMismatch as error:
        raise BackupProblem(f"the backup is of an older version. {error}") from error


def is_empty() -> bool:
    """Whether there is no site here: no tables, and no files of evidence on disk."""
    folder = Path(settings.MEDIA_ROOT)
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])
        has_tables = path.exists() and path.stat().st_size > 0
    else:
        has_tables = bool(connection.introspection.table_names())
    return not has_tables and not names - {"incoming"}


def move_aside() -> Path:
    """Move the existing site into a folder of its own, and return its path. Raises BackupProblem for PostgreSQL."""
    if connection.vendor != "sqlite":
        raise BackupProblem("--replace is for SQLite: make an empty database in PostgreSQL, and name that")
    connection.close()
    state = settings.STATE_DIR
    aside: Path = state / f"replaced-{timezone.now():%Y-%m-%dT%H-%M-%SZ}"
    aside.mkdir(mode=0o700)
    for name in SITE_FILES:
        if (state / name).exists():
            (state / name).rename(aside / name)
    return aside


def restore_keys(backup: Path, contents: Manifest, say: Say) -> None:
    """Write the backup's keys to where the site reads them, replacing those that were created at the start."""
    for name, variable in (("secret_key", "SECRET_KEY"), ("chance.key", "CHANCE_KEY_FILE")):
        if name not in contents.secrets:
            say(
                f"The backup has no {name}: put yours into {settings.STATE_DIR} before the first start, if you kept it."
            )
        elif os.environ.get(variable):
            say(f"{variable} is set: the backup's {name} is not used. It is in {backup / SECRETS}.")
        else:
            (settings.STATE_DIR / name).write_bytes((backup / SECRETS / name).read_bytes())
            if name == "chance.key":
                settings.CHANCE_KEY = (backup / SECRETS / name).read_bytes()


def evidence_of(backup: Path) -> Iterator[Path]:
    """The paths of the evidence files in a backup."""
    for checksums in sorted((backup / EVIDENCE).glob(f"*/{SUMS}")):
        folder = checksums.parent
        yield from (folder / name for name, _digest in sums(folder))


def require_same(contents: Manifest) -> None:
    """Raise BackupProblem if the restored database differs from the one that was backed up.

    The tables of SQLite's own statistics are ignored: a backup counts them, and the site's database backend hides them.
    """
    counts = rows_by_table("default")
    wrong = [
        f"{table}: {counts.get(table)} rows for {rows}"
        for table, rows in contents.rows.items()
        if counts.get(table) != rows and not table.startswith("sqlite_")
    ]
    if wrong:
        raise BackupProblem(f"the restored database differs from the backup: {'; '.join(wrong)}")
    is_current = not schema.missing()
    if is_current and fingerprint() != contents.ledger:
        raise BackupProblem("the restored ledger differs from the backup's, although each table has as many rows")


def erase_again(erasures: Iterable[Erased], say: Say) -> None:
    """Repeat these erasures, which were made after the backup: erased data must not come back by a restore."""
    digests = {digest for erasure in erasures for digest in erasure.digests}
    if not digests:
        return
    rows = Session.objects.order_by("pk").values_list("pk", "agent__name", "external_id")
    sessions = [pk for pk, agent, name in rows.iterator() if session_digest(agent, name) in digests]
    agents = [agent for agent in Agent.objects.order_by("pk") if agent_digest(agent.name) in digests]
    erasing.overwrite_deleted()
    for start in range(0, len(sessions), BATCH_SIZE):
        batch = sessions[start : start + BATCH_SIZE]
        later = frozenset(sessions[start + BATCH_SIZE :])
        erasing.erase(Session.objects.filter(pk__in=batch), who=WHO, why=WHY, leaving=later)
    for agent in agents:
        for _done in erasing.erase_agent(agent, who=WHO, why=WHY):
            pass
    if sessions or agents:
        say(f"Erased again what was erased after the backup: {len(sessions):,} sessions, {len(agents):,} agents.")
        say("\n".join(erasing.finish()))
