"""Do sources on different scales say the same about an arm: a judge, a trajectory, and sessions that nobody can grade?

- Two equal arms: half of one's sessions are graded by trajectory alone. Beside them, the same arms with all judged, and
  both of them 90 days later.
- Eight arms: one was never judged, or judged a few times, or half of its logs can't be read; or the judge was away for
  five weeks. How far are posterior means off, and how often do intervals contain the truth?
- A weak arm whose failures leave no trace, a tenth of them judged: regret beside that of a world where all are judged.

Everything is read by the bandit's own cores: `bandit.core.calibration` fits, `bandit.core.posterior` folds.

    python benchmarks/scale.py [--quick | --smoke]
"""

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bandit.core.calibration import FallbackCalibration, JudgedSession, fit
from bandit.core.policy import Policy
from bandit.core.posterior import Posterior, fold
from bandit.core.propensity import propensities
from bandit.core.table import ABSTAINED
from benchmarks import scratch
from benchmarks.scratch import Size
from benchmarks.simulation.buckets import Buckets, to_date

Floats = NDArray[np.float64]
# Runs of the worlds that are read once, and of those that are lived day by day.
SIZES = {Size.FULL: (500, 500), Size.QUICK: (60, 3), Size.SMOKE: (3, 1)}
# The site's numbers.
WEIGHTS = {"human": 1.0, "judge": 1.0, "consumption": 1.0, "trajectory": 0.3, "journal": 0.3}
CAPS = {"journal": 12.0}
FALLBACKS = ("journal", "trajectory")
# A session's quality is Beta(6μ, 6(1−μ)): a standard deviation of .18 to .2 within an arm.
CONCENTRATION = 6
JUDGE_NOISE = 0.07
# A trajectory has another level, a smaller slope, noise, and a level for each arm. Within an arm it then explains about
# .3 of a verdict's variance.
SLOPE, NOISE, ARM_NOISE = 0.45, 0.12, 0.03
SAMPLE = 50_000
# Equal arms: their mean, the level of their trajectories, days and sessions of each. A chance is extreme below .05 and
# above .95.
EQUAL_MEAN, EQUAL_LEVEL, EQUAL_DAYS, EQUAL_SESSIONS = 0.82, -0.17, 20, 40
EXTREME = 0.05
LATER_DAYS = 90
# Eight arms.
MEANS = (0.80, 0.73, 0.67, 0.61, 0.55, 0.49, 0.43, 0.37)
LEVEL = 0.05
DAYS, SESSIONS_PER_DAY = 60, 50
OUTAGE_DAYS, BLIND_SHARE, FEW_JUDGED = 35, 0.5, 8
# Silent failure: the worth of a session that failed and of one that didn't, and each arm's chance of success. The
# first arm's failures are silent.
FAILED, SUCCEEDED = 0.12, 0.85
SUCCESS_CHANCES = (0.36, 0.75, 0.62, 0.58, 0.54, 0.50, 0.46, 0.42)
RESERVED = 0.1
CHANCE_FLOOR = 0.01
# The calibration is fitted every night at first, then only so often because it hardly moves.
DAILY_FITS, FIT_EVERY = 14, 4


def main() -> None:
    parser = scratch.parser(
        __doc__, quick="60 runs instead of 500, 3 of those by the day", smoke="3 runs, 1 by the day"
    )
    runs, daily_runs = SIZES[parser.parse_args().size]
    with ProcessPoolExecutor() as pool:
        equal = list(pool.map(run_equal_arms, range(runs), chunksize=8))
        eight = list(pool.map(run_eight_arms, range(runs), chunksize=4))
        silent = list(pool.map(run_silent_failure, range(daily_runs)))
    result = figures(equal, eight, silent)
    for name, value in result.items():
        print(f"{name:24} {value}")
    print(json.dumps(result))


def figures(
    equal: list[dict[str, float]], eight: list[dict[str, list["ArmEstimate"]]], silent: list[dict[str, float]]
) -> dict[str, Any]:
    """The figures by name: chances, errors in reward, shares, ratios of regret."""
    best, twin, raw = (np.array([run[name] for run in equal]) for name in ("best", "twin", "raw"))
    later, twin_later = (np.array([run[name] for run in equal]) for name in ("best later", "twin later"))
    clock = float(np.abs(later - best).mean() - np.abs(twin_later - twin).mean())
    errors, coverage = {}, {}
    for case in eight[0]:
        estimates = [estimate for run in eight for estimate in run[case]]
        errors[case] = float(np.mean([estimate.error for estimate in estimates]))
        coverage[case] = float(np.mean([estimate.is_covered for estimate in estimates]))
    regret = {name: float(np.mean([run[name] for run in silent])) for name in silent[0]}
    return {
        "p_best_mean": round(float(best.mean()), 3),
        "clock_90_days_points": round(100 * clock, 1),
        "extreme_excess_points": round(100 * (extreme_share(best) - extreme_share(twin)), 1),
        "error_with_pairs": round(max(errors["blind"], errors["outage"]), 4),
        "coverage_without_pairs": round(min(coverage["never"], coverage["rarely"]), 3),
        "silent_ratio": round(regret["sampled"] / regret["all judged"], 2),
        "beside": {
            "p_best_twins": round(float(twin.mean()), 3),
            "p_best_raw": round(float(raw.mean()), 3),
            "p_best_later": round(float(later.mean()), 3),
            "extreme_twins": round(100 * extreme_share(twin), 1),
            "errors": {case: round(value, 4) for case, value in errors.items()},
            "coverage": {case: round(value, 3) for case, value in coverage.items()},
            "silent_regret": {name: round(value, 1) for name, value in regret.items()},
        },
    }


