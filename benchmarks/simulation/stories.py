"""Seed 000's story: what becomes of reading when commits are counted, and when what it leaves behind is.

Six kinds of production work and two of reading, fifty sessions a day for sixty days. The choice knows the site's limit
of two reading sessions a day and its feedback from the 14-day average. Each day every kind of production has work with
a chance of one half; there is always something to triage and to read. Nothing is judged.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandit.core.policy import Policy
from bandit.core.posterior import Posterior, fold
from bandit.core.propensity import propensities
from bandit.core.table import MICRO, RewardRow
from bandit.core.thompson import FeedbackSizes, draw, feedback, uniform
from benchmarks.simulation.buckets import Buckets, on
from benchmarks.simulation.reading import KINDS, MEASURES, PRODUCTION, READING, SUPPLY, Counts, Measure, graded
from benchmarks.simulation.regimes import SITE
from benchmarks.simulation.world import A_DAY, DAYS

# The site's sizes, by default.
SIZES = FeedbackSizes(boost=1.1, penalty=0.8, window=14, min_samples=5)
POLICY = Policy(weights=SITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What became of reading in a run: its sessions' rewards, those of sessions that left an idea and a post, and its
    share of all choices in the second half. Sessions without a reward are in the share only.
    """

    rewards: tuple[float, ...]
    inspired: tuple[float, ...]
    share: float


class _Session(NamedTuple):
    day: int
    kind: str
    counts: Counts
    reward: float | None


def stories(seeds: Iterable[int], *, days: int = DAYS, workers: int | None = None) -> dict[str, list[Story]]:
    """What each measure makes of each seed's sessions, by the measure's name; the same sessions and draws for all."""
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(partial(in_world, days=days), seeds))
    return {measure.name: [told[i] for told in found] for i, measure in enumerate(MEASURES)}


def in_world(seed: int, days: int) -> list[Story]:
    """The stories of the measures in this seed's world, in their order."""
    dice = np.random.default_rng(seed)
    rates = np.array(list(KINDS.values()))
    done = dice.poisson(rates, (days, A_DAY, *rates.shape))
    supply = dice.random((days, len(PRODUCTION))) < np.array(list(SUPPLY.values()))
    return [_story(seed, done, supply, measure) for measure in MEASURES]


def _story(seed: int, done: NDArray[np.int64], supply: NDArray[np.bool_], measure: Measure) -> Story:
    sessions = list(_sessions(seed, done, supply, measure))
    read = [
        (session.counts, session.reward)
        for session in sessions
        if session.kind in READING and session.reward is not None
    ]
    late = [session.kind for session in sessions if session.day >= len(done) // 2]
    return Story(
        rewards=tuple(reward for _counts, reward in read),
        inspired=tuple(reward for counts, reward in read if counts.ideas and counts.posts),
        share=sum(kind in READING for kind in late) / len(late),
    )


def _sessions(seed: int, done: NDArray[np.int64], supply: NDArray[np.bool_], measure: Measure) -> Iterator[_Session]:
    """The sessions of a run, each chosen by the odds that were read in the morning."""
    buckets = Buckets()
    for day in range(len(done)):
        working = [kind for kind, has_work in zip(PRODUCTION, supply[day], strict=True) if has_work]
        posterior = fold(buckets.rows, arms=KINDS, policy=POLICY, today=on(day))
        within, beyond = (_odds(posterior, buckets.rows, kinds) for kinds in ([*working, *READING], working))
        read = 0
        for slot in range(A_DAY):
            kind = draw(within if read < measure.limit else beyond, uniform(f"reading-{seed}", f"{day}/{slot}"))
            counts = Counts(*done[day, slot, list(KINDS).index(kind)].tolist())
            credit = graded(counts, is_reading=kind in READING, measure=measure)
            if credit is not None:
                buckets.apply(kind, day, credit)
            read += kind in READING
            yield _Session(day, kind, counts, credit and credit.value)


def _odds(posterior: Posterior, rows: Collection[RewardRow], names: Sequence[str]) -> Mapping[str, float]:
    """As the site's selection: P(best) among these, times what the feedback says of reading, above the floor."""
    best = posterior.chance_of_best(names)
    factors = [_factor(rows, posterior.day, name) if name in READING else 1.0 for name in best]
    shares = propensities(np.array(list(best.values())) * factors, floor=POLICY.floor)
    return dict(zip(best, shares.tolist(), strict=True))


def _factor(rows: Iterable[RewardRow], today: date, name: str) -> float:
    since = today - timedelta(days=SIZES.window)
    recent = [row for row in rows if row.arm == name and row.day > since]
    n, s = sum(row.n for row in recent), sum(row.s for row in recent)
    moved = feedback(n, s / n / MICRO if n else 0.0, SIZES)
    return moved.factor if moved else 1.0


def table(told: Mapping[str, Sequence[Story]]) -> str:
    """A line for each measure."""
    head = (
        f"{'what is counted in reading sessions':42} mean reward  with an idea and a post  share of choices, 2nd half"
    )
    return "\n".join([head, *(_line(name, **figures) for name, figures in measured(told).items())])


def measured(told: Mapping[str, Sequence[Story]]) -> dict[str, dict[str, float]]:
    """Of each measure: the mean reward of reading sessions, of those that left an idea and a post with the central 90 %
    of it, and the share of reading among all choices of the second half.
    """
    return {name: _measured(stories) for name, stories in told.items()}


def _measured(stories: Sequence[Story]) -> dict[str, float]:
    rewards = np.concatenate([story.rewards for story in stories])
    inspired = np.concatenate([story.inspired for story in stories])
    low, high = np.quantile(inspired, (0.05, 0.95))
    return {
        "mean": round(float(rewards.mean()), 3),
        "inspired": round(float(inspired.mean()), 3),
        "inspired_low": round(float(low), 3),
        "inspired_high": round(float(high), 3),
        "share": round(float(np.mean([story.share for story in stories])), 4),
    }


def _line(name: str, *, mean: float, inspired: float, inspired_low: float, inspired_high: float, share: float) -> str:
    spread = f"{inspired:.2f} ({inspired_low:.2f} – {inspired_high:.2f})"
    return f"{name:42} {mean:11.2f}  {spread:>23}  {share:27.1%}"
