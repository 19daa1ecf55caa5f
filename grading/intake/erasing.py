"""Erasing sessions and agents with everything that belongs to them, also in the ledger, as recorded acts.

sessions ─► for an agent: its decisions, keys, tokens, events ─► the agent ─► `scrub` the database's files
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

from bandit import ledger
from bandit.erasure import permit
from bandit.models import Assignment, Bucket, Grader, LedgerEntry, Selection
from bandit.packed import PackedJSONField
from grading import spending
from grading.evidence import artifact_copies, ownership, store, transcripts
from grading.intake import erased
from grading.intake.assessment import assess
from grading.models import (
    AbstentionDraw,
    Agent,
    Alarm,
    AuditEvent,
    Comment,
    Evidence,
    Grade,
    JudgeAttempt,
    JudgeJob,
    Notice,
    Project,
    Reveal,
    ReviewAnswer,
    Session,
    SessionShares,
    Settlement,
    Submission,
)
from grading.monitoring.watch import refresh_alarms
from grading.spending import messages

BATCH_SIZE = 50
# Tables whose rows are deleted if their text names the agent.
TEXT_MODELS = (AuditEvent, Alarm, Notice, LogEntry)
CHECKPOINT_TRIES, PAUSE_SECONDS = 50, 0.2


def erase(sessions: QuerySet[Session], *, who: str, why: str, leaving: frozenset[int] = frozenset()) -> dict[str, int]:
    """Delete these sessions with their evidence, grades and rewards. Returns the number of deleted rows by table.

    The buckets are afterwards those of a site that never had these sessions. Bytes that no other session needs are
    deleted when the transaction is committed. `who` and `why` are recorded. The sessions `leaving` (by key) are erased
    next, so they don't become owners of what these owned.
    """
    digests: list[str] = []
    with permit(who=who, why=why, digests=digests) as counts:
        ownership.lock()
        erased_sessions = list(sessions.select_related("agent").order_by("pk"))
        digests += [erased.session_digest(each.agent.name, each.external_id) for each in erased_sessions]
        heirs = [each for each in ownership.relatives(erased_sessions) if each.pk not in leaving]
        copies: set[int] = set()
        for session in erased_sessions:
            texts = artifact_copies.stored_texts(session)
            copies |= {copy.pk for copy in artifact_copies.affected_sessions(session, texts)}
        copies -= leaving
        ids = [session.pk for session in erased_sessions]
        affected = {*ids, *(session.pk for session in heirs), *copies}
        ownership.lock_sessions(affected)
        payers = {*messages.sharers(ids), *(each.pk for each in heirs)} - leaving
        hashes = set(Evidence.objects.filter(session__in=ids).values_list("sha256", flat=True))
        ledger.erase([session.observation for session in erased_sessions], counts)
        delete(counts, AbstentionDraw.objects.filter(session__in=ids))
        delete(counts, SessionShares.objects.filter(session__in=ids))
        delete(counts, JudgeAttempt.objects.filter(job__session__in=ids))
        delete(counts, JudgeJob.objects.filter(session__in=ids))
        delete(counts, Comment.objects.filter(session__in=ids))
        delete(counts, Reveal.objects.filter(session__in=ids))
        answers = ReviewAnswer.objects.filter(session__in=ids)
        while answers.exists():  # an undo before the answer that it undoes
            delete(counts, answers.filter(undone_by=None))
        delete(counts, Settlement.objects.filter(session__in=ids))
        grades = Grade.objects.filter(session__in=ids)
        while grades.exists():  # a grade that withdraws another before that one, a repeated reading before the first
            delete(counts, grades.filter(withdrawn_by=None, read_again=None))
        counts["artifact"] += ownership.delete_claims(erased_sessions)
        delete(counts, Submission.objects.filter(session__in=ids))
        delete(counts, Evidence.objects.filter(session__in=ids))
        delete(counts, Session.objects.filter(pk__in=ids))
        delete(counts, Project.objects.filter(sessions=None))  # its address may name the agent
        regained = ownership.update(heirs) | copies
        for session in ownership.lock_sessions(regained & affected):
            assess(session, enqueue=False)
        for session in ownership.lock_sessions(payers):
            spending.record(session)
        refresh_alarms()
        transaction.on_commit(lambda: discard_files(hashes))
        transaction.on_commit(erased.append_to_backups)
    return dict(counts)


def delete(counts: Counter[str], rows: QuerySet[Any]) -> None:
    """Delete rows and what cascades from them (artifacts, flags), and count both."""
    for label, count in rows.delete()[1].items():
        counts[label.rpartition(".")[2].lower()] += count


def discard_files(hashes: set[str]) -> None:
    """Delete the bytes with these hashes that no evidence refers to, and what was derived from them."""
    for sha256 in hashes:
        if store.discard(sha256):
            transcripts.forget(sha256)


def erase_agent(agent: Agent, *, who: str, why: str) -> Iterator[tuple[int, dict[str, int]]]:
    """Delete an agent with its sessions. Iterate to the end, outside of any transaction, and call `finish` afterwards.

    Yields after each batch the number of sessions deleted so far, and the number of rows that the batch deleted, by
    table; at the end, the same for the agent's other rows. If it was interrupted, it can be started again. `who` is
    recorded, and `why` without the agent's name.
    """
    why = _name_pattern(agent.name).sub("the agent", why)
    overwrite_deleted()
    keys = list(Session.objects.filter(agent=agent).order_by("pk").values_list("pk", flat=True))
    done = 0
    while keys:
        batch, keys = keys[:BATCH_SIZE], keys[BATCH_SIZE:]
        counts = erase(Session.objects.filter(pk__in=batch), who=who, why=why, leaving=frozenset(keys))
        done += len(batch)
        yield done, counts
    with permit(who=who, why=why, digests=[erased.agent_digest(agent.name)]) as counts:
        transaction.on_commit(erased.append_to_backups)
        delete(counts, Selection.objects.filter(agent=agent.name))
        delete(counts, Assignment.objects.filter(agent=agent.name))
        # The rewards of the agent's sessions are gone by now. A reward that was recorded without a session may still
        # refer to a grader of that name, and the ledger needs its row: `remaining_mentions` reports it.
        is_used = Q(pk__in=LedgerEntry.objects.values("grader")) | Q(pk__in=Bucket.objects.values("grader"))
        delete(counts, Grader.objects.filter(agent=agent.name).exclude(is_used))
        for model in TEXT_MODELS:
            delete(counts, model.objects.filter(pk__in=[row.pk for row in _rows_naming(model, agent.name)]))
        delete(counts, Agent.objects.filter(pk=agent.pk))
    yield done, dict(counts)


def _name_pattern(name: str) -> re.Pattern[str]:
    """A pattern that matches the name as a word of its own, ignoring case."""
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)


def _rows_naming(model: Any, name: str) -> list[models.Model]:
    """The rows of a table in which a column of text or JSON contains the name as a word of its own.

    SQL preselects the rows that contain the name at all, unless a column is compressed.
    """
    fields = model._meta.concrete_fields  # noqa: SLF001 - Django's documented API
    kinds = (models.CharField, models.TextField, models.JSONField)
    columns = [field.attname for field in fields if isinstance(field, kinds)]
    contains = Q()
    if not any(isinstance(field, PackedJSONField) for field in fields):  # a packed column is compressed
        for column in columns:
            contains |= Q(**{f"{column}__icontains": name})
    pattern = _name_pattern(name)
    rows = model.objects.filter(contains).iterator() if columns else ()
    return [row for row in rows if any(pattern.search(str(getattr(row, column))) for column in columns)]


def remaining_mentions(name: str) -> dict[str, int]:
    """The number of rows that still contain the name, by table: what people wrote, such as a saved view."""
    counts: dict[str, int] = {}
    for label in ("grading", "bandit", "auth", "admin"):
        for model in apps.get_app_config(label).get_models():
            if count := len(_rows_naming(model, name)):
                counts[model.__name__] = count
    return counts


def count_rows(sessions: QuerySet[Session]) -> dict[str, int]:
    """The number of rows that an erasure of these sessions would delete, for people to see before they agree."""
    observations = [each.observation for each in sessions.only("pk")]
    return {
        "sessions": sessions.count(),
        "files": Evidence.objects.filter(session__in=sessions).count(),
        "grades": Grade.objects.filter(session__in=sessions).count(),
        "settlements": Settlement.objects.filter(session__in=sessions).count(),
        "rewards": LedgerEntry.objects.filter(observation__in=observations).count(),
    }


# --- the files of the database ---------------------------------------------------------------------------------------


def overwrite_deleted() -> None:
    """Have SQLite overwrite with zeros what this connection deletes from now on."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete = ON")


