"""Erasing an agent with everything that says its name, and its traces in the database's files.

sessions, a few at a time ─► its decisions, keys, tokens, events ─► the agent ─► `scrub`
"""

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.db import connection, models, transaction
from django.db.models import Q, QuerySet

from bandit.erasure import permit
from bandit.models import Assignment, Bucket, Grader, LedgerEntry, Selection
from bandit.packed import PackedJSONField
from grading.intake import erased
from grading.intake.erasing import delete, erase
from grading.models import Agent, Alarm, AuditEvent, Evidence, Grade, Notice, Session, Settlement

AT_A_TIME = 50
# What may say an agent's name in words, and goes where it does.
SAYING = (AuditEvent, Alarm, Notice, LogEntry)
TRIES, PAUSE_SECONDS = 50, 0.2


def erase_agent(agent: Agent, *, who: str, why: str) -> Iterator[tuple[int, dict[str, int]]]:
    """Delete an agent with its sessions, as if it had never been. Yields how many sessions are gone, and what went with
    them; the last time, what else did. To be iterated to its end, outside of any transaction; then comes `scrub`.

    Stopped half way it can be begun again. `why` is kept without the agent's name.
    """
    says = named(agent.name)
    why = says.sub("the agent", why)
    remember_nothing()
    keys = list(Session.objects.filter(agent=agent).order_by("pk").values_list("pk", flat=True))
    done = 0
    while keys:
        now, keys = keys[:AT_A_TIME], keys[AT_A_TIME:]
        counts = erase(Session.objects.filter(pk__in=now), who=who, why=why, leaving=frozenset(keys))
        done += len(now)
        yield done, counts
    with permit(who=who, why=why, digests=[erased.digest_of_agent(agent.name)]) as counts:
        transaction.on_commit(erased.tell_backups)
        for made in (Selection, Assignment):
            delete(counts, made.objects.filter(agent=agent.name))
        used = [row.objects.values("grader") for row in (LedgerEntry, Bucket)]
        delete(counts, Grader.objects.filter(agent=agent.name).exclude(Q(pk__in=used[0]) | Q(pk__in=used[1])))
        for model in SAYING:
            delete(counts, model.objects.filter(pk__in=[row.pk for row in saying(model, agent.name)]))
        delete(counts, Agent.objects.filter(pk=agent.pk))
    yield done, dict(counts)


def named(name: str) -> re.Pattern[str]:
    """Finds the name as a word of its own."""
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)


def saying(model: Any, name: str) -> list[models.Model]:
    """The rows of a table in which a column of text, or of JSON, says the name as a word of its own."""
    fields = model._meta.concrete_fields  # noqa: SLF001 - Django's documented API
    kinds = (models.CharField, models.TextField, models.JSONField)
    columns = [field.attname for field in fields if isinstance(field, kinds)]
    wanted = Q()
    if not any(isinstance(field, PackedJSONField) for field in fields):  # which no query looks into
        for column in columns:
            wanted |= Q(**{f"{column}__icontains": name})
    says = named(name)
    rows = model.objects.filter(wanted).iterator() if columns else ()
    return [row for row in rows if any(says.search(str(getattr(row, column))) for column in columns)]


def left(name: str) -> dict[str, int]:
    """Where the name is still said, by table: what people wrote themselves, such as the query of a saved view."""
    found = Counter[str]()
    for label in ("grading", "bandit", "auth", "admin"):
        for model in apps.get_app_config(label).get_models():
            found[model.__name__] = len(saying(model, name))
    return {table: count for table, count in found.items() if count}


def counts_of(sessions: QuerySet[Session]) -> dict[str, int]:
    """What an erasure of these sessions would take, for people to see before they agree."""
    held = {"sessions": sessions.count()}
    for name, model in {"files": Evidence, "grades": Grade, "settlements": Settlement}.items():
        held[name] = model.objects.filter(session__in=sessions).count()  # type: ignore[attr-defined]  # each has one
    observations = [each.observation for each in sessions.only("pk")]
    held["rewards"] = LedgerEntry.objects.filter(observation__in=observations).count()
    return held


# --- the files of the database ---------------------------------------------------------------------------------------


def remember_nothing() -> None:
    """From now on SQLite overwrites with zeros what this connection deletes."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete = ON")


def scrub() -> str:
    """Take what was deleted out of the database's files, outside of any transaction. What remains of it, in words."""
    if connection.vendor != "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
        return (
            "PostgreSQL overwrites the space as new rows come. Until then, and in its write-ahead log, archives and "
            "replicas until those are recycled, the bytes are there: VACUUM FULL and a new base backup end that."
        )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
        for _ in range(TRIES):
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (is_busy, *_rest) = cursor.fetchone()
            if not is_busy:
                return ""
            time.sleep(PAUSE_SECONDS)
    return "Another process is reading the database, so that its log could not be emptied: restart the site."


def backups() -> list[str]:
    """The backups that were made before now, and hold what was erased, by their names."""
    folder = settings.BACKUP_DIR
    if folder is None or not folder.is_dir():
        return []
    own = (erased.FILE, ".")
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(own))


def told(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)


def finish() -> list[str]:
    """`scrub`, and what erasing cannot reach, for whoever asked for it to read."""
    kept = "Backups made by other means still hold it, until they are deleted; so does what the site printed."
    if names := backups():
        kept = (
            f"Backups in {settings.BACKUP_DIR} still hold it, until they are deleted: {', '.join(names)}. A restore "
            f"erases it again, as long as {erased.FILE} is beside them."
        )
    return [line for line in (scrub(), kept) if line]