def extreme_share(chances: Floats) -> float:
    return float(np.mean((chances < EXTREME) | (chances > 1 - EXTREME)))


# Sessions and what the site stores of them


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSession:
    """A finished session: its verdict and its trajectory, both in [0, 1]. The trajectory abstains if it is None."""

    arm: str
    day: int
    verdict: float
    trajectory: float | None
    reason: str = "nothing_observable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """Arms with these mean qualities. `levels` are their trajectories of quality 0."""

    means: Floats
    levels: Floats

    @classmethod
    def draw(cls, means: Sequence[float], dice: np.random.Generator, level: float = LEVEL) -> "Arms":
        return cls(means=np.array(means), levels=level + dice.normal(0, ARM_NOISE, len(means)))

    @property
    def names(self) -> tuple[str, ...]:
        return arm_names(len(self.means))

    def session(self, arm: int, day: int, dice: np.random.Generator) -> ScaleSession:
        """A session of this arm. Verdict and trajectory grade the same quality."""
        mean = float(self.means[arm])
        quality = float(dice.beta(CONCENTRATION * mean, CONCENTRATION * (1 - mean)))
        verdict = float(np.clip(quality + dice.normal(0, JUDGE_NOISE), 0, 1))
        trajectory = float(np.clip(self.levels[arm] + SLOPE * quality + dice.normal(0, NOISE), 0, 1))
        return ScaleSession(arm=self.names[arm], day=day, verdict=verdict, trajectory=trajectory)


def arm_names(count: int) -> tuple[str, ...]:
    return tuple(f"arm-{number}" for number in range(count))


@cache
def true_verdict_mean(mean: float) -> float:
    """The mean verdict of an arm with this mean quality."""
    dice = np.random.default_rng(7)
    quality = dice.beta(CONCENTRATION * mean, CONCENTRATION * (1 - mean), SAMPLE)
    return float(np.clip(quality + dice.normal(0, JUDGE_NOISE, SAMPLE), 0, 1).mean())


class Ledger:
    """The buckets of all sessions, and the pairs of those that were judged."""

    def __init__(self) -> None:
        self.buckets = Buckets()
        self.pairs: list[JudgedSession] = []

    def add(self, session: ScaleSession, *, judged: bool) -> None:
        """The reward is the verdict if there is one, otherwise the trajectory or its abstention."""
        kind = (ABSTAINED, session.reason) if session.trajectory is None else ("trajectory", "")
        fallback = session.trajectory or 0.0
        if judged:
            self._add(session, ("judge", ""), session.verdict)
            self.pairs.append(
                JudgedSession(
                    arm=session.arm,
                    source=kind[0],
                    reason=kind[1],
                    fallback=fallback,
                    judge=session.verdict,
                    day=to_date(session.day),
                )
            )
        else:
            self._add(session, kind, fallback)

    def calibrate(self) -> FallbackCalibration:
        """The calibration that the site would have fitted by now."""
        return fit(self.pairs, FALLBACKS)

    def posterior(self, arms: Sequence[str], day: int, calibration: FallbackCalibration | None) -> Posterior:
        """The bandit's posterior on a day. Without a calibration it reads trajectories as verdicts."""
        policy = Policy(weights=WEIGHTS, caps=CAPS, calibration=calibration)
        return fold(self.buckets.rows, arms=arms, policy=policy, today=to_date(day))

    def _add(self, session: ScaleSession, kind: tuple[str, str], value: float) -> None:
        self.buckets.add(value, arm=session.arm, source=kind[0], day=session.day, view=kind[1])


# Two equal arms


