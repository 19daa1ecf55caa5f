"""The current-state rows: what holds of each session, written where its reward moves, and derived anew to audit that.

settle ─► write        (one session, from the rows that settling loaded)
at night ─► audit      (what changed since, and a share of all the others)
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

CHUNK = 500
# Of the sessions in which nothing happened, the audit looks at every so-manieth a night.
SHARE = 100
COLUMNS = ("ended_at", "category", "value", "source", "final", "weight", "reason", "flags", "question")
POINTERS = ("settlement", "verdict")
COMPARED = (*COLUMNS, *(f"{name}_id" for name in POINTERS))


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMismatch:
    """A session's state that differs from what its other rows say. `stored` is None if there is no state."""

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
    """Make the session's state say what holds, where it does not; the session is locked and its `state` as it is."""
    row = _derived(session, settlement, verdict, flags)
    held: SessionState | None = getattr(session, "state", None)
    if held is None or _differing(held, row):
        if held is not None and held.category != row.category:
            # What was read of the bandit under its last revision holds no more.
            ledger.touch(Bandit.objects.named("category"))
        save([row])
        session.state = row


def save(rows: Sequence[SessionState]) -> None:
    """Insert or update these."""
    SessionState.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["session"], update_fields=[*COLUMNS, *POINTERS]
    )


def derived(sessions: Sequence[Session]) -> list[SessionState]:
    """What the states of these sessions have to be: three queries."""
    keys = [session.pk for session in sessions]
    settled = Settlement.objects.filter(session__in=keys).defer("steps", "sentence").order_by("session", "revision")
    last = {settlement.session_id: settlement for settlement in settled}
    read = Grade.objects.chain().verdicts().first_readings().filter(session__in=keys)
    verdicts = {grade.session_id: grade for grade in read.only("session", "rubric", "version").order_by("pk")}
    flags = dict(Flag.objects.open().filter(session__in=keys).order_by().values_list("session").annotate(n=Count("pk")))
    return [
        _derived(session, last.get(session.pk), verdicts.get(session.pk), flags.get(session.pk, 0))
        for session in sessions
    ]


def audit(now: dt.datetime) -> list[StateMismatch]:
    """The states that are wrong: among sessions in which anything moved in two days, and a hundredth of all others."""
    since = now - dt.timedelta(days=2)
    moved = Settlement.objects.filter(created_at__gte=since).values("session")
    tonight = Q(turn=now.toordinal() % SHARE)
    sessions = Session.objects.annotate(turn=Mod("pk", SHARE))
    wrong: list[StateMismatch] = []
    for _count, mismatches in _compare(sessions.filter(Q(pk__in=moved) | Q(received_at__gte=since) | tonight)):
        wrong += mismatches
    return wrong


def rebuild(*, repair: bool = False) -> Iterator[tuple[int, list[StateMismatch]]]:
    """Compare the states of all sessions. Yields for each chunk how many sessions it has, and the wrong states.

    With `repair`, the wrong states are written anew, each chunk in a transaction of its own. Starting again after an
    interruption is safe.
    """
    return _compare(Session.objects.all(), repair=repair)


def _compare(sessions: QuerySet[Session], *, repair: bool = False) -> Iterator[tuple[int, list[StateMismatch]]]:
    after = 0
    while True:
        next_sessions = sessions.filter(pk__gt=after).order_by("pk")
        if repair:
            with transaction.atomic():
                chunk = list(next_sessions.select_for_update()[:CHUNK])
                mismatches = _mismatches(chunk)
                if any("category" in mismatch.columns for mismatch in mismatches):
                    ledger.touch(Bandit.objects.named("category"))  # as `write` does
                save([mismatch.computed for mismatch in mismatches])
        else:
            chunk = list(next_sessions[:CHUNK])
            # A session may have moved between two of these queries: what seems wrong is loaded and compared again.
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
    said: dict[str, Any] = {}
    if settlement is not None:
        said = {name: getattr(settlement, name) for name in ("value", "source", "final", "weight", "reason")}
    if verdict is not None:
        said |= {"verdict": verdict, "question": question_of(verdict.rubric, verdict.version)}
    said |= {"ended_at": session.ended_at, "category": session.category_id}
    return SessionState(session_id=session.pk, settlement=settlement, flags=flags, **said)


def _differing(stored: SessionState, computed: SessionState) -> tuple[str, ...]:
    return tuple(name for name in COMPARED if getattr(stored, name) != getattr(computed, name))


def _printed(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)
