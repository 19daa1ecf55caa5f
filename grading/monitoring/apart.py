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

The others are the agents that began earlier. Those that began first are compared with each other; one that began alone,
with all others. So agents of one operator that come together don't vouch for each other, and the agents before them
don't stand apart because of them. In each arm the latest agent that stands apart is found first, and the rest is
compared without it.

Each agent gets an equal part of LEVEL, and so does each of its arms. So an agent in one arm is not harder to find where
others work in many.
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
LEVEL = 0.01
SKILL = 0.05
USUAL_VARIANCE, USUAL = 0.03, 10
# The fewest agents that can be compared.
MIN_AGENTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """An agent's `n` rewards in `arm` with their mean, and how many the others' are, with theirs. `p`: two-sided,
    times the number of agents compared and of this one's arms.
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
    """How far an agent's mean in an arm is above that of `others` rewards, `others_mean`, and the `variance` of that
    but for the agent's skill. `is_pair`: the others are one agent.
    """

    value: float
    variance: float
    others: int
    others_mean: float
    is_pair: bool


def apart(rows: Iterable[RewardRow], day_variance: float = 0.0) -> list[Apart]:
    """The agents that stand apart, by arm. `day_variance` ρ is the variance between an arm's days, as a share of that
    within them. If one agent is compared with one other, only higher rewards count: nobody can tell which is off. Rows
    without an agent are ignored.
    """
    cells: dict[str, dict[str, list[RewardRow]]] = defaultdict(lambda: defaultdict(list))
    since: dict[str, date] = {}
    for row in rows:
        if row.agent:
            cells[row.arm][row.agent].append(row)
            since[row.agent] = min(row.day, since.get(row.agent, row.day))
    if all(len(agents) == 1 for agents in cells.values()):
        return []
    variance, freedom = _variance([own for agents in cells.values() for own in agents.values()])
    means = {
        arm: {agent: AgentMean.of(own, variance, day_variance) for agent, own in sorted(agents.items())}
        for arm, agents in sorted(cells.items())
    }
    compared: dict[str, dict[str, Difference]] = defaultdict(dict)  # by agent and arm
    for arm, agents in means.items():
        for agent, difference in _differences(agents, since).items():
            compared[agent][arm] = difference
    outliers = []
    for arm, agents in means.items():
        remaining = dict(agents)
        while True:
            differences = _differences(remaining, since)
            chances = {
                agent: len(compared) * len(compared[agent]) * _chance(arm, each, compared[agent], freedom)
                for agent, each in differences.items()
                if not each.is_pair or each.value > 0
            }
            unlikely = [agent for agent, chance in chances.items() if chance < LEVEL]
            if not unlikely:
                break
            agent = max(unlikely, key=lambda name: (since[name], -chances[name]))
            own, difference = remaining.pop(agent), differences[agent]
            outliers.append(
                Apart(
                    arm=arm,
                    agent=agent,
                    n=own.n,
                    mean=own.mean,
                    others=difference.others,
                    others_mean=difference.others_mean,
                    p=chances[agent],
                )
            )
    return outliers


def _variance(cells: Iterable[Sequence[RewardRow]]) -> tuple[float, int]:
    """The pooled variance σ² of rewards within cells, and its degrees of freedom.

    A cell is the rows of one agent in one arm. USUAL rewards of USUAL_VARIANCE count too, so that a few equal rewards
    don't make the variance 0.
    """
    squares, freedom = USUAL * USUAL_VARIANCE, USUAL
    for own in cells:
        n, s, q = (sum(column) for column in zip(*((row.n, row.s, row.q) for row in own), strict=True))
        squares += (n * q - s * s) / n / MICRO**2  # the squared deviations from the cell's mean
        freedom += n - 1
    return squares / freedom, freedom


def _differences(agents: Mapping[str, AgentMean], since: Mapping[str, date]) -> dict[str, Difference]:
    """How far each agent of an arm is from the others there, if both have enough rewards. `since` is each agent's first
    day.
    """
    differences = {}
    for agent, own in agents.items():
        others = [each for name, each in agents.items() if since[name] < since[agent]]
        if not others:
            others = [each for name, each in agents.items() if since[name] == since[agent] and name != agent]
        others = others or [each for name, each in agents.items() if name != agent]
        n = sum(each.n for each in others)
        if own.n < LEAST_OWN or n < LEAST_OTHERS:
            continue
        weight = sum(each.weight for each in others)
        differences[agent] = Difference(
            value=own.mean - sum(each.weight * each.mean for each in others) / weight,
            variance=own.variance + 1 / weight,
            others=n,
            others_mean=sum(each.n * each.mean for each in others) / n,
            is_pair=len(others) == 1,
        )
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
