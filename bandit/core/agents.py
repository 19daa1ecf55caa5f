"""Limits how much one agent's self-reported evidence counts: the cap applies per agent, arm and day.

Without it, an agent that submits a hundred sessions in an hour would outvote everybody else. Rewards that only the
agent or its own hook vouches for are multiplied by

    min(1, cap/n)       n: the number of such rewards by that agent, arm and day

so that together they count as `cap` of them, in whatever order they came. The cap applies to an agent only if another
one has MIN_OTHER_REWARDS rewards or more in the same bandit on earlier days: an agent on its own can't outvote
anybody. A policy may have a higher cap for arms in which no other agent has a reward of an earlier day, so that a
specialist learns almost as fast as without. Rewards from people and from independent witnesses are never capped.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from bandit.core.offsets import TRUTH
from bandit.core.table import ABSTAINED, Floats, Ints, RewardRow, RewardRows, RowKind, distinct, sums_by_group

MIN_OTHER_REWARDS = 10
# Witnesses on whose behalf the agent can't write.
INDEPENDENT_WITNESSES = frozenset({"observed", "verified"})


# Arm, agent, and whether it is an abstention: what is capped together on a day.
CapGroup = tuple[str, str, bool]


@dataclass(frozen=True, eq=False, kw_only=True)
class AgentCaps:
    """The days on which the cap takes effect, as columns (m,), ordered by day; false if there are none.

    Each is a `day` as an ordinal, a `group` as an index into `groups`, and the number `n` of sessions that count as
    `cap`, n > cap.
    """

    groups: tuple[CapGroup, ...] = ()
    day: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    group: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    cap: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.n)

    def by_group(self) -> Iterator[tuple[CapGroup, list[date], int, int]]:
        """Each group, its capped days in order, the number of sessions on these days, and as how many they count."""
        for number, group in enumerate(self.groups):
            at = np.flatnonzero(self.group == number)
            days = [date.fromordinal(day) for day in sorted(self.day[at].tolist())]
            yield group, days, int(self.n[at].sum()), int(self.cap[at].sum())

    def factors(self, rows: RewardRows) -> Floats:
        """The cap's factor on each row's weight, (m,), each in (0, 1]."""
        factors, index = self.factor_table(rows)
        return factors[index]

    def factor_table(self, rows: RewardRows) -> tuple[Floats, Ints]:
        """All factors that the cap may put on a row, ascending, and the index of each row's factor, (m,)."""
        if not len(self) or not len(rows):
            return np.ones(1), np.zeros(len(rows), dtype=np.int64)
        number_of: dict[CapGroup | None, int] = {group: number for number, group in enumerate(self.groups)}
        group = rows.map_kinds(lambda kind: number_of.get(_cap_group(kind), -1))  # -1: never capped
        # Codes for (day, group): those of the capped days, sorted, and that of each row. A row that is never capped has
        # the code -1, which no capped day has.
        size = len(self.groups)
        capped_codes = self.day * size + self.group
        order = np.argsort(capped_codes, kind="stable")
        row_codes = np.where(group >= 0, rows.day * size + group, -1)
        # Look each row's code up among those of the capped days.
        position = np.searchsorted(capped_codes, row_codes, sorter=order)
        capped_day = order[np.minimum(position, len(order) - 1)]
        is_capped = capped_codes[capped_day] == row_codes
        factors, index = np.unique(np.append(self.cap / self.n, 1.0), return_inverse=True)
        uncapped = index[-1]  # the index of the factor 1
        return factors, np.where(is_capped, index[capped_day], uncapped)


def _cap_group(row: RewardRow | RowKind) -> CapGroup | None:
    """The group of rows with which this one is capped; None if it is never capped or its agent is unknown."""
    if not row.agent or row.witness in INDEPENDENT_WITNESSES or row.source == TRUTH:
        return None
    return row.arm, row.agent, row.source == ABSTAINED


def agent_caps(rows: Iterable[RewardRow], cap: int | None, today: date, *, alone: int | None = None) -> AgentCaps:
    """The days up to `today` on which the cap takes effect; none if `cap` is None.

    `alone` is the cap in arms in which no other agent has a reward of an earlier day, `cap` by default. The order of
    the rows and how they are split make no difference.
    """
    if cap is None:
        return AgentCaps()
    table = RewardRows.from_rows(rows)
    # An agent is capped only if another agent has enough past rewards in the bandit.
    past_rewards: Counter[str] = Counter()
    past_by_arm: Counter[tuple[str, str]] = Counter()
    for kind, (n, *_) in table.select(table.day < today.toordinal()).totals():
        if kind.agent and kind.source != ABSTAINED:
            past_rewards[kind.agent] += n
            past_by_arm[kind.arm, kind.agent] += n
    active_agents = {agent for agent, n in past_rewards.items() if n >= MIN_OTHER_REWARDS}
    index_of: dict[CapGroup, int] = {}
    group_indexes = []
    for kind in table.kinds:
        cap_group = _cap_group(kind)
        group_indexes.append(-1 if cap_group is None else index_of.setdefault(cap_group, len(index_of)))
    agents_by_arm: dict[str, set[str]] = defaultdict(set)
    for (arm, agent), n in past_by_arm.items():
        if n > 0:
            agents_by_arm[arm].add(agent)
    # For each group: its cap, and whether it is capped at all. The last entry of each is for rows without a group,
    # whose index is -1.
    alone_cap = cap if alone is None else alone
    cap_of_group = np.array([cap if agents_by_arm[arm] - {agent} else alone_cap for arm, agent, _ in index_of] + [cap])
    has_others = np.array([bool(active_agents - {agent}) for _, agent, _ in index_of] + [False])
    group = np.array(group_indexes, dtype=np.int64)[table.kind_index]
    is_cappable = has_others[group] & (table.day <= today.toordinal())
    # Count the sessions of each (day, group), and pick those with more than `cap`.
    size = max(len(index_of), 1)
    codes, at = distinct(table.day[is_cappable] * size + group[is_cappable])
    sessions = sums_by_group(at, table.sums[is_cappable, :1], len(codes))[:, 0]
    day, group = np.divmod(codes, size)
    is_over = sessions > cap_of_group[group]
    day, group = day[is_over], group[is_over]
    return AgentCaps(groups=tuple(index_of), day=day, group=group, n=sessions[is_over], cap=cap_of_group[group])
