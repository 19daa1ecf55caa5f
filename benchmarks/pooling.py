"""What arms of harness and model win by sharing what is known of their parts, beside the same arms each by itself.

Four harnesses and five models, 10, 30 and 50 decisions a day for sixty days; the site's own `fold` and `chance_of_best`
with a new site's numbers, the posterior read once a day, the same worlds, rewards and draws for both.
In the additive world a mean is μ + harness + model and a small interaction (deviations .08, .08 and .02), in the
interactive one parts tell nothing (.12). Regret is what the chosen arms' true means fall short of the best one's.

Coverage is that of the 90 % intervals, over all arms and several days. The error of P(best) is the largest of all arms'
against draws from the joint normal distribution, with its covariances, that has the intervals' means and variances.

    python benchmarks/pooling.py [--quick | --smoke] [--runs N] [--first SEED]
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bandit.core.policy import Policy
from bandit.core.posterior import Posterior, chances, fold
from bandit.core.table import MICRO, Floats, RewardRow
from benchmarks import scratch
from benchmarks.scratch import Size

HARNESSES, MODELS = ("claude-code", "codex", "gptme", "goose"), ("haiku", "opus", "sonnet", "terra", "luna")
PARTS = {f"{harness}/{model}": (harness, model) for harness in HARNESSES for model in MODELS}
ARMS = tuple(sorted(PARTS))
# Deviations of harnesses, models and their interaction; rewards are Betas of this strength, some .2 around their mean.
WORLDS = {"additive": (0.08, 0.08, 0.02), "interactive": (0.0, 0.0, 0.12)}
STRENGTH = 5.0
START, DAYS = date(2026, 1, 1), 60
A_DAY = (10, 30, 50)
# Days after which intervals and chances are looked at.
LOOKS = (1, 3, 7, 14, 30, 45, 59)
DRAWN, RESAMPLED = 100_000, 2000
# Seeds below were used to find the grid and the priors of `bandit.core.pooling`.
FIRST = 1000
# Runs of each world and number of decisions.
SIZES = {Size.FULL: 40, Size.QUICK: 4, Size.SMOKE: 1}
# What a new site begins with (`bandit.policies.DEFAULTS`).
INDEPENDENT = Policy(weights={"judge": 1.0}, half_life=45.0, exploration=0.03, sharpness=2.0, follows_change=True)
POOLED = replace(INDEPENDENT, parts=PARTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One run: its `regret`, the share of intervals that held the truth, and the errors of P(best) where looked at."""

    regret: float
    covered: float
    errors: tuple[float, ...]


def main() -> None:
    parser = scratch.parser(__doc__, quick="4 runs instead of 40", smoke="one run of eight days")
    parser.add_argument("--runs", type=int, help="how many runs of each world, each with a seed of its own")
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    given = parser.parse_args()
    seeds = range(given.first, given.first + (given.runs or SIZES[given.size]))
    days = 8 if given.size is Size.SMOKE else DAYS
    print(f"{len(seeds)} runs of {days} days\n{'world':12} {'a day':>5} {'alone':>7} {'pooled':>7} {'ratio':>6}  90 %")
    found: dict[str, tuple[list[Played], list[Played]]] = {}
    for world in WORLDS:
        alone, pooled = found[world] = [], []
        for a_day in A_DAY:
            own = [play(INDEPENDENT, world, seed, a_day, days) for seed in seeds]
            shared = [play(POOLED, world, seed, a_day, days) for seed in seeds]
            print(line(world, str(a_day), own, shared))
            alone += own
            pooled += shared
        print(line(world, "all", alone, pooled))
    print(json.dumps(measured(found)))


def line(world: str, a_day: str, alone: Sequence[Played], pooled: Sequence[Played]) -> str:
    low, high = interval(alone, pooled)
    was, now = (np.mean([run.regret for run in runs]) for runs in (alone, pooled))
    covered = ", ".join(f"{np.mean([run.covered for run in runs]):.2f}" for runs in (alone, pooled))
    errors = [error for run in pooled for error in run.errors]
    return (
        f"{world:12} {a_day:>5} {was:7.1f} {now:7.1f} {now / was:6.3f}  {low:.3f} – {high:.3f}; covered {covered}; "
        f"P(best) off by {np.mean(errors):.3f}, {max(errors):.3f} at most"
    )


