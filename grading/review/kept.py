"""What keeps memories of sessions' rows up: rows that are only ever added say which sessions are to be read again.

Whatever else moves them is a new `version`: a session that went to another arm (`reward.state`), or an erasure.
"""

import datetime as dt
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from django.db.models import QuerySet

from bandit.models import Arm, Bandit, Erasure
from bandit.prepared import Prepared
from grading.models import Grade, ReviewAnswer
from grading.models.sessions import yours
from grading.monitoring.calibration import RowCount
from grading.remembered import settled

BANDIT = "category"
# With more rows since then, all are read.
MOST = 5_000

Version = tuple[int | None, int]
_VERSION: Prepared[Version] = Prepared(
    lambda bandit: Bandit.objects.filter(name=bandit).values_list("history", RowCount(Erasure.objects.order_by())), str
)
_ARMS: Prepared[tuple[int, str]] = Prepared(
    lambda bandit: Arm.objects.filter(bandit__name=bandit).order_by().values_list("pk", "name"), str
)
_Row = tuple[int, int, dt.datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The `sessions` of rows that came since; before the key `upto` no other can come any more (`remembered.upto`)."""

    upto: int
    sessions: AbstractSet[int]


def version() -> Version:
    """Another one where rows of sessions may have moved otherwise than by new ones. One query."""
    return _VERSION.get(BANDIT)


def arm_names() -> dict[int, str]:
    """The names of the category bandit's arms by their ids. One query."""
    return dict(_ARMS.rows(BANDIT))


def verdicts(upto: int) -> Added | None:
    """The verdicts after this key; None where they are many. One query."""
    return _added(_VERDICTS, upto)


def answers(upto: int) -> Added | None:
    """People's answers after this key; None where they are many. One query."""
    return _added(_ANSWERS, upto)


def _verdicts(upto: int) -> QuerySet[Grade, _Row]:
    rows = Grade.objects.verdicts().first_readings().filter(yours(), pk__gt=upto)
    return rows.order_by("pk").values_list("pk", "session", "created_at")[: MOST + 1]


def _answers(upto: int) -> QuerySet[ReviewAnswer, _Row]:
    rows = ReviewAnswer.objects.filter(pk__gt=upto)
    return rows.order_by("pk").values_list("pk", "session", "created_at")[: MOST + 1]


_VERDICTS: Prepared[_Row] = Prepared(_verdicts, int)
_ANSWERS: Prepared[_Row] = Prepared(_answers, int)


def _added(rows: Prepared[_Row], upto: int) -> Added | None:
    found = rows.rows(upto)
    if len(found) > MOST:
        return None
    until = settled() if found else None
    last = max((pk for pk, _session, at in found if until is None or at <= until), default=upto)
    return Added(upto=last, sessions={session for _pk, session, _at in found})
