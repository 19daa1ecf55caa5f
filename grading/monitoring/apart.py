"""Agents whose rewards in one arm differ from the other agents' there by more than chance.

An agent's mean of n rewards in an arm has the variance σ²/n + S², with S the usual standard deviation of agents'
skills. It is compared with the mean of the other agents' means, each weighted by w = 1/(σ²/n + S²), so that an agent
with many rewards doesn't outvote the rest. With d the difference of the two, and s the agent's skill as estimated from
its other arms, d − s is tested with Student's t test:

    var(d − s) = σ²/n + v·S²/(v + S²) + 1/Σw       w: the weights of the other agents
    s = e·S²/(v + S²), within ±S                   e: the agent's mean difference in its other arms, v its variance

σ² is the variance within agents and arms, pooled with a few rewards of the usual variance. n rewards of one day count
as n/(1 + ρ·n), because an arm has good and bad days. A better agent is better in all arms, which s allows for; but as s
is at most S, an agent whose rewards are far too high in every arm is detected nevertheless.

An agent is compared with those that began before it. Those that began first are compared with each other, and an agent
that began first alone is compared with all others. So agents that one operator starts together don't confirm each
other, and don't make the earlier agents outliers. In each arm the latest outlier is removed before the others are
compared again.

LEVEL is divided equally among agents, and each agent's part among its arms. So an agent in one arm is not harder to
detect if others work in many.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Self

from bandit.core.table import MICRO, RewardRow

# The fewest rewards of the agent, and of the others, with which an arm is compared. If most rewards are either high or
# low, two high ones in a row are common.
MIN_OWN_REWARDS, MIN_OTHERS_REWARDS = 3, 2
# The probability, each time the rule runs, that any agent is reported although all are alike.
LEVEL = 0.01
# The usual standard deviation of agents' skills (S), in units of reward.
SKILL = 0.05
# The usual variance of rewards, and how many rewards it counts as.
USUAL_VARIANCE, USUAL_COUNT = 0.03, 10
# The fewest agents that can be compared.
MIN_AGENTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """An agent whose rewards in an arm differ from the other agents' rewards there.

    `n` and `mean` are the number and mean of its rewards in the arm, `others` and `others_mean` those of the other
    agents. `p` is the two-sided p-value, multiplied by the number of agents and the number of the agent's arms.
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
    """The mean of an agent's `n` rewards in an arm, and the variance σ²/n of that mean."""

    n: int
    mean: float
    variance: float

    @classmethod
    def from_rows(cls, rows: Iterable[RewardRow], variance: float, day_variance: float) -> Self:
        """The mean of one agent's rows of one arm. `variance` is that of one reward, `day_variance` is ρ."""
        rewards_of_day = Counter[date]()
        total = 0
        for row in rows:
            rewards_of_day[row.day] += row.n
            total += row.s
        n = rewards_of_day.total()
        independent = sum(count / (1 + day_variance * count) for count in rewards_of_day.values())
        return cls(n=n, mean=total / n / MICRO, variance=variance / independent)

    @property
    def weight(self) -> float:
        """The weight of this mean among those of the other agents."""
        return 1 / (self.variance + SKILL**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An agent's mean in an arm minus the weighted mean of the other agents there (`value`).

    `variance` is the value's variance without the part due to the agent's skill. `others` and `others_mean` are the
    number and the plain mean of the other agents' rewards. `is_pair`: there is only one other agent.
    """

    value: float
    variance: float
    others: int
    others_mean: float
    is_pair: bool


def find_outliers(rows: Iterable[RewardRow], day_variance: float = 0.0) -> list[Outlier]:
    """The agents whose rewards in an arm differ from the others' by more than chance, in order of arm.

    `day_variance` is ρ, the variance between an arm's days divided by the variance within them. Rows without an agent
    are ignored.
    """
    rows_by_arm: dict[str, dict[str, list[RewardRow]]] = defaultdict(lambda: defaultdict(list))  # by arm, then agent
    first_days: dict[str, date] = {}  # by agent
    for row in rows:
        if row.agent:
            rows_by_arm[row.arm][row.agent].append(row)
            first_days[row.agent] = min(row.day, first_days.get(row.agent, row.day))
    is_each_arm_of_one_agent = all(len(agents) == 1 for agents in rows_by_arm.values())
    if is_each_arm_of_one_agent:
        return []
    variance, degrees_of_freedom = _pooled_variance(
        [agent_rows for agents in rows_by_arm.values() for agent_rows in agents.values()]
    )
    means = {
        arm: {
            agent: AgentMean.from_rows(agent_rows, variance, day_variance)
            for agent, agent_rows in sorted(agents.items())
        }
        for arm, agents in sorted(rows_by_arm.items())
    }
    differences: dict[str, dict[str, Difference]] = defaultdict(dict)  # by agent, then arm
    for arm, agents in means.items():
        for agent, difference in _differences(agents, first_days).items():
            differences[agent][arm] = difference
    outliers: list[Outlier] = []
    for arm, agents in means.items():
        outliers += _outliers_in_arm(arm, agents, first_days, differences, degrees_of_freedom)
    return outliers


def _outliers_in_arm(
    arm: str,
    agents: Mapping[str, AgentMean],
    first_days: Mapping[str, date],
    all_differences: Mapping[str, Mapping[str, Difference]],
    degrees_of_freedom: int,
) -> Iterator[Outlier]:
    """The outliers among the agents of one arm: the latest is removed, then the others are compared again.

    If only two agents are compared, only the agent with the higher rewards is reported, since nobody can tell which of
    them is wrong. `first_days` are by agent, `all_differences` by agent and then arm. `degrees_of_freedom` are those of
    the estimate of the variance σ².
    """
    remaining = dict(agents)
    while True:
        differences = _differences(remaining, first_days)
        p_values: dict[str, float] = {}
        for agent, difference in differences.items():
            if difference.value > 0 or not difference.is_pair:
                # The Bonferroni correction for all agents and arms.
                comparisons = len(all_differences) * len(all_differences[agent])
                p_values[agent] = comparisons * _p_value(arm, difference, all_differences[agent], degrees_of_freedom)
        significant = [agent for agent, p in p_values.items() if p < LEVEL]
        if not significant:
            return
        latest = max(significant, key=lambda agent: (first_days[agent], -p_values[agent]))
        mean = remaining.pop(latest)
        difference = differences[latest]
        yield Outlier(
            arm=arm,
            agent=latest,
            n=mean.n,
            mean=mean.mean,
            others=difference.others,
            others_mean=difference.others_mean,
            p=p_values[latest],
        )


def _pooled_variance(cells: Iterable[Sequence[RewardRow]]) -> tuple[float, int]:
    """The pooled variance σ² of rewards within cells, and its degrees of freedom.

    A cell is the rows of one agent in one arm. In addition, USUAL_COUNT rewards of USUAL_VARIANCE count, so that a few
    equal rewards don't make the variance 0.
    """
    squares = USUAL_COUNT * USUAL_VARIANCE
    degrees_of_freedom = USUAL_COUNT
    for rows in cells:
        n, s, q = sum(row.n for row in rows), sum(row.s for row in rows), sum(row.q for row in rows)
        squares += (n * q - s * s) / n / MICRO**2  # the squared deviations from the cell's mean
        degrees_of_freedom += n - 1
    return squares / degrees_of_freedom, degrees_of_freedom


def _differences(means: Mapping[str, AgentMean], first_days: Mapping[str, date]) -> dict[str, Difference]:
    """The difference of each agent of an arm from the agents that it is compared with, if both have enough rewards.

    `means` and `first_days` are by agent.
    """
    differences = {}
    for agent, own in means.items():
        other_means = {name: mean for name, mean in means.items() if name != agent}
        earlier = [mean for name, mean in other_means.items() if first_days[name] < first_days[agent]]
        same_day = [mean for name, mean in other_means.items() if first_days[name] == first_days[agent]]
        others = earlier or same_day or list(other_means.values())
        n = sum(other.n for other in others)
        if own.n < MIN_OWN_REWARDS or n < MIN_OTHERS_REWARDS:
            continue
        weight = sum(other.weight for other in others)
        differences[agent] = Difference(
            value=own.mean - sum(other.weight * other.mean for other in others) / weight,
            variance=own.variance + 1 / weight,
            others=n,
            others_mean=sum(other.n * other.mean for other in others) / n,
            is_pair=len(others) == 1,
        )
    return differences


def _p_value(arm: str, difference: Difference, by_arm: Mapping[str, Difference], degrees_of_freedom: int) -> float:
    """The two-sided p-value of an agent's difference in `arm`. Its skill is estimated from its other arms.

    `by_arm` are all of the agent's differences.
    """
    from scipy.special import stdtr  # large, and not needed on a site with one agent

    elsewhere = [other for other_arm, other in by_arm.items() if other_arm != arm]
    skill, skill_variance = 0.0, SKILL**2
    if elsewhere:
        total_weight = sum(1 / other.variance for other in elsewhere)
        mean = sum(other.value / other.variance for other in elsewhere) / total_weight
        variance = 1 / total_weight
        shrinkage = SKILL**2 / (SKILL**2 + variance)
        skill = min(max(shrinkage * mean, -SKILL), SKILL)
        skill_variance = shrinkage * variance
    error = math.sqrt(difference.variance + skill_variance)
    return 2 * float(stdtr(degrees_of_freedom, -abs(difference.value - skill) / error))