def scrub() -> str:
    """Remove deleted rows from the database files, outside of any transaction.

    Returns a sentence that says where deleted bytes remain, or an empty string if they remain nowhere.
    """
    if connection.vendor != "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
        return (
            "PostgreSQL overwrites the space as new rows come. Until then, and in its write-ahead log, archives and "
            "replicas until those are recycled, the bytes are there: VACUUM FULL and a new base backup end that."
        )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
        for _ in range(CHECKPOINT_TRIES):
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (is_busy, *_rest) = cursor.fetchone()
            if not is_busy:
                return ""
            time.sleep(PAUSE_SECONDS)
    return "Another process is reading the database, so that its log could not be emptied: restart the site."


def describe_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)


def finish() -> list[str]:
    """Scrub the database files. Returns what erasing can't reach, as sentences for the person who started it."""
    copies = "Backups made by other means still hold it, until they are deleted; so does what the site printed."
    folder = settings.BACKUP_DIR
    files = [] if folder is None or not folder.is_dir() else list(folder.iterdir())
    names = sorted(path.name for path in files if not path.name.startswith((erased.FILE, ".")))
    if names:
        copies = (
            f"Backups in {settings.BACKUP_DIR} still hold it, until they are deleted: {', '.join(names)}. A restore "
            f"erases it again, as long as {erased.FILE} is beside them."
        )
    return [line for line in (scrub(), copies) if line]
