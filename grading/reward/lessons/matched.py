"""Which lessons matched which sessions: read once, and from then on kept up with what was added.

A row that changes is written anew (`intake.lessons`), so that whatever is new has a higher key than all before it.
"""

from dataclasses import dataclass

import numpy as np
from django.db import connection
from django.db.models import Max, Value
from django.db.models.functions import Coalesce

from bandit.core.table import Flags, Ints
from bandit.models import Erasure
from grading.models import SessionLesson
from grading.remembered import Memory
from grading.reward.lessons.columns import columns_of

# Of a row: that nothing was drawn.
NO_DRAW = -1
NAMES = ("pk", "session_id", "arm_id", "taken", Coalesce("assignment_id", Value(NO_DRAW)))
# Whether others write rows. PostgreSQL gives keys away before rows are seen, but whoever writes holds a lock on the
# table from before that until the rows are seen.
WRITING = """
SELECT EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'relation' AND relation = 'grading_sessionlesson'::regclass
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND mode = 'RowExclusiveLock' AND pid <> pg_backend_pid()
)
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matched:
    """Rows in the order of their keys, all (n,): ids of the `session`, the `arm` and the `draw` (NO_DRAW for none), and
    whether the lesson was `taken`. Up to the key `final` none comes any more, 0 where that is not known.
    """

    key: Ints
    session: Ints
    arm: Ints
    taken: Flags
    draw: Ints
    final: int


_memory = Memory[int, Matched](1)


def matched() -> Matched:
    """As they are: four queries at most, the last one for what is new."""
    erased = Erasure.objects.count()
    held, final = _memory.get(erased), _final()
    found = (held and _kept_up(held, final)) or _made(_read(0), final)
    _memory.put(erased, found)
    return found


def _kept_up(held: Matched, final: int | None) -> Matched | None:
    """With the rows since then; None where the last one that was final is not what it was."""
    at = int(np.searchsorted(held.key, held.final))
    if not held.final or at == len(held.key) or held.key[at] != held.final:
        return None
    rows = _read(held.final)
    new = _made(rows, final)
    was = [int(column[at]) for column in (held.key, held.session, held.arm, held.taken, held.draw)]
    if not rows.shape[1] or rows[:, 0].tolist() != was:
        return None
    if rows.shape[1] == len(held.key) - at and new.final <= held.final:
        return held
    columns = {
        name: np.concatenate((getattr(held, name)[:at], getattr(new, name)))
        for name in ("key", "session", "arm", "taken", "draw")
    }
    return Matched(**columns, final=max(new.final, held.final))


def _read(start: int) -> Ints:
    """The rows from this key on, (5, n)."""
    rows = SessionLesson.objects.filter(pk__gte=start).order_by("pk")
    return columns_of(rows.values_list(*NAMES), len(NAMES))


def _made(rows: Ints, final: int | None) -> Matched:
    key, session, arm, taken, draw = rows
    if final is None:
        final = int(key[-1]) if len(key) else 0
    return Matched(key=key, session=session, arm=arm, taken=taken.astype(bool), draw=draw, final=final)


def _final() -> int | None:
    """The key up to which all rows are seen from now on, 0 where others write; None for whichever is the last: SQLite's
    writers take turns.
    """
    if connection.vendor != "postgresql":
        return None
    last = SessionLesson.objects.aggregate(last=Max("pk"))["last"] or 0
    with connection.cursor() as cursor:
        cursor.execute(WRITING)  # afterwards: who had a lower key than that, and is done by now, can be seen
        return 0 if cursor.fetchone()[0] else last
