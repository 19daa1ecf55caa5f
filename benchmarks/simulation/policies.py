"""Today's policy of a new site and two earlier ones, side by side in worlds that change.

Eight arms, fifty sessions a day for sixty days, unless a world says otherwise. Sudden changes happen half-way through.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import betaincinv

from bandit.core.policy import Policy
from bandit.core.posterior import TAIL, Posterior, chances, fold
from bandit.core.thompson import draw
from benchmarks import scratch
from benchmarks.simulation.buckets import Buckets, to_date
from benchmarks.simulation.world import CONCENTRATION, DAYS, JUDGE_NOISE, MEANS, SESSIONS_PER_DAY, Floats

FIRST_RELEASE, TODAY = "0.1", "0.3"
RELEASES = (FIRST_RELEASE, "0.2", TODAY)
# The numbers of the earlier policies that differ from today's.
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
    },
    "0.2": {"exploration": 0.03, "varies_by_day": False},
}
# Bounds of a drifting mean, the best arm's mean once it has broken, and thirty arms' means.
MIN_MEAN, MAX_MEAN = 0.05, 0.95
BROKEN_MEAN = 0.35
THIRTY_MEANS = (0.65, *np.linspace(0.58, 0.35, 29).tolist())
# A trajectory is level + slope × quality, with noise and a level for each arm.
LEVEL, LEVEL_SPREAD, SLOPE, NOISE = 0.05, 0.03, 0.45, 0.12
SAMPLE = 20_000
# Intervals count from this day on.
FIRST_INTERVAL_DAY = 20
RESAMPLES = 2000
# Worlds without change, in which every break is a false one.
STEADY = ("stationary", "ten_a_day", "arms30")
# The worlds whose ratios are figures of their own.
MAIN_WORLDS = ("stationary", "drift", "switch", "breaks", "arms30", "no_judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldRules:
    """Arms' `means`, sessions `per_day`, and the standard deviation of a day's `drift`.

    An arm's mean differs by day with the standard deviation `by_day`, and by the day of the week with `by_weekday`,
    about the mean that counts. `breaks`: the best arm falls to .35. `switches`: the order of the arms reverses.
    `judged`: a judge grades all sessions; otherwise a trajectory, on its own scale. `claimed`: only the agents vouch
    for their work.
    """

    means: tuple[float, ...] = MEANS
    per_day: int = SESSIONS_PER_DAY
    drift: float = 0.0
    breaks: bool = False
    switches: bool = False
    judged: bool = True
    claimed: bool = False
    by_day: float = 0.0
    by_weekday: float = 0.0


WORLDS: Mapping[str, WorldRules] = {
    "stationary": WorldRules(),
    "drift": WorldRules(drift=0.01),
    "drift2": WorldRules(drift=0.02),
    "switch": WorldRules(switches=True),
    "breaks": WorldRules(breaks=True),
    "ten_a_day": WorldRules(per_day=10),
    "arms30": WorldRules(means=THIRTY_MEANS),
    "no_judge": WorldRules(judged=False),
    "days4": WorldRules(by_day=0.04),
    "days8": WorldRules(by_day=0.08),
    "claimed": WorldRules(breaks=True, claimed=True),
    "weekdays": WorldRules(by_weekday=0.08),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangingWorld:
    """`means` by day and arm, on the scale of `rewards`, which are by day, slot and arm. `draws` in [0, 1) are by day
    and slot. `columns` are the same for all rewards.
    """

    means: Floats
    rewards: Floats
    draws: Floats
    columns: Mapping[str, str]


def make_changing_world(rules: WorldRules, seed: int, days: int = DAYS) -> ChangingWorld:
    """The world of a seed: the arms in random order, and every session that could be."""
    dice = np.random.default_rng([13, seed])
    start = dice.permutation(np.array(rules.means))
    means = start + np.cumsum(dice.normal(0, rules.drift, (days, len(start))), axis=0)
    # Reflected at both ends.
    means = MAX_MEAN - np.abs(MAX_MEAN - (MIN_MEAN + np.abs(means - MIN_MEAN)))
    if rules.switches:
        means[days // 2 :] = start.min() + start.max() - start
    if rules.breaks:
        means[days // 2 :, start.argmax()] = BROKEN_MEAN
    shape = days, rules.per_day, len(start)
    day_dice = np.random.default_rng([14, seed])
    week = day_dice.normal(0, rules.by_weekday, (7, len(start)))
    today = means + day_dice.normal(0, rules.by_day, means.shape) + week[np.arange(days) % 7]
    today = np.clip(today, 0.02, 0.98)
    quality = dice.beta(*(CONCENTRATION * each[:, None] for each in (today, 1 - today)), shape)
    noise, level = dice.normal(0, 1, shape), LEVEL + dice.normal(0, LEVEL_SPREAD, len(start))
    columns = {"source": "judge"}
    if rules.judged:
        rewards = np.clip(quality + JUDGE_NOISE * noise, 0, 1)
    else:
        columns = {"source": "trajectory", "version": "trajectory/2", "view": "full"}
        rewards = np.clip(level + SLOPE * quality + NOISE * noise, 0, 1)
        # Regret is on the trajectory's own scale: no other is known.
        sample = dice.beta(*(CONCENTRATION * each for each in (start, 1 - start)), (SAMPLE, len(start)))
        graded = np.clip(level + SLOPE * sample + NOISE * dice.normal(0, 1, sample.shape), 0, 1)
        means = np.tile(graded.mean(0), (days, 1))
    if rules.claimed:
        columns |= {"witness": "claimed", "standing": "claimed"}
    return ChangingWorld(means=means, rewards=rewards, draws=dice.random((days, rules.per_day)), columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One policy's run in a world: its regret, the share of (day, arm) whose 90 % interval contained the mean (None if
    too short for intervals), and the share of arms that were ever called broken.
    """

    regret: float
    coverage: float | None
    broken: float


