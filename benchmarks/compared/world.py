"""Sessions of a simulated site as arrays, with all that is hidden from the page.

The world is not the estimator's model. A session's quality is that of its category, plus what its day, its difficulty
and its task add, plus an error with heavy tails (Student's t with three degrees of freedom), and is cut to [0, 1]. Days
are an autoregression, or a Markov chain of calm and bad spells. Difficulty is shared by the sessions of some days in a
row of one category. The judge adds an error of its own, and a rubric reads higher or lower before the cut.
"""

from dataclasses import dataclass, replace

import numpy as np

LEVELS = np.array([0.35, 0.45, 0.55, 0.65, 0.75, 0.85])
CATEGORIES = ("research", "triage", "infra", "content", "code", "cross-repo")
# Of sessions on Monday to Sunday.
WEEKDAYS = np.array([1.2, 1.15, 1.1, 1.1, 1.05, 0.75, 0.65])
# The quality of sessions at weekends differs, too.
WEEKEND_EFFECT = -0.02
ERROR, JUDGE_ERROR, TASK_EFFECT = 0.10, 0.06, 0.08
PER_DAY = 40
SATURDAY = 5
# The share of days in bad spells.
BAD = 0.25


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a world does. Days count from 0. Arrays have an entry for each day, or a row for each.

    `level[d]` is added to the quality of sessions whose agent changed; `difficulty[d]` to that of sessions that are not
    recurring tasks; `reading[d]` before the cut by the rubric in force, whose number is `rubric[d]`. `shares[d, k]` are
    those of categories; `missing[d, k]` the chance to have no grade. `best_missing[d]`: the share of best sessions that
    have no grade. `new_version[d]`: whether the first harness has its new version, which has the `level`.
    """

    days: int
    level: np.ndarray
    difficulty: np.ndarray
    reading: np.ndarray
    rubric: np.ndarray
    shares: np.ndarray
    missing: np.ndarray
    best_missing: np.ndarray
    new_version: np.ndarray
    day_deviation: float = 0.04
    day_correlation: float = 0.3
    task_share: float = 0.0
    tasks: int = 12
    first_harness: float = 1.0


def steady(days: int, **fields: object) -> Plan:
    """A world in which nothing changes."""
    zeros, count = np.zeros(days), len(LEVELS)
    plan = Plan(
        days=days,
        level=zeros,
        difficulty=zeros,
        reading=zeros,
        rubric=np.zeros(days, dtype=int),
        shares=np.full((days, count), 1 / count),
        missing=np.full((days, count), 0.03),
        best_missing=zeros,
        new_version=np.zeros(days, dtype=bool),
    )
    return replace(plan, **fields)


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """One entry for each session. `reward` is NaN without a grade; `task` is -1 without a recurring task."""

    day: np.ndarray
    category: np.ndarray
    harness: np.ndarray
    is_new: np.ndarray
    task: np.ndarray
    rubric: np.ndarray
    quality: np.ndarray
    reward: np.ndarray
    # What it would be without the plan's `level`, also of sessions without a grade.
    reward_before: np.ndarray
    # What the new rubric says of it, for sessions that are read again.
    reread: np.ndarray
    cost: np.ndarray
    minutes: np.ndarray
    # What each day added to the quality.
    day_effect: np.ndarray


def live(plan: Plan, rng: np.random.Generator) -> Sessions:
    effect = draw_days(plan, rng)
    counts = rng.poisson(PER_DAY * WEEKDAYS[np.arange(plan.days) % 7])
    day = np.repeat(np.arange(plan.days), counts)
    category = np.array([rng.choice(len(LEVELS), p=plan.shares[each]) for each in day])
    is_task = rng.random(len(day)) < plan.task_share
    task = np.where(is_task, rng.integers(plan.tasks, size=len(day)), -1)
    category = np.where(is_task, task % len(LEVELS), category)
    task_effects = rng.normal(0, TASK_EFFECT, plan.tasks)
    harness = (rng.random(len(day)) >= plan.first_harness).astype(int)
    is_new = plan.new_version[day] & (harness == 0)
    base = LEVELS[category] + effect[day] + WEEKEND_EFFECT * (day % 7 >= SATURDAY)
    base = base + np.where(is_task, task_effects[task], plan.difficulty[day])
    touched = is_new if plan.new_version.any() else np.ones(len(day), dtype=bool)
    error = draw_errors(len(day), rng)
    quality = base + plan.level[day] * touched + error
    said = plan.reading[day] + rng.normal(0, JUDGE_ERROR, len(day))
    reward, reward_before = np.clip(quality + said, 0, 1), np.clip(base + error + said, 0, 1)
    reread = np.clip(quality + plan.reading[-1] + rng.normal(0, JUDGE_ERROR, len(day)), 0, 1)
    is_missing = rng.random(len(day)) < plan.missing[day, category]
    rank = np.argsort(np.argsort(quality - LEVELS[category])) / max(1, len(day))
    is_missing |= rank > 1 - plan.best_missing[day]
    cost = np.exp(rng.normal(13, 0.8, len(day))).astype(int)
    return Sessions(
        day=day,
        category=category,
        harness=harness,
        is_new=is_new,
        task=task,
        rubric=plan.rubric[day],
        quality=quality,
        reward=np.where(is_missing, np.nan, reward),
        reward_before=reward_before,
        reread=reread,
        cost=cost,
        minutes=np.exp(rng.normal(2.5, 0.7, len(day)) + 0.1 * rng.normal(size=plan.days)[day]),
        day_effect=effect,
    )


def draw_days(plan: Plan, rng: np.random.Generator) -> np.ndarray:
    """What each day adds: half of the variance is an autoregression, half are spells of bad days, a quarter of all."""
    days, rho = plan.days, plan.day_correlation
    series, bad = np.zeros(days), np.zeros(days)
    state, is_bad = rng.normal(), rng.random() < BAD
    for each in range(days):
        state = rho * state + np.sqrt(1 - rho**2) * rng.normal()
        stay = BAD + (1 - BAD) * rho if is_bad else BAD * (1 - rho)
        is_bad = rng.random() < stay
        series[each], bad[each] = state, is_bad
    spells = -(bad - BAD) / np.sqrt(BAD * (1 - BAD))
    return plan.day_deviation * (series + spells) / np.sqrt(2)


def draw_errors(count: int, rng: np.random.Generator) -> np.ndarray:
    """Errors with heavy tails and the standard deviation ERROR·√3."""
    return ERROR * rng.standard_t(3, count)
