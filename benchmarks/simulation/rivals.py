"""Who plays in the worlds: the bandit under a policy of the site, and the simple rivals that it is measured against.

A player chooses a day's arms from the sums of the days before. The rivals are Thompson sampling from Gaussian
posteriors with a prior estimated from the arms (empirical Bayes) and a half-life, Thompson sampling from discounted
Beta posteriors (Raj and Kalyani 2017), and KL-UCB (Garivier and Cappé 2011).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import betaincinv

from bandit.core.policy import Policy
from bandit.core.posterior import TAIL, chances, fold
from bandit.core.table import MICRO, Ints, RewardRow
from bandit.core.thompson import draw
from benchmarks.simulation.buckets import to_date
from benchmarks.simulation.world import Floats

TODAY, FIRST_RELEASE = "today", "0.1"
# The numbers of the first release's policy that differ from today's.
EARLIER: Mapping[str, Mapping[str, Any]] = {
    FIRST_RELEASE: {
        "half_life_days": 21.0,
        "exploration": None,
        "sharpness": 1.0,
        "follows_change": False,
        "varies_by_day": False,
        "holdout": 0.1,
        "holdout_decided": None,
        "consumption_per_agent": None,
        "consumption_per_day": 2,
        "probation_per_agent": None,
        "probation_per_day": 1,
        "open_decisions": None,
        "agent_cap": None,
        "agent_cap_alone": None,
    },
}
HALF_LIFE = 30.0
# Of the Gaussian rival: variances within and between arms before there are enough rewards, and the least of the latter.
FIRST_VARIANCE, FIRST_SPREAD, LEAST_SPREAD = 0.06, 0.04, 0.001


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """What is known at the start of a day: the number of rewards `n`, their sum `s` and their squares' `q`, by day and
    arm. `columns` are those of every `RewardRow`.
    """

    n: Ints
    s: Floats
    q: Floats
    columns: Mapping[str, str]

    @property
    def today(self) -> int:
        return len(self.n)

    def decayed(self) -> tuple[Floats, Floats, Floats]:
        """The sums over all days with the rivals' half-life, (arms,) each."""
        weight = np.exp2((np.arange(self.today) - self.today) / HALF_LIFE)
        return weight @ self.n, weight @ self.s, weight @ self.q


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """The arm of each of a day's sessions; each arm's 90 % interval if the player has one; the arms called broken."""

    arms: Iterable[int]
    interval: tuple[Floats, Floats] | None = None
    broken: frozenset[int] = frozenset()


class Player(Protocol):
    def __call__(self, history: History, draws: Floats, seed: int, /) -> Choice:
        """Choose an arm for each of the draws in [0, 1) from the history of the days before."""


def site_player(policy: Policy, *, specialists: bool = False) -> Player:
    """The bandit's own posterior and chances under this policy. `specialists`: each arm's sessions are those of an
    agent that works on nothing else, and whose hook vouches for them.
    """

    def play(history: History, draws: Floats, _seed: int) -> Choice:
        names = tuple(f"arm-{number:02}" for number in range(history.n.shape[1]))
        rows = [
            RewardRow(
                arm=names[arm],
                day=to_date(int(day)),
                n=int(history.n[day, arm]),
                s=round(history.s[day, arm] * MICRO),
                q=round(history.q[day, arm] * MICRO**2),
                **(history.columns | ({"agent": names[arm], "witness": "hook"} if specialists else {})),
            )
            for day, arm in zip(*np.nonzero(history.n), strict=True)
        ]
        posterior = fold(rows, arms=names, policy=policy, today=to_date(history.today))
        odds = chances(posterior.chance_of_best(names), policy)
        low, high = (betaincinv(posterior.alpha, posterior.beta, tail) for tail in (TAIL, 1 - TAIL))
        breaks = posterior.changes.breaks if posterior.changes else {}
        return Choice(
            arms=[names.index(draw(odds, each)) for each in draws.tolist()],
            interval=(low, high),
            broken=frozenset(map(names.index, breaks)),
        )

    return play


def policy_of(release: str) -> Policy:
    """The policy of a new site, or that of a new site in that release, with its first calibration if it had one."""
    from bandit.core.calibration import FallbackCalibration
    from bandit.models import Bandit, CalibrationVersion, PolicyVersion
    from bandit.policies import NEW_SITE
    from bandit.reading import policy_from
    from grading.reward.calibrating import SOURCES

    bandit = Bandit(name="world")
    numbers = {**NEW_SITE, **EARLIER.get(release, {})}
    version = PolicyVersion(bandit=bandit, version=1, by="installation", **numbers)
    start = FallbackCalibration(sources=SOURCES)
    calibration = CalibrationVersion(bandit=bandit, version=1, fallbacks=start.as_json(), accepted=True)
    return policy_from(version, calibration=None if release == FIRST_RELEASE else calibration)


def gaussian(history: History, draws: Floats, seed: int) -> Choice:
    n, s, q = history.decayed()
    has_rewards = n > 0
    means = s[has_rewards] / n[has_rewards]
    variance, centre, spread = FIRST_VARIANCE, 0.5, FIRST_SPREAD
    if n.sum() > len(n):
        variance = (q[has_rewards].sum() - (s[has_rewards] * means).sum()) / (n.sum() - len(means))
    if len(means) > 1:
        centre = means.mean()
        spread = max(means.var() - (variance / n[has_rewards]).mean(), LEAST_SPREAD)
    precision = 1 / spread + n / variance
    level, error = (centre / spread + s / variance) / precision, 1 / np.sqrt(precision)
    dice = np.random.default_rng([15, seed, history.today])
    samples = dice.normal(level, error, (len(draws), len(n)))
    return Choice(arms=samples.argmax(1))


def discounted_beta(history: History, draws: Floats, seed: int) -> Choice:
    n, s, _ = history.decayed()
    dice = np.random.default_rng([15, seed, history.today])
    return Choice(arms=dice.beta(1 + s, 1 + np.maximum(n - s, 0), (len(draws), len(n))).argmax(1))


def kl_ucb(history: History, draws: Floats, _seed: int) -> Choice:
    """The index of each session counts the day's sessions before it, whose rewards are not known yet."""
    n, s = history.n.sum(0).astype(np.float64), history.s.sum(0)
    mean = np.clip(s / np.maximum(n, 1), 1e-6, 1 - 1e-6)
    arms = []
    for _ in draws:
        if (n == 0).any():
            arm = int(np.argmin(n))
        else:
            time = n.sum() + 1
            arm = int(_kl_bound(mean, (np.log(time) + 3 * np.log(max(np.log(time), 1.0))) / n).argmax())
        arms.append(arm)
        n[arm] += 1
    return Choice(arms=arms)


def _kl_bound(mean: Floats, divergence: Floats) -> Floats:
    """The greatest mean whose Kullback–Leibler divergence from each of these Bernoulli means is within this one."""
    low, high = mean.copy(), np.full(len(mean), 1 - 1e-9)
    for _ in range(20):
        middle = (low + high) / 2
        distance = mean * np.log(mean / middle) + (1 - mean) * np.log((1 - mean) / (1 - middle))
        is_within = distance <= divergence
        low, high = np.where(is_within, middle, low), np.where(is_within, high, middle)
    return low


def players() -> dict[str, Player]:
    """Everybody by name, today's policy first."""
    return {
        TODAY: site_player(policy_of(TODAY)),
        FIRST_RELEASE: site_player(policy_of(FIRST_RELEASE)),
        "gaussian": gaussian,
        "discounted_beta": discounted_beta,
        "kl_ucb": kl_ucb,
    }
