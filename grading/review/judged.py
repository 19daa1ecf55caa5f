"""What each grader said of each arm's sessions, added up: read once, and from then on kept up with the verdicts.

Verdicts are only ever added, so that those since then say which sessions are to be read again (`review.kept`).
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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

# So many sessions are read again by one query; and so many stand beside the columns before they are put among them.
CHUNK, BESIDE = 500, 5_000

# The verdicts on a session that count: the grader's place, the arm (0 for none) and the value.
Counted = tuple[int, int, float]
Exact = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExactSums:
    """How many values, their sum and the sum of their squares: floats that add up to it exactly, the first of them it
    rounded.
    """

    n: int = 0
    s: Exact = ()
    q: Exact = ()

    def with_(self, more: Sequence[float], less: Sequence[float] = ()) -> "_ExactSums":
        squares, gone = [value * value for value in more], [-value * value for value in less]
        return _ExactSums(
            n=self.n + len(more) - len(less),
            s=_exact([*self.s, *more, *(-value for value in less)]),
            q=_exact([*self.q, *squares, *gone]),
        )

    @property
    def rounded(self) -> GradeSums:
        return GradeSums(n=self.n, s=math.fsum(self.s), q=math.fsum(self.q))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Held:
    """The verdicts that count, as columns (n,) in the order of the sessions: `session`, the `grader`'s place among
    `graders`, `arm` and `value`; those of some sessions stand `beside` them instead. `sums` by grader and arm. Verdicts
    up to the id `upto` are all among them.
    """

    upto: int
    graders: tuple[JudgeInstrument, ...]
    session: Ints
    grader: Ints
    arm: Ints
    value: Floats
    beside: Mapping[int, Sequence[Counted]]
    sums: Mapping[tuple[int, int], _ExactSums]

    def of(self, session: int) -> Sequence[Counted]:
        """The verdicts on one session."""
        if session in self.beside:
            return self.beside[session]
        rows = slice(*np.searchsorted(self.session, (session, session + 1)))
        columns = (self.grader[rows].tolist(), self.arm[rows].tolist(), self.value[rows].tolist())
        return list(zip(*columns, strict=True))


_memory = Memory[kept.Version, _Held](1)


def judged_sums() -> dict[tuple[JudgeInstrument, str], GradeSums]:
    """Of each grader and arm, the grades of all its sessions: one a session, the latest that entered the chain, or else
    the latest. Sums are exact, rounded once. Three queries, and one for each 500 sessions judged since.
    """
    key = kept.version()
    held = _memory.get(key)
    found = (held and _kept_up(held)) or _whole()
    _memory.put(key, found)
    names = kept.arm_names()
    return {(found.graders[grader], names.get(arm, "")): sums.rounded for (grader, arm), sums in found.sums.items()}


def _whole() -> _Held:
    last, graders = upto(_verdicts()), dict[JudgeInstrument, int]()
    session, grader, arm, value = _read([_verdicts()], graders)
    sums = {
        key: _ExactSums().with_(value[(grader == key[0]) & (arm == key[1])].tolist())
        for key in {*zip(grader.tolist(), arm.tolist(), strict=True)}
    }
    return _Held(
        upto=last,
        graders=tuple(graders),
        session=session,
        grader=grader,
        arm=arm,
        value=value,
        beside={},
        sums=sums,
    )


def _kept_up(held: _Held) -> _Held | None:
    """With what was judged since; None where that is too much."""
    new = kept.verdicts(held.upto)
    if new is None:
        return None
    again, graders = sorted(new.sessions), {grader: place for place, grader in enumerate(held.graders)}
    chunks = (again[at : at + CHUNK] for at in range(0, len(again), CHUNK))
    columns = _read([_verdicts().filter(session__in=chunk) for chunk in chunks], graders)
    theirs: dict[int, list[Counted]] = {session: [] for session in again}
    for session, *own in zip(*(column.tolist() for column in columns), strict=True):
        theirs[session].append(tuple(own))
    moved: dict[tuple[int, int], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for place, rows in enumerate((theirs.values(), map(held.of, again))):
        for grader, arm, value in itertools.chain.from_iterable(rows):
            moved[grader, arm][place].append(value)
    sums = {**held.sums, **{key: held.sums.get(key, _ExactSums()).with_(*values) for key, values in moved.items()}}
    found = replace(
        held,
        upto=new.upto,
        graders=tuple(graders),
        beside={**held.beside, **theirs},
        sums={key: said for key, said in sums.items() if said.n},
    )
    return found if len(found.beside) < BESIDE else _among(found)


def _among(held: _Held) -> _Held:
    """With what stands beside the columns put among them."""
    stays = ~np.isin(held.session, [*held.beside])
    more = [(session, *own) for session, rows in held.beside.items() for own in rows]
    keys = np.array([row[:3] for row in more], dtype=np.int64).reshape(len(more), 3)
    session, grader, arm = (
        np.concatenate((old[stays], new))
        for old, new in zip((held.session, held.grader, held.arm), keys.T, strict=True)
    )
    value = np.concatenate((held.value[stays], np.array([row[3] for row in more], dtype=np.float64)))
    order = np.argsort(session, kind="stable")
    return replace(held, session=session[order], grader=grader[order], arm=arm[order], value=value[order], beside={})


def _verdicts() -> GradeQuerySet:
    return Grade.objects.verdicts().first_readings().filter(yours())


def _read(queries: Iterable[GradeQuerySet], graders: dict[JudgeInstrument, int]) -> tuple[Ints, Ints, Ints, Floats]:
    """The verdicts of these that count, as columns in the order of the sessions: session, grader's place, arm, value.
    Graders that are not known yet are put among them.
    """
    known: dict[tuple[str, ...], int] = {}
    rows = []
    for query in queries:
        columns = query.order_by().values_list("session", "parallel", "pk", "session__category", "value", *IDENTITY)
        for session, parallel, pk, arm, value, *identity in columns.iterator():
            said = tuple(identity)
            if said not in known:
                instrument = JudgeInstrument(**dict(zip(IDENTITY, said, strict=True)))
                known[said] = graders.setdefault(instrument, len(graders))
            rows.append((session, known[said], not parallel, pk, arm or 0, value))
    keys = np.array([row[:5] for row in rows], dtype=np.int64).reshape(len(rows), 5)
    values = np.array([row[5] for row in rows], dtype=np.float64)
    order = np.lexsort((keys[:, 3], keys[:, 2], keys[:, 1], keys[:, 0]))
    keys, values = keys[order], values[order]
    is_last = np.append((keys[1:, :2] != keys[:-1, :2]).any(axis=1), True)[: len(keys)]
    keys, values = keys[is_last], values[is_last]
    return keys[:, 0], keys[:, 1], keys[:, 4], values


def _exact(values: Sequence[float]) -> Exact:
    """A few floats with exactly the sum of these: each the rounded rest of those before it."""
    parts: list[float] = []
    while rest := math.fsum([*values, *(-part for part in parts)]):
        parts.append(rest)
    return tuple(parts)
