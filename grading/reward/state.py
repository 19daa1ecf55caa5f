"""The current-state rows: what holds of each session, written where its reward moves, and derived anew to audit that.

settle ─► write        (one session, from the rows that settling loaded)
at night ─► audit      (what changed since, and a share of all the others)
rebuild_state ─► rebuild
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Count, Q
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMismatch:
    """A session whose state is not what its other rows say, or has none: `columns` differ."""

    session: int
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"session {self.session}: {', '.join(self.columns)}"


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
    return list(_wrong(sessions.filter(Q(pk__in=moved) | Q(received_at__gte=since) | tonight)))


def audit_all() -> Iterator[StateMismatch]:
    """The states that are wrong, of all sessions."""
    return _wrong(Session.objects.all())


def rebuild(*, after: int = 0) -> Iterator[tuple[int, int, int]]:
    """Write all states that are wrong, in the order of their sessions' keys, from the first after that one on. Yields
    for each chunk the key that it has come to, how many sessions it looked at, and how many states it wrote: whatever
    stops it, it goes on from there.
    """
    while True:
        with transaction.atomic():
            chunk = list(Session.objects.filter(pk__gt=after).order_by("pk").select_for_update()[:CHUNK])
            wrong = {each.session for each in _compared(chunk)}
            save(derived([each for each in chunk if each.pk in wrong]))
        if not chunk:
            return
        after = chunk[-1].pk
        yield after, len(chunk), len(wrong)


def _wrong(sessions: Any) -> Iterator[StateMismatch]:
    after = 0
    while chunk := list(sessions.filter(pk__gt=after).order_by("pk")[:CHUNK]):
        # What seems wrong is looked at once more: it may have moved between one query and the next.
        seeming = {each.session for each in _compared(chunk)}
        yield from _compared([each for each in chunk if each.pk in seeming])
        after = chunk[-1].pk


def _compared(sessions: Sequence[Session]) -> Iterable[StateMismatch]:
    held = SessionState.objects.in_bulk([session.pk for session in sessions])
    for row in derived(sessions):
        columns = _differing(held[row.pk], row) if row.pk in held else ("the row is missing",)
        if columns:
            yield StateMismatch(session=row.pk, columns=columns)


def _derived(session: Session, settlement: Settlement | None, verdict: Grade | None, flags: int) -> SessionState:
    said: dict[str, Any] = {}
    if settlement is not None:
        said = {name: getattr(settlement, name) for name in ("value", "source", "final", "weight", "reason")}
    if verdict is not None:
        said |= {"verdict": verdict, "question": question_of(verdict.rubric, verdict.version)}
    said |= {"ended_at": session.ended_at, "category": session.category_id}
    return SessionState(session_id=session.pk, settlement=settlement, flags=flags, **said)


def _differing(held: SessionState, row: SessionState) -> tuple[str, ...]:
    names = (*COLUMNS, *(f"{name}_id" for name in POINTERS))
    return tuple(name for name in names if getattr(held, name) != getattr(row, name))
