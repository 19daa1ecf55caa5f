"""The reward columns of `Session`: its current settlement, verdict and open flags, written when its reward changes.

settle ─► write        (one session)
at night ─► audit      (what changed since, and a share of all the others)
manage.py rebuild ─► rebuild
"""

import datetime as dt
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Mod

from grading.models import Flag, Grade, Session, Settlement
from grading.models.grades import question_of

CHUNK_SIZE = 500
# Each night the audit compares one in this many of the sessions in which nothing happened.
AUDIT_NIGHTS = 100
COLUMNS = (
    "settlement_id",
    "reward_value",
    "reward_source",
    "reward_final",
    "reward_weight",
    "reward_reason",
    "open_flags",
    "verdict_id",
    "verdict_question",
)
Columns = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMismatch:
    """A session whose reward columns differ from what its settlements, grades and flags say. `stored` and `computed`
    have all of COLUMNS.
    """

    session: int
    stored: Columns
    computed: Columns

    def __str__(self) -> str:
        return f"session {self.session}: {', '.join(self.columns)}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that differ."""
        return tuple(name for name in COLUMNS if self.stored[name] != self.computed[name])

    def lines(self) -> Iterator[str]:
        """A line for each column that differs, with both values."""
        for name in self.columns:
            stored, computed = _printed(self.stored[name]), _printed(self.computed[name])
            yield f"session {self.session}, {name}: stored {stored}, computed {computed}"


def write(session: Session, settlement: Settlement, verdict: Grade | None, flags: int) -> None:
    """Write the session's reward columns if they differ, to the row and to `session`. The row must be locked.

    With the same settlement the row is compared, not `session`, which may have been loaded before the last settlement.
    """
    computed = _computed(settlement, verdict, flags)
    row = Session.objects.filter(pk=session.pk)
    if session.settlement_id != settlement.pk or row.values(*COLUMNS).get() != computed:
        row.update(**computed)
    for name, value in computed.items():
        setattr(session, name, value)


def derive(sessions: Collection[int]) -> dict[int, Columns]:
    """Compute the reward columns of these sessions from their other rows, by primary key. Three queries.

    They come from the latest settlement, the latest verdict, leaving out its second and third readings, and the number
    of open flags.
    """
    settlements = Settlement.objects.filter(session__in=sessions).defer("steps", "sentence")
    verdicts = Grade.objects.chain().verdicts().first_readings().filter(session__in=sessions)
    verdicts = verdicts.only("session", "rubric", "version")
    # Of a session's rows, which come oldest first, the last one stays in the dictionary.
    latest_settlements = {row.session_id: row for row in settlements.order_by("session", "revision")}
    latest_verdicts = {row.session_id: row for row in verdicts.order_by("pk")}
    open_flags = Flag.objects.open().filter(session__in=sessions).order_by()
    flag_counts = dict(open_flags.values_list("session").annotate(n=Count("pk")))
    return {
        pk: _computed(latest_settlements.get(pk), latest_verdicts.get(pk), flag_counts.get(pk, 0)) for pk in sessions
    }


def audit(now: dt.datetime) -> list[StateMismatch]:
    """The wrong columns of sessions that changed in the last two days, and of a hundredth of all others."""
    since = now - dt.timedelta(days=2)
    settled = Settlement.objects.filter(created_at__gte=since).values("session")
    tonight = Q(turn=now.toordinal() % AUDIT_NIGHTS)
    sessions = Session.objects.annotate(turn=Mod("pk", AUDIT_NIGHTS))
    wrong: list[StateMismatch] = []
    for _count, mismatches in _compare(sessions.filter(Q(pk__in=settled) | Q(received_at__gte=since) | tonight)):
        wrong += mismatches
    return wrong


def rebuild(*, repair: bool = False) -> Iterator[tuple[int, list[StateMismatch]]]:
    """Compare the columns of all sessions. Yields for each chunk how many sessions it has, and the wrong ones.

    With `repair`, wrong columns are written again, each chunk in a transaction of its own. An interrupted run can be
    started again.
    """
    return _compare(Session.objects.all(), repair=repair)


def _compare(sessions: QuerySet[Session], *, repair: bool = False) -> Iterator[tuple[int, list[StateMismatch]]]:
    """Compare these sessions in chunks, with `repair` also correct them. Yields as `rebuild` does."""
    after = 0
    while True:
        chunk = sessions.filter(pk__gt=after).order_by("pk")
        if repair:
            with transaction.atomic():
                # The rows are locked first and loaded afterwards.
                keys = list(chunk.select_for_update().values_list("pk", flat=True)[:CHUNK_SIZE])
                mismatches = _mismatches(keys)
                for mismatch in mismatches:
                    Session.objects.filter(pk=mismatch.session).update(**mismatch.computed)
        else:
            keys = list(chunk.values_list("pk", flat=True)[:CHUNK_SIZE])
            # A session may change between two of these queries: what seems wrong is loaded and compared again.
            mismatches = _mismatches([suspect.session for suspect in _mismatches(keys)])
        if not keys:
            return
        yield len(keys), mismatches
        after = keys[-1]


def _mismatches(keys: list[int]) -> list[StateMismatch]:
    """Those of these sessions, by primary key, whose stored columns differ from the computed ones. Four queries."""
    if not keys:
        return []
    rows = Session.objects.filter(pk__in=keys).order_by("pk").values("pk", *COLUMNS)
    stored = {row.pop("pk"): row for row in rows}
    computed = derive(list(stored))
    return [
        StateMismatch(session=pk, stored=columns, computed=computed[pk])
        for pk, columns in stored.items()
        if columns != computed[pk]
    ]


def _computed(settlement: Settlement | None, verdict: Grade | None, flags: int) -> Columns:
    """The reward columns of a session with this current settlement, this verdict and this number of open flags."""
    columns: Columns = {
        "settlement_id": None,
        "reward_value": None,
        "reward_source": "",
        "reward_final": None,
        "reward_weight": None,
        "reward_reason": "",
        "open_flags": flags,
        "verdict_id": None,
        "verdict_question": None,
    }
    if settlement is not None:
        columns |= {
            "settlement_id": settlement.pk,
            "reward_value": settlement.value,
            "reward_source": settlement.source,
            "reward_final": settlement.final,
            "reward_weight": settlement.weight,
            "reward_reason": settlement.reason,
        }
    if verdict is not None:
        columns |= {"verdict_id": verdict.pk, "verdict_question": question_of(verdict.rubric, verdict.version)}
    return columns


def _printed(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)
