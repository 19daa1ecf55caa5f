"""Erasing sessions: everything that hangs on them, out of the ledger as well, as one recorded act (L3)."""

from collections import Counter
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from bandit import ledger
from bandit.erasure import permit
from grading import monitoring
from grading.evidence import near_copies, ownership, store, transcripts
from grading.intake import erased
from grading.intake.assessment import assess
from grading.models import (
    AbstentionDraw,
    Comment,
    Evidence,
    Grade,
    JudgeAttempt,
    JudgeJob,
    Reveal,
    ReviewAnswer,
    Session,
    SessionShares,
    Settlement,
    Submission,
)


def erase(sessions: QuerySet[Session], *, who: str, why: str, leaving: frozenset[int] = frozenset()) -> dict[str, int]:
    """Delete these sessions with their evidence, grades and rewards, as if they had never been; what was deleted.

    The buckets are afterwards those of a site that never saw them. Bytes that no other session needs go when the
    transaction is committed. `who` and `why` stay on record. Those `leaving` are erased next, and inherit nothing.
    """
    digests: list[str] = []
    with permit(who=who, why=why, digests=digests) as counts:
        ownership.lock()
        held = list(sessions.select_related("agent").order_by("pk"))
        digests += [erased.digest_of_session(each.agent.name, each.external_id) for each in held]
        heirs = [each for each in ownership.relatives(held) if each.pk not in leaving]
        copies = {each.pk for session in held for each in near_copies.affected_sessions(session, frozenset())} - leaving
        affected = {*(session.pk for session in (*held, *heirs)), *copies}
        ownership.lock_sessions(affected)
        ids = [session.pk for session in held]
        hashes = set(Evidence.objects.filter(session__in=ids).values_list("sha256", flat=True))
        ledger.erase([session.observation for session in held], counts)
        delete(counts, AbstentionDraw.objects.filter(session__in=ids))
        delete(counts, SessionShares.objects.filter(session__in=ids))
        delete(counts, JudgeAttempt.objects.filter(job__session__in=ids))
        delete(counts, JudgeJob.objects.filter(session__in=ids))
        delete(counts, Comment.objects.filter(session__in=ids))
        delete(counts, Reveal.objects.filter(session__in=ids))
        answers = ReviewAnswer.objects.filter(session__in=ids)
        while answers.exists():  # the undo before what it undoes
            delete(counts, answers.filter(undone_by=None))
        delete(counts, Settlement.objects.filter(session__in=ids))
        grades = Grade.objects.filter(session__in=ids)
        while grades.exists():  # the last undo of an undo first, and what was read again before its first reading
            delete(counts, grades.filter(withdrawn_by=None, read_again=None))
        counts["artifact"] += ownership.delete_claims(held)
        delete(counts, Submission.objects.filter(session__in=ids))
        delete(counts, Evidence.objects.filter(session__in=ids))
        delete(counts, Session.objects.filter(pk__in=ids))
        won = ownership.update(heirs) | copies
        for session in ownership.lock_sessions(won & affected):
            assess(session, enqueue=False)
        monitoring.refresh()
        transaction.on_commit(lambda: _discard(hashes))
        transaction.on_commit(erased.tell_backups)
    return dict(counts)


def delete(counts: Counter[str], rows: QuerySet[Any]) -> None:
    """Deletes rows and what cascades from them (artifacts, flags), and counts both."""
    for label, count in rows.delete()[1].items():
        counts[label.rpartition(".")[2].lower()] += count


def _discard(hashes: set[str]) -> None:
    for sha256 in hashes:
        if store.discard(sha256):
            transcripts.forget(sha256)
