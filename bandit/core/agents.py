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

from bandit.core.rectify import TRUTH
from bandit.core.table import ABSTAINED, RewardRow

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


def agent_day(row: RewardRow) -> AgentDay | None:
    """What the row is counted with; None for one that is never capped, or of which nobody knows whose it is."""
    if not row.agent or row.witness in INDEPENDENT or row.source == TRUTH:
        return None
    return AgentDay(row.day, row.arm, row.agent, row.source == ABSTAINED)


def agent_caps(rows: Iterable[RewardRow], cap: int | None, today: date) -> AgentCaps:
    """Where the cap acts on the day `today`. Rows in any order; how they are split makes no difference."""
    if cap is None:
        return {}
    sums: Counter[AgentDay] = Counter()
    past: Counter[str] = Counter()
    for row in rows:
        if row.agent and row.day < today and row.source != ABSTAINED:
            past[row.agent] += row.n
        if (of := agent_day(row)) is not None:
            sums[of] += row.n
    working = {agent for agent, n in past.items() if n >= LEAST_OTHERS}
    return {
        of: CappedDay(of=of, n=n, counted=cap)
        for of, n in sorted(sums.items())
        if n > cap and of.day <= today and working - {of.agent}
    }


def factor_of(row: RewardRow, caps: AgentCaps) -> float:
    """What its agent's cap leaves of the row, in (0, 1]."""
    if not caps or (of := agent_day(row)) is None or of not in caps:
        return 1.0
    return caps[of].factor
