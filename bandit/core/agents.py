"""What one agent can move: of what it vouches for itself, so many sessions of an arm and day count in full.

Whoever submits a hundred sessions in an hour would else outvote everybody. What an agent alone vouches for, or a hook
beside it, is read with the factor

    min(1, cap/n)       n: that agent's such rewards of that arm and day

so that together they count as much as `cap` of them, in whatever order they came. It holds only for an agent beside
which another one works: of LEAST_OTHERS rewards or more by another in the same bandit, on days before. Who works alone
can outvote nobody. What a person graded, and what others saw, is never capped.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numpy as np

from bandit.core.rectify import TRUTH
from bandit.core.table import ABSTAINED, Floats, Ints, RewardRow, RewardRows, RowKind, sums_of

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


AgentCaps = Mapping[AgentDay, CappedDay]
# Arm, agent, and whether it is an abstention.
Vouched = tuple[str, str, bool]


def agent_day(row: RewardRow) -> AgentDay | None:
    """What the row is counted with; None for one that is never capped, or of which nobody knows whose it is."""
    return AgentDay(row.day, *of) if (of := _vouched(row)) else None


def _vouched(row: RewardRow | RowKind) -> Vouched | None:
    """An `AgentDay` without its day."""
    if not row.agent or row.witness in INDEPENDENT or row.source == TRUTH:
        return None
    return row.arm, row.agent, row.source == ABSTAINED


def agent_caps(rows: Iterable[RewardRow], cap: int | None, today: date) -> AgentCaps:
    """Where the cap acts on the day `today`. Rows in any order; how they are split makes no difference."""
    if cap is None:
        return {}
    held = RewardRows.of(rows)
    past: Counter[str] = Counter()
    for kind, (n, *_) in held.where(held.day < today.toordinal()).totals():
        if kind.agent and kind.source != ABSTAINED:
            past[kind.agent] += n
    working = {agent for agent, n in past.items() if n >= LEAST_OTHERS}
    groups, code = _agent_days(held)
    counted = code[code >= 0]
    codes, at = np.unique(counted, return_inverse=True)
    n = sums_of(at, held.n[code >= 0], len(codes))
    found = {}
    for number in np.flatnonzero((n > cap) & (codes // len(groups) <= today.toordinal()) if len(codes) else codes):
        day, group = divmod(int(codes[number]), len(groups))
        of = AgentDay(date.fromordinal(day), *groups[group])
        if working - {of.agent}:
            found[of] = CappedDay(of=of, n=int(n[number]), counted=cap)
    return dict(sorted(found.items()))


def _agent_days(rows: RewardRows) -> tuple[list[Vouched], Ints]:
    """What the rows' agents vouch for, without days; and a number for the agent, arm and day of each row, −1 for one
    that is never capped: the day's ordinal times how many there are of the former, plus which it is.
    """
    numbers: dict[Vouched, int] = {}
    of = [-1 if (each := _vouched(kind)) is None else numbers.setdefault(each, len(numbers)) for kind in rows.kinds]
    group = np.array(of, dtype=np.int64)[rows.kind]
    code: Ints = np.where(group >= 0, rows.day * max(len(numbers), 1) + group, -1)
    return list(numbers), code


def factor_of(row: RewardRow, caps: AgentCaps) -> float:
    """What its agent's cap leaves of the row, in (0, 1]."""
    if not caps or (of := agent_day(row)) is None or of not in caps:
        return 1.0
    return caps[of].factor


def factors_of(rows: RewardRows, caps: AgentCaps) -> Floats:
    """The same of each row, (m,)."""
    left = np.ones(len(rows))
    if not caps:
        return left
    groups, code = _agent_days(rows)
    number = {group: at for at, group in enumerate(groups)}
    capped = sorted(
        (of.day.toordinal() * len(groups) + at, each.factor)
        for of, each in caps.items()
        if (at := number.get((of.arm, of.agent, of.is_abstention))) is not None
    )
    if not capped:
        return left
    codes, factors = (np.array(each) for each in zip(*capped, strict=True))
    place = np.minimum(np.searchsorted(codes, code), len(codes) - 1)
    return np.where(codes[place] == code, factors[place], 1.0)
