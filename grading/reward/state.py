"""The current state of each session: a denormalised row for lists, derived from its settlements, verdicts and flags.

settle ─► write        (one session, from the rows that settling loaded)
at night ─► audit      (sessions that changed, and a share of all others)
manage.py rebuild ─► rebuild
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Mod

from bandit import ledger
from bandit.models import Bandit
from grading.models import Flag, Grade, Session, SessionState, Settlement
from grading.models.state import question_of

CHUNK_SIZE = 500
# Each night the audit compares one in this many of the sessions in which nothing happened.
AUDIT_NIGHTS = 100
COLUMNS = ("ended_at", "category", "value", "source", "final", "weight", "reason", "flags", "question")
POINTERS = ("settlement", "verdict")
COMPARED = (*COLUMNS, *(f"{name}_id" for name in POINTERS))


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMismatch:
    """A session's state that differs from the one computed from its other rows. `stored` is None if it is missing."""

    stored: SessionState | None
    computed: SessionState

    def __str__(self) -> str:
        columns = ", ".join(self.columns) if self.stored else "the row is missing"
        return f"session {self.computed.pk}: {columns}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that differ; all of them if there is no state."""
        return _differing(self.stored, self.computed) if self.stored else COMPARED

    def lines(self) -> Iterator[str]:
        """A line for each column that differs, with both values; one line if there is no state."""
        if self.stored is None:
            yield f"session {self.computed.pk}, state: stored none, computed one of value {self.computed.value}"
            return
        for name in self.columns:
            stored, computed = getattr(self.stored, name), getattr(self.computed, name)
            yield f"session {self.computed.pk}, {name}: stored {_printed(stored)}, computed {_printed(computed)}"


def write(session: Session, settlement: Settlement, verdict: Grade | None, flags: int) -> None:
    """Update the session's state if it differs. The session must be locked and its `state` freshly loaded."""
    row = _derived(session, settlement, verdict, flags)
    stored: SessionState | None = getattr(session, "state", None)
    if stored is None or _differing(stored, row):
        if stored is not None and stored.category != row.category:
            # Cached results of the bandit's last revision are out of date.
            ledger.touch(Bandit.objects.named("category"))
        save([row])
        session.state = row


def save(rows: Sequence[SessionState]) -> None:
    """Insert or update these states."""
    SessionState.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["session"], update_fields=[*COLUMNS, *POINTERS]
    )


def derived(sessions: Sequence[Session]) -> list[SessionState]:
    """Compute the states of these sessions from their other rows. Three queries."""
    keys = [session.pk for session in sessions]
    settled = Settlement.objects.filter(session__in=keys).defer("steps", "sentence").order_by("session", "revision")
    last = {settlement.session_id: settlement for settlement in settled}
    readings = Grade.objects.chain().verdicts().first_readings().filter(session__in=keys)
    verdicts = {grade.session_id: grade for grade in readings.only("session", "rubric", "version").order_by("pk")}
    flags = dict(Flag.objects.open().filter(session__in=keys).order_by().values_list("session").annotate(n=Count("pk")))
    return [
        _derived(session, last.get(session.pk), verdicts.get(session.pk), flags.get(session.pk, 0))
        for session in sessions
    ]


def audit(now: dt.datetime) -> list[StateMismatch]:
    """The wrong states among sessions that changed in the last two days, and among a hundredth of all others."""
    since = now - dt.timedelta(days=2)
    settled = Settlement.objects.filter(created_at__gte=since).values("session")
    tonight = Q(turn=now.toordinal() % AUDIT_NIGHTS)
    sessions = Session.objects.annotate(turn=Mod("pk", AUDIT_NIGHTS))
    wrong: list[StateMismatch] = []
    for _count, mismatches in _compare(sessions.filter(Q(pk__in=settled) | Q(received_at__gte=since) | tonight)):
        wrong += mismatches
    return wrong


def rebuild(*, repair: bool = False) -> Iterator[tuple[int, list[StateMismatch]]]:
    """Compare the states of all sessions. Yields the number of sessions and the wrong states of each chunk.

    With `repair`, wrong states are replaced, each chunk in a transaction of its own. An interrupted run can be started
    again.
    """
    return _compare(Session.objects.all(), repair=repair)


def _compare(sessions: QuerySet[Session], *, repair: bool = False) -> Iterator[tuple[int, list[StateMismatch]]]:
    after = 0
    while True:
        next_sessions = sessions.filter(pk__gt=after).order_by("pk")
        if repair:
            with transaction.atomic():
                chunk = list(next_sessions.select_for_update()[:CHUNK_SIZE])
                mismatches = _mismatches(chunk)
                if any("category" in mismatch.columns for mismatch in mismatches):
                    ledger.touch(Bandit.objects.named("category"))  # as `write` does
                save([mismatch.computed for mismatch in mismatches])
        else:
            chunk = list(next_sessions[:CHUNK_SIZE])
            # A session may change between two of these queries: what seems wrong is loaded and compared again.
            suspects = [mismatch.computed.pk for mismatch in _mismatches(chunk)]
            mismatches = _mismatches(Session.objects.filter(pk__in=suspects).order_by("pk"))
        if not chunk:
            return
        yield len(chunk), mismatches
        after = chunk[-1].pk


def _mismatches(sessions: Iterable[Session]) -> list[StateMismatch]:
    sessions = list(sessions)
    states = SessionState.objects.in_bulk([session.pk for session in sessions])
    pairs = [(states.get(computed.pk), computed) for computed in derived(sessions)]
    return [
        StateMismatch(stored=stored, computed=computed)
        for stored, computed in pairs
        if stored is None or _differing(stored, computed)
    ]


def _derived(session: Session, settlement: Settlement | None, verdict: Grade | None, flags: int) -> SessionState:
    fields: dict[str, Any] = {"ended_at": session.ended_at, "category": session.category_id}
    if settlement is not None:
        fields |= {name: getattr(settlement, name) for name in ("value", "source", "final", "weight", "reason")}
    if verdict is not None:
        fields |= {"verdict": verdict, "question": question_of(verdict.rubric, verdict.version)}
    return SessionState(session_id=session.pk, settlement=settlement, flags=flags, **fields)


def _differing(stored: SessionState, computed: SessionState) -> tuple[str, ...]:
    return tuple(name for name in COMPARED if getattr(stored, name) != getattr(computed, name))


def _printed(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)
