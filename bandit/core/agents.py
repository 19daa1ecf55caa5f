"""What one agent can move: of what it vouches for itself, so many sessions of an arm and day count in full.

Whoever submits a hundred sessions in an hour would else outvote everybody. What an agent alone vouches for, or a hook
beside it, is read with the factor

    min(1, cap/n)       n: that agent's such rewards of that arm and day

so that together they count as much as `cap` of them, in whatever order they came. It holds only for an agent beside
which another one works: of LEAST_OTHERS rewards or more by another in the same bandit, on days before. Who works alone
can outvote nobody. What a person graded, and what others saw, is never capped.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bandit.core.rectify import TRUTH
from bandit.core.table import ABSTAINED, Floats, Ints, RewardRow, RewardRows, RowKind, distinct, sums_of

LEAST_OTHERS = 10
# Who saw it with eyes of their own: somebody whom the agent cannot write for.
INDEPENDENT = frozenset({"observed", "verified"})


class AgentDay(NamedTuple):
    """Rewards of one agent, arm and day that the agent itself vouches for; abstentions apart."""

    day: date
    arm: str
    agent: str
    is_abstention: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CappedDay:
    """Of `n` sessions of an agent, an arm and a day `counted` count, with the same factor on each."""

    of: AgentDay
    n: int
    counted: int

    @property
    def factor(self) -> float:
        return self.counted / self.n


# Arm, agent, and whether it is an abstention.
Vouched = tuple[str, str, bool]


@dataclass(frozen=True, eq=False, kw_only=True)
class AgentCaps(Mapping[AgentDay, CappedDay]):
    """Where the cap acts, in the order of days: as columns (m,), since there may be many, the days' ordinals and which
    of `groups` they are of, whose `n` sessions count as `cap`.
    """

    groups: tuple[Vouched, ...] = ()
    day: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    group: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    cap: int = 0

    def __len__(self) -> int:
        return len(self.n)

    def __iter__(self) -> Iterator[AgentDay]:
        return iter(self._by_day)

    def __getitem__(self, of: AgentDay) -> CappedDay:
        return self._by_day[of]

    @cached_property
    def _by_day(self) -> dict[AgentDay, CappedDay]:
        rows = zip(self.day.tolist(), self.group.tolist(), self.n.tolist(), strict=True)
        each = ((AgentDay(date.fromordinal(day), *self.groups[group]), n) for day, group, n in rows)
        return {of: CappedDay(of=of, n=n, counted=self.cap) for of, n in sorted(each)}

    def by_group(self) -> Iterator[tuple[Vouched, list[date], int]]:
        """The days of each group on which the cap acts, in their order, and how many sessions these have."""
        for number, group in enumerate(self.groups):
            at = np.flatnonzero(self.group == number)
            yield group, [date.fromordinal(day) for day in sorted(self.day[at].tolist())], int(self.n[at].sum())

    def factors(self, rows: RewardRows) -> Floats:
        """What its agent's cap leaves of each row, (m,), each in (0, 1]."""
        factors, factor = self.apart(rows)
        return factors[factor]

    def apart(self, rows: RewardRows) -> tuple[Floats, Ints]:
        """The same: all that may be left of a row, in order, and which of these each row has, (m,)."""
        if not len(self) or not len(rows):
            return np.ones(1), np.zeros(len(rows), dtype=np.int64)
        number = {group: at for at, group in enumerate(self.groups)}
        group = rows.each(lambda kind: -1 if (of := _vouched(kind)) is None else number.get(of, -1))
        size = len(self.groups)
        codes, code = self.day * size + self.group, np.where(group >= 0, rows.day * size + group, -1)
        order = np.argsort(codes, kind="stable")
        place = order[np.minimum(np.searchsorted(codes, code, sorter=order), len(codes) - 1)]
        n = np.where(codes[place] == code, self.n[place], self.cap)  # all that is left of so many is all
        counts, which = np.unique(self.n), np.zeros(int(self.n.max()) + 1, dtype=np.int64)
        which[counts] = np.arange(len(counts), 0, -1) - 1
        which[self.cap] = len(counts)
        return np.append(self.cap / counts[::-1], 1.0), which[n]


def _vouched(row: RewardRow | RowKind) -> Vouched | None:
    """What the row is counted with, of its day; None for one that is never capped, or of which nobody knows whose it
    is.
    """
    if not row.agent or row.witness in INDEPENDENT or row.source == TRUTH:
        return None
    return row.arm, row.agent, row.source == ABSTAINED


def agent_caps(rows: Iterable[RewardRow], cap: int | None, today: date) -> AgentCaps:
    """Where the cap acts on the day `today`. Rows in any order; how they are split makes no difference."""
    if cap is None:
        return AgentCaps()
    held = RewardRows.of(rows)
    past: Counter[str] = Counter()
    for kind, (n, *_) in held.where(held.day < today.toordinal()).totals():
        if kind.agent and kind.source != ABSTAINED:
            past[kind.agent] += n
    working = {agent for agent, n in past.items() if n >= LEAST_OTHERS}
    numbers: dict[Vouched, int] = {}
    of = [-1 if (each := _vouched(kind)) is None else numbers.setdefault(each, len(numbers)) for kind in held.kinds]
    # Beside whom another one works.
    beside = np.array([bool(working - {agent}) for _, agent, _ in numbers] + [False])
    group = np.array(of, dtype=np.int64)[held.kind]
    counts = beside[group] & (held.day <= today.toordinal())
    size = max(len(numbers), 1)
    codes, at = distinct(held.day[counts] * size + group[counts])
    sessions = sums_of(at, held.sums[counts, :1], len(codes))[:, 0]
    over = sessions > cap
    day, group = np.divmod(codes[over], size)
    return AgentCaps(groups=tuple(numbers), day=day, group=group, n=sessions[over], cap=cap)
