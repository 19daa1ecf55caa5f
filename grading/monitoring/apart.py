"""Agents whose sessions of one arm are worth otherwise than other agents' of the same arm and period.

With d_a the difference between an agent's mean on arm a and the others' there (without the one agent that pulls them
farthest away, so that nobody stands apart by what one other does), and d the same on the other arms that
both work on (0 where there are none: a better model is better everywhere), what is looked at is d_a − d: the arm's own
share of it. Its variance is s²(1/n + 1/m) and the like for d, with s² over all sessions within agents and arms, and a
few of the usual variance on top.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

# Sessions of the agent, and of the others, without which nothing is said of an arm.
LEAST_OWN, LEAST_OTHERS = 5, 10
# A smaller difference is no news: agents differ, and so does what they are given.
LEAST_DIFFERENCE = 0.3
# The chance that any is found where all arms of all agents are alike, at one look.
LEVEL = 0.001
USUAL_VARIANCE, USUAL = 0.03, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReward:
    """A machine's reward in [0, 1] of a session by its key, its arm and the agent."""

    key: int
    arm: str
    agent: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """An agent's `own` sessions of `arm` with their mean, and how many the others' are, with theirs. `elsewhere` is how
    far the agent is above them on other arms; `p` two-sided.
    """

    arm: str
    agent: str
    own: tuple[AgentReward, ...]
    mean: float
    others: int
    others_mean: float
    elsewhere: float
    p: float


def apart(rewards: Iterable[AgentReward]) -> list[Apart]:
    """The agents that stand apart, of rewards in order of time, by arm and name."""
    cells: dict[str, dict[str, list[AgentReward]]] = defaultdict(lambda: defaultdict(list))
    for each in rewards:
        cells[each.arm][each.agent].append(each)
    sums = {arm: {agent: Level.of(own) for agent, own in agents.items()} for arm, agents in cells.items()}
    every = [level for agents in sums.values() for level in agents.values()]
    freedom = sum(level.n - 1 for level in every) + USUAL
    variance = (math.fsum(level.squares for level in every) + USUAL * USUAL_VARIANCE) / freedom
    found = {}
    for arm, agents in sorted(sums.items()):
        for agent, own in sorted(agents.items()):
            others = _others(own, [level for name, level in agents.items() if name != agent])
            if own.n >= LEAST_OWN and others.n >= LEAST_OTHERS:
                found[arm, agent] = own, others, variance * (1 / own.n + 1 / others.n)
    if not found:
        return []
    from scipy.special import stdtr  # large: a site with one agent does without

    told = []
    for (arm, agent), (own, others, doubt) in found.items():
        rest = [each for (of, by), each in found.items() if by == agent and of != arm]
        weight = sum(1 / each[2] for each in rest)
        elsewhere = sum((each[0].mean - each[1].mean) / each[2] for each in rest) / weight if rest else 0.0
        off = own.mean - others.mean - elsewhere
        p = 2 * float(stdtr(freedom, -abs(off) / math.sqrt(doubt + (1 / weight if rest else 0.0))))
        if abs(off) >= LEAST_DIFFERENCE and p < LEVEL / len(found):
            told.append(
                Apart(
                    arm=arm,
                    agent=agent,
                    own=tuple(cells[arm][agent]),
                    mean=own.mean,
                    others=others.n,
                    others_mean=others.mean,
                    elsewhere=elsewhere,
                    p=p,
                )
            )
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """`n` rewards with their mean and Σ of the squares around it."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, rewards: Sequence[AgentReward]) -> Self:
        mean = math.fsum(each.value for each in rewards) / len(rewards)
        return cls(n=len(rewards), mean=mean, squares=math.fsum((each.value - mean) ** 2 for each in rewards))


def _others(own: Level, levels: Sequence[Level]) -> Level:
    """The other agents together, without the one that pulls them farthest from `own`: nobody is to stand apart by what
    one other does. Of a single other that one.
    """
    if len(levels) < 2:  # noqa: PLR2004 - nobody to leave out
        return levels[0] if levels else Level()
    n, s = sum(each.n for each in levels), math.fsum(each.n * each.mean for each in levels)
    without = [Level(n=n - each.n, mean=(s - each.n * each.mean) / (n - each.n)) for each in levels]
    return min(without, key=lambda rest: abs(rest.mean - own.mean))
