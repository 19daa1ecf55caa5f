"""Agents whose rewards in one arm differ from the other agents' there by more than chance.

An agent's mean in an arm has the variance σ²/n + S², with S the usual standard deviation of agents' skills. The mean of
the others weighs each of them by the inverse of that, so that nobody outvotes the rest by the dozen. With d the
difference between the two, and s what the agent's other arms say of its skill, d − s is compared with its variance by
a t test:

    var = σ²/n + v·S²/(v + S²) + 1/Σw       w: the weight of each other agent
    s   = e·S²/(v + S²), within ±S          e: the mean difference on the agent's other arms, v its variance

σ² is that within agents and arms, with a few rewards of the usual variance on top. n rewards of one day count as
n/(1 + ρ·n), because an arm has good and bad days. A better agent is better everywhere, but who lifts every arm by more
than agents differ is found all the same.

In each arm the agent that differs most is tested first. If it is found, the rest is compared without it, so that
nobody stands apart because of somebody else's rewards.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Self

from bandit.core.table import MICRO, RewardRow

# Rewards of the agent, and of the others, from which on an arm is compared. Two lucky ones are no rarity where most
# rewards are either high or low.
LEAST_OWN, LEAST_OTHERS = 3, 2
# The chance that anybody is found where all agents are alike, at one look.
LEVEL = 0.005
SKILL = 0.05
USUAL_VARIANCE, USUAL = 0.03, 10
# Agents of whom nobody can tell which is off.
PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """An agent's `n` rewards in `arm` with their mean, and how many the others' are, with theirs. `p`: two-sided,
    times the number of comparisons.
    """

    arm: str
    agent: str
    n: int
    mean: float
    others: int
    others_mean: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMean:
    """The mean of an agent's `n` rewards in an arm, and the `variance` σ²/n of it."""

    n: int
    mean: float
    variance: float

    @classmethod
    def of(cls, rows: Iterable[RewardRow], variance: float, day_variance: float) -> Self:
        """From rows of one agent and arm; `variance` is that of one reward, `day_variance` as in `apart`."""
        days = Counter[date]()
        total = 0
        for row in rows:
            days[row.day] += row.n
            total += row.s
        effective = sum(n / (1 + day_variance * n) for n in days.values())
        return cls(n=days.total(), mean=total / days.total() / MICRO, variance=variance / effective)

    @property
    def weight(self) -> float:
        return 1 / (self.variance + SKILL**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far an agent's mean in an arm is above the others', and the `variance` of that but for the agent's skill."""

    value: float
    variance: float


def apart(rows: Iterable[RewardRow], day_variance: float = 0.0) -> list[Apart]:
    """The agents that stand apart, by arm. `day_variance` ρ is the variance between an arm's days, as a share of that
    within them. Of two agents alone in an arm, the one with the higher rewards is named: nobody can tell which is off.
    Rows of which nobody knows whose they are say nothing.
    """
    cells: dict[str, dict[str, list[RewardRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.agent:
            cells[row.arm][row.agent].append(row)
    if all(len(agents) == 1 for agents in cells.values()):
        return []
    variance, freedom = _variance([own for agents in cells.values() for own in agents.values()])
    means = {
        arm: {agent: AgentMean.of(own, variance, day_variance) for agent, own in sorted(agents.items())}
        for arm, agents in sorted(cells.items())
    }
    compared: dict[str, dict[str, Difference]] = defaultdict(dict)  # by agent and arm
    for arm, agents in means.items():
        for agent, difference in _differences(agents).items():
            compared[agent][arm] = difference
    count = sum(len(by_arm) for by_arm in compared.values())
    outliers = []
    for arm, agents in means.items():
        remaining = dict(agents)
        while chances := {
            agent: count * _chance(arm, each, compared[agent], freedom)
            for agent, each in _differences(remaining).items()
            if len(remaining) > PAIR or each.value > 0
        }:
            agent = min(chances, key=chances.__getitem__)
            if chances[agent] >= LEVEL:
                break
            own = remaining.pop(agent)
            others = sum(each.n for each in remaining.values())
            outliers.append(
                Apart(
                    arm=arm,
                    agent=agent,
                    n=own.n,
                    mean=own.mean,
                    others=others,
                    others_mean=sum(each.n * each.mean for each in remaining.values()) / others,
                    p=chances[agent],
                )
            )
    return outliers


def _variance(cells: Iterable[Sequence[RewardRow]]) -> tuple[float, int]:
    """The variance σ² of rewards of one agent and arm, and its degrees of freedom."""
    squares, freedom = USUAL * USUAL_VARIANCE, USUAL
    for own in cells:
        n, s, q = (sum(column) for column in zip(*((row.n, row.s, row.q) for row in own), strict=True))
        squares += (n * q - s * s) / n / MICRO**2
        freedom += n - 1
    return squares / freedom, freedom


def _differences(agents: Mapping[str, AgentMean]) -> dict[str, Difference]:
    """How far each agent of an arm is from the others there, where both have enough rewards."""
    n = sum(each.n for each in agents.values())
    weight = sum(each.weight for each in agents.values())
    total = sum(each.weight * each.mean for each in agents.values())
    differences = {}
    for agent, own in agents.items():
        if own.n < LEAST_OWN or n - own.n < LEAST_OTHERS:
            continue
        others = weight - own.weight
        value = own.mean - (total - own.weight * own.mean) / others
        differences[agent] = Difference(value=value, variance=own.variance + 1 / others)
    return differences


def _chance(arm: str, difference: Difference, by_arm: Mapping[str, Difference], freedom: int) -> float:
    """The chance of a difference this far from what the agent's other arms say of its skill, either way."""
    from scipy.special import stdtr  # large: a site with one agent does without

    skill, variance = 0.0, SKILL**2
    weights = {other: 1 / each.variance for other, each in by_arm.items() if other != arm}
    if weights:
        doubt = 1 / sum(weights.values())
        elsewhere = doubt * sum(weight * by_arm[other].value for other, weight in weights.items())
        shrunk = SKILL**2 / (SKILL**2 + doubt)
        skill, variance = min(max(shrunk * elsewhere, -SKILL), SKILL), shrunk * doubt
    return 2 * float(stdtr(freedom, -abs(difference.value - skill) / math.sqrt(difference.variance + variance)))