def measured(found: Mapping[str, tuple[list[Played], list[Played]]]) -> dict[str, object]:
    pooled = [run for _alone, runs in found.values() for run in runs]
    errors = [error for run in pooled for error in run.errors]
    return {
        "pooled_ratio": round(ratio(*found["additive"]), 3),
        "interactive_ratio": round(ratio(*found["interactive"]), 3),
        "coverage": round(min(float(np.mean([run.covered for run in runs])) for _, runs in found.values()), 3),
        "p_best_error": round(float(np.mean(errors)), 4),
        "p_best_error_worst": round(max(errors), 3),
        "intervals": {world: [round(each, 3) for each in interval(*runs)] for world, runs in found.items()},
    }


def ratio(alone: Sequence[Played], pooled: Sequence[Played]) -> float:
    return sum(run.regret for run in pooled) / sum(run.regret for run in alone)


def interval(alone: Sequence[Played], pooled: Sequence[Played]) -> tuple[float, float]:
    """The central 90 % of the ratio over resampled pairs of runs."""
    was, now = (np.array([run.regret for run in runs]) for runs in (alone, pooled))
    picks = np.random.default_rng(0).integers(0, len(was), (RESAMPLED, len(was)))
    low, high = np.quantile(now[picks].sum(axis=1) / was[picks].sum(axis=1), (0.05, 0.95))
    return float(low), float(high)


def play(policy: Policy, world: str, seed: int, a_day: int, days: int) -> Played:
    """Sixty days of a world: chosen by the site's own cores, once read each morning."""
    dice = np.random.default_rng((seed, a_day))
    means = true_means(dice, *WORLDS[world])
    rewards = dice.beta(STRENGTH * means, STRENGTH * (1 - means), (days, a_day, len(means)))
    draws = dice.random((days, a_day))
    rows: list[RewardRow] = []
    regret, covered, errors = 0.0, list[float](), list[float]()
    for day in range(days):
        today = START + timedelta(days=day)
        posterior = fold(rows, arms=ARMS, policy=policy, today=today)
        best = posterior.chance_of_best(ARMS)
        if day in LOOKS:
            arms = posterior.arms
            covered += [arms[name].low <= mean <= arms[name].high for name, mean in zip(ARMS, means, strict=True)]
            if posterior.pooled is not None:
                errors.append(float(np.abs(np.array(list(best.values())) - joint_best(posterior, seed)).max()))
        odds = np.array(list(chances(best, policy).values()))
        chosen = np.minimum(np.searchsorted(np.cumsum(odds), draws[day], side="right"), len(ARMS) - 1)
        regret += float((means.max() - means[chosen]).sum())
        micros = np.round(rewards[day, np.arange(a_day), chosen] * MICRO).astype(np.int64)
        for arm in np.unique(chosen):
            own = micros[chosen == arm]
            n, s, q = len(own), int(own.sum()), int((own**2).sum())
            rows.append(RewardRow(arm=ARMS[arm], source="judge", day=today, n=n, s=s, q=q))
    return Played(regret=regret, covered=float(np.mean(covered)), errors=tuple(errors))


def true_means(dice: np.random.Generator, harness: float, model: float, both: float) -> Floats:
    """What each arm is worth, in the order of ARMS."""
    ofs = dict(zip((*HARNESSES, *MODELS), dice.normal(0, 1, len(HARNESSES) + len(MODELS)), strict=True))
    middle, own = dice.uniform(0.4, 0.6), dice.normal(0, both, len(ARMS))
    parts = np.array([harness * ofs[PARTS[arm][0]] + model * ofs[PARTS[arm][1]] for arm in ARMS])
    means: Floats = np.clip(middle + parts + own, 0.05, 0.95)
    return means


def joint_best(posterior: Posterior, seed: int) -> Floats:
    """P(best) by draws from the joint normal distribution of the means."""
    assert posterior.pooled is not None  # noqa: S101 - asked of pooled ones alone
    strength = posterior.alpha + posterior.beta
    mean = posterior.alpha / strength
    shared = posterior.pooled.shared.copy()
    np.fill_diagonal(shared, mean * (1 - mean) / (strength + 1))
    drawn = np.random.default_rng(seed).multivariate_normal(mean, shared, DRAWN, method="eigh", check_valid="ignore")
    share: Floats = np.bincount(drawn.argmax(axis=1), minlength=len(mean)) / DRAWN
    return share


if __name__ == "__main__":
    main()
