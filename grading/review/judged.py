"""What each grader said of each arm's sessions, added up: read once, and from then on kept up with the verdicts.

Verdicts are only ever added, so that those since then say which sessions are to be read again (`review.kept`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bandit.core.table import Floats, Ints
from grading.models import Grade
from grading.models.grades import GradeQuerySet
from grading.models.sessions import yours
from grading.monitoring.calibration import JudgeInstrument
from grading.monitoring.graders import IDENTITY
from grading.remembered import Memory, upto
from grading.review import kept
from grading.review.ppi import GradeSums

# So many sessions are read again by one query.
CHUNK = 500

Sums = dict[tuple[int, int], GradeSums]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Held:
    """The verdicts that count, as columns (n,): the `session`, the `grader`'s place among `graders`, the session's
    `arm` (0 for none) and the `value`; `sums` by grader and arm. Verdicts up to the id `upto` are all among them.
    """

    upto: int
    graders: tuple[JudgeInstrument, ...]
    session: Ints
    grader: Ints
    arm: Ints
    value: Floats
    sums: Sums


_memory = Memory[kept.Version, _Held](1)


def judged_sums() -> dict[tuple[JudgeInstrument, str], GradeSums]:
    """Of each grader and arm, the grades of all its sessions: one a session, the latest that entered the chain, or else
    the latest. Sums are exact, rounded once. Four queries, and one for each 500 sessions judged since.
    """
    key = kept.version()
    held = _memory.get(key)
    found = (held and _kept_up(held)) or _whole()
    _memory.put(key, found)
    names = kept.arm_names()
    return {(found.graders[grader], names.get(arm, "")): sums for (grader, arm), sums in found.sums.items()}


def _whole() -> _Held:
    nothing = np.zeros(0, dtype=np.int64)
    start = _Held(
        upto=0, graders=(), session=nothing, grader=nothing, arm=nothing, value=np.zeros(0, dtype=np.float64), sums={}
    )
    return _with(start, upto(_verdicts()), [_verdicts()])


def _kept_up(held: _Held) -> _Held | None:
    """With what was judged since; None where that is too much."""
    new = kept.verdicts(held.upto)
    if new is None:
        return None
    again = sorted(new.sessions)
    chunks = (again[at : at + CHUNK] for at in range(0, len(again), CHUNK))
    return _with(held, new.upto, [_verdicts().filter(session__in=chunk) for chunk in chunks])


def _verdicts() -> GradeQuerySet:
    return Grade.objects.verdicts().first_readings().filter(yours())


def _with(held: _Held, last: int, queries: Sequence[GradeQuerySet]) -> _Held:
    """These verdicts in place of those of the same sessions."""
    places = {grader: place for place, grader in enumerate(held.graders)}
    known: dict[tuple[str, ...], int] = {}
    rows = []
    for query in queries:
        columns = query.order_by().values_list("session", "parallel", "pk", "session__category", "value", *IDENTITY)
        for session, parallel, pk, arm, value, *identity in columns.iterator():
            said = tuple(identity)
            if said not in known:
                instrument = JudgeInstrument(**dict(zip(IDENTITY, said, strict=True)))
                known[said] = places.setdefault(instrument, len(places))
            rows.append((session, known[said], not parallel, pk, arm or 0, value))
    keys = np.array([row[:5] for row in rows], dtype=np.int64).reshape(len(rows), 5)
    values = np.array([row[5] for row in rows], dtype=np.float64)
    order = np.lexsort((keys[:, 3], keys[:, 2], keys[:, 1], keys[:, 0]))
    keys, values = keys[order], values[order]
    is_last = np.append((keys[1:, :2] != keys[:-1, :2]).any(axis=1), True)[: len(keys)]
    keys, values = keys[is_last], values[is_last]
    gone = np.isin(held.session, keys[:, 0])
    session, grader, arm = (
        np.concatenate((old[~gone], new))
        for old, new in ((held.session, keys[:, 0]), (held.grader, keys[:, 1]), (held.arm, keys[:, 4]))
    )
    value = np.concatenate((held.value[~gone], values))
    moved = {*zip(held.grader[gone].tolist(), held.arm[gone].tolist(), strict=True)}
    moved |= {*zip(keys[:, 1].tolist(), keys[:, 4].tolist(), strict=True)}
    sums = {key: said for key, said in held.sums.items() if key not in moved}
    for key in moved:
        own = value[(grader == key[0]) & (arm == key[1])]
        if len(own):
            sums[key] = GradeSums(n=len(own), s=math.fsum(own), q=math.fsum(own * own))
    return _Held(upto=last, graders=tuple(places), session=session, grader=grader, arm=arm, value=value, sums=sums)