Lives = Mapping[str, Mapping[str, Sequence[Life]]]  # by world and release


def live_in_worlds(seeds: Iterable[int], days: int) -> Lives:
    """Run every policy in every world. Run i of all of them has the same sessions."""
    with (
        tempfile.TemporaryDirectory() as state,
        ProcessPoolExecutor(initializer=scratch.code, initargs=(state,)) as pool,
    ):
        by_seed = list(pool.map(partial(_live_in_worlds, days=days), seeds))
    return {world: {release: [lives[world][release] for lives in by_seed] for release in RELEASES} for world in WORLDS}


def _live_in_worlds(seed: int, days: int) -> dict[str, dict[str, Life]]:
    policies = {release: policy_of(release) for release in RELEASES}
    lives = {}
    for name, rules in WORLDS.items():
        world = make_changing_world(rules, seed, days)
        lives[name] = {release: live(world, policy) for release, policy in policies.items()}
    return lives


def policy_of(release: str) -> Policy:
    """The policy that new sites began with then, with its first calibration if it had one."""
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


def live(world: ChangingWorld, policy: Policy) -> Life:
    """All days of a world by the bandit's own posterior and chances, read once a day."""
    names = tuple(f"arm-{number:02}" for number in range(world.means.shape[1]))
    buckets, regret = Buckets(), 0.0
    covered, broken = list[bool](), set[str]()
    for day, means in enumerate(world.means):
        posterior = fold(list(buckets.rows), arms=names, policy=policy, today=to_date(day))
        broken |= set(posterior.changes.breaks) if posterior.changes else set()
        if day >= FIRST_INTERVAL_DAY:
            covered += contains(posterior, means)
        odds = chances(posterior.chance_of_best(names), policy)
        arms = [names.index(draw(odds, chance)) for chance in world.draws[day].tolist()]
        regret += float(means.max() * len(arms) - means[arms].sum())
        for slot, arm in enumerate(arms):
            buckets.add(float(world.rewards[day, slot, arm]), arm=names[arm], day=day, **world.columns)
    coverage = float(np.mean(covered)) if covered else None
    return Life(regret=regret, coverage=coverage, broken=len(broken) / len(names))


def contains(posterior: Posterior, means: Floats) -> list[bool]:
    """For each arm, whether its 90 % interval contains its mean."""
    low, high = (betaincinv(posterior.alpha, posterior.beta, tail) for tail in (TAIL, 1 - TAIL))
    inside: list[bool] = ((low <= means) & (means <= high)).tolist()
    return inside


# Figures


def ratio(mine: Floats, others: Floats) -> float:
    """The mean regret, relative to another's; (runs,) each."""
    return float(mine.sum() / others.sum())


def interval(mine: Floats, others: Floats) -> tuple[float, float]:
    """The central 90 % of that ratio over resampled runs, which are paired."""
    picks = np.random.default_rng(0).integers(0, len(mine), (RESAMPLES, len(mine)))
    low, high = np.quantile(mine[picks].sum(axis=1) / others[picks].sum(axis=1), (0.05, 0.95))
    return float(low), float(high)


def regrets(lives: Sequence[Life]) -> Floats:
    return np.array([life.regret for life in lives])


def coverage(lives: Sequence[Life]) -> float | None:
    shares = [life.coverage for life in lives if life.coverage is not None]
    return float(np.mean(shares)) if shares else None


def broken(lives: Sequence[Life]) -> float:
    return float(np.mean([life.broken for life in lives]))


def figures(lives: Lives) -> dict[str, Any]:
    """The figures by name: today's regrets relative to the first policy's, with the upper bounds of their intervals;
    shares of intervals that contained the mean; and of arms that were called broken where none was.
    """
    ratios, upper, covers = {}, {}, {}
    for world, by_release in lives.items():
        today, first = regrets(by_release[TODAY]), regrets(by_release[FIRST_RELEASE])
        ratios[world] = round(ratio(today, first), 3)
        upper[world] = round(interval(today, first)[1], 3)
        share = coverage(by_release[TODAY])
        covers[world] = None if share is None else round(share, 3)
    return {
        **{world: ratios[world] for world in MAIN_WORLDS},
        "no_judge_coverage": covers["no_judge"],
        "false_breaks": round(max(broken(lives[world][TODAY]) for world in STEADY), 4),
        "upper": upper,
        "beside": {world: value for world, value in ratios.items() if world not in MAIN_WORLDS},
        "covers": covers,
        "runs": len(lives["stationary"][TODAY]),
    }


def table(lives: Lives) -> str:
    rows = []
    for world, by_release in lives.items():
        first = regrets(by_release[FIRST_RELEASE])
        for release, runs in by_release.items():
            mine, share = regrets(runs), coverage(runs)
            low, high = interval(mine, first)
            row = [world, release, f"{mine.mean():.1f}", f"{ratio(mine, first):.3f}", f"{low:.3f} – {high:.3f}"]
            rows.append([*row, "" if share is None else f"{share:.3f}", f"{broken(runs):.3f}"])
    headings = ["world", "release", "regret", f"÷ {FIRST_RELEASE}'s", "90 % interval", "coverage", "called broken"]
    return scratch.table(headings, rows)