def run_equal_arms(seed: int) -> dict[str, float]:
    """P(best) of the arm with trajectories: calibrated, of its all-judged twin, and without a calibration ("raw"); and
    the first two again 90 days later.
    """
    dice = np.random.default_rng([1, seed])
    arms = Arms.draw((EQUAL_MEAN, EQUAL_MEAN), dice, level=EQUAL_LEVEL)
    half_judged, all_judged = Ledger(), Ledger()
    for number in range(EQUAL_SESSIONS):
        for arm in (0, 1):
            session = arms.session(arm, number * EQUAL_DAYS // EQUAL_SESSIONS, dice)
            half_judged.add(session, judged=arm == 1 or number % 2 == 0)
            all_judged.add(session, judged=True)
    calibration, later = half_judged.calibrate(), EQUAL_DAYS + LATER_DAYS
    readings = {
        "best": half_judged.posterior(arms.names, EQUAL_DAYS, calibration),
        "twin": all_judged.posterior(arms.names, EQUAL_DAYS, calibration),
        "raw": half_judged.posterior(arms.names, EQUAL_DAYS, None),
        "best later": half_judged.posterior(arms.names, later, calibration),
        "twin later": all_judged.posterior(arms.names, later, calibration),
    }
    return {name: posterior.chance_of_best(arms.names)["arm-0"] for name, posterior in readings.items()}


# Eight arms, the first of which is judged less


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmEstimate:
    """How far an arm's posterior mean is off, and whether its interval contains the truth."""

    error: float
    is_covered: bool


def run_eight_arms(seed: int) -> dict[str, list[ArmEstimate]]:
    """The estimates of the first arm in each case; of all arms after an outage."""
    dice = np.random.default_rng([2, seed])
    arms = Arms.draw(dice.permutation(MEANS), dice)
    ledgers = {case: Ledger() for case in ("never", "rarely", "blind", "outage")}
    first_arm_sessions = 0
    for day in range(DAYS):
        for slot in range(SESSIONS_PER_DAY):
            arm = (day * SESSIONS_PER_DAY + slot) % len(MEANS)
            session = abstain_sometimes(arms.session(arm, day, dice), dice)
            is_blind, is_judged = arm == 0 and dice.random() < BLIND_SHARE, dice.random() < BLIND_SHARE
            first_arm_sessions += arm == 0
            unreadable = replace(session, trajectory=None, reason="format_blind")
            ledgers["never"].add(session, judged=arm != 0)
            ledgers["rarely"].add(session, judged=arm != 0 or first_arm_sessions <= FEW_JUDGED)
            ledgers["blind"].add(unreadable if is_blind else session, judged=arm != 0 or is_judged)
            ledgers["outage"].add(session, judged=day < DAYS - OUTAGE_DAYS)
    estimates = {}
    for case, ledger in ledgers.items():
        posterior = ledger.posterior(arms.names, DAYS, ledger.calibrate())
        estimates[case] = []
        for arm in range(len(MEANS)) if case == "outage" else (0,):
            believed, truth = posterior.arms[arms.names[arm]], true_verdict_mean(float(arms.means[arm]))
            is_covered = believed.low <= truth <= believed.high
            estimates[case].append(ArmEstimate(error=abs(believed.mean - truth), is_covered=is_covered))
    return estimates


def abstain_sometimes(session: ScaleSession, dice: np.random.Generator) -> ScaleSession:
    """Sessions that went badly leave a trace less often."""
    if dice.random() < 0.1 + 0.3 * (1 - session.verdict):
        return replace(session, trajectory=None)
    return session


# Silent failure


def run_silent_failure(seed: int) -> dict[str, float]:
    """Regret with all sessions judged; with a sample of the silent failures judged; and with all of them left out."""
    return {case: run_silent_case(seed, case) for case in ("all judged", "sampled", "left out")}


def run_silent_case(seed: int, case: str) -> float:
    dice = np.random.default_rng([3, seed])
    names, ledger, calibration = arm_names(len(SUCCESS_CHANCES)), Ledger(), FallbackCalibration(sources=FALLBACKS)
    worth = [FAILED + (SUCCEEDED - FAILED) * chance for chance in SUCCESS_CHANCES]
    regret = 0.0
    for day in range(DAYS):
        if case == "sampled" and (day <= DAILY_FITS or day % FIT_EVERY == 0):
            calibration = ledger.calibrate()
        best = ledger.posterior(names, day, calibration).chance_of_best(names)
        odds = propensities(np.array([best[name] for name in names]), floor=CHANCE_FLOOR)
        for arm in dice.choice(len(names), SESSIONS_PER_DAY, p=odds):
            succeeds, noise = dice.random() < SUCCESS_CHANCES[arm], dice.normal(0, 0.08)
            is_drawn = dice.random() < RESERVED
            verdict = float(np.clip((SUCCEEDED if succeeds else FAILED) + noise, 0, 1))
            is_silent = arm == 0 and not succeeds
            session = ScaleSession(
                arm=names[arm], day=day, verdict=verdict, trajectory=None if is_silent else verdict / 2
            )
            ledger.add(session, judged=case == "all judged" or not is_silent or (is_drawn and case == "sampled"))
            regret += max(worth) - worth[arm]
    return regret


if __name__ == "__main__":
    main()
