"""What does the site conclude about lessons whose true effect is known?

Forty lessons, each drawn in eight sessions a day for 180 days, and evaluated every day. Categories differ, a tenth of
the sessions has no reward, a fifth of the rewards is corrected after three days. The verdicts are those of
`bandit.core.effect.verdicts`. Draws are by the site's hash, with a new site's chance. A lesson is called when its
verdict is helpful or harmful.

    python benchmarks/lessons.py [--quick | --smoke]
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bandit.core.betting import Bets, Draws
from bandit.core.effect import EffectVerdict, verdicts
from bandit.core.table import Floats
from bandit.core.thompson import uniform
from benchmarks import scratch
from benchmarks.scratch import Size

LESSONS, DAYS, SESSIONS_PER_DAY = 40, 180, 8
SPREAD, CATEGORIES = 0.2, (0.47, 0.5, 0.53)
INTERVALS_EVERY = 10
UNSCORED, CORRECTED, CORRECTED_AFTER = 0.1, 0.2, 3
CALLED = {EffectVerdict.HELPS, EffectVerdict.HARMFUL}
# The effects of a site's lessons: nothing at all; and half of them something.
NOTHING = np.zeros(LESSONS)
MIXED = np.array([0.0] * 20 + [0.05, -0.05] * 5 + [0.1, -0.1] * 5)
# Runs of each world, and days of each.
SIZES = {Size.FULL: (20, DAYS), Size.QUICK: (1, DAYS), Size.SMOKE: (1, 20)}
SEED = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonResults:
    """The lessons of one site, all columns (lessons,): each one's true `effect`; the day on which it was first `called`
    helpful or harmful, and first `decided` in any way, NaN for never; 1 in `covered` if the interval contained the
    effect at all looks.
    """

    effect: Floats
    called: Floats
    decided: Floats
    covered: Floats


def main() -> None:
    parser = scratch.parser(__doc__, quick="1 run instead of 20", smoke="20 days")
    runs, days = SIZES[parser.parse_args().size]
    with tempfile.TemporaryDirectory() as state:
        scratch.code(state)
        worlds = {
            "nothing": [run_site(SEED + run, NOTHING, days) for run in range(runs)],
            "mixed": [run_site(SEED + 100 + run, MIXED, days) for run in range(runs)],
        }
    for name, results in worlds.items():
        print(f"lessons without effect that are called, {name}: {null_called(results):.4f}")
    for size in (0.05, 0.1):
        day, share = days_to_call(worlds["mixed"], size)
        print(f"an effect of {size}: called after {day or '-'} days, {share:.2f} of them ever")
    print(json.dumps(figures(worlds)))


def run_site(seed: int, effects: Floats, days: int) -> LessonResults:
    """Evaluate one site's lessons every day, for so many days."""
    from bandit.models import PolicyVersion
    from bandit.policies import NEW_SITE

    policy = PolicyVersion(**NEW_SITE)
    dice = np.random.default_rng(seed)
    lessons = [LessonSessions.generate(dice, effect, days) for effect in effects]
    called, decided = np.full(len(effects), np.nan), np.full(len(effects), np.nan)
    covered = np.ones(len(effects))
    current = dict.fromkeys(range(len(effects)), EffectVerdict.INSUFFICIENT)
    for day in range(days):
        for number, lesson in enumerate(lessons):
            lesson.draw_day(day, f"{seed}/{number}", policy.chance_of_taking(is_decided=current[number].decides))
        draws = {number: lesson.draws_until(day) for number, lesson in enumerate(lessons)}
        current = verdicts(draws)
        for number, verdict in current.items():
            if verdict in CALLED and np.isnan(called[number]):
                called[number] = day + 1
            if verdict.decides and np.isnan(decided[number]):
                decided[number] = day + 1
        if day % INTERVALS_EVERY == INTERVALS_EVERY - 1:
            for number, each in draws.items():
                covered[number] *= float(not Bets.from_draws(each).excludes(float(effects[number])))
    return LessonResults(effect=effects, called=called, decided=decided, covered=covered)


@dataclass(slots=True, kw_only=True)
class LessonSessions:
    """A lesson's sessions in the order of their draws. `base` is the reward without the lesson, and `first_error` what
    a first grade is off by until a later one corrects it.
    """

    effect: float
    base: Floats
    first_error: Floats
    scored: Floats
    taken: Floats
    chance: Floats

    @classmethod
    def generate(cls, dice: np.random.Generator, effect: float, days: int) -> "LessonSessions":
        n = days * SESSIONS_PER_DAY
        base = dice.choice(CATEGORIES, n) + dice.normal(0, SPREAD, n)
        return cls(
            effect=effect,
            base=base,
            first_error=np.where(dice.random(n) < CORRECTED, dice.normal(0, 0.2, n), 0),
            scored=dice.random(n) >= UNSCORED,
            taken=np.zeros(n, dtype=bool),
            chance=np.full(n, np.nan),
        )

    def draw_day(self, day: int, name: str, chance: float) -> None:
        """Draw for the sessions of a day, by the site's hash."""
        for at in range(day * SESSIONS_PER_DAY, (day + 1) * SESSIONS_PER_DAY):
            self.chance[at] = chance
            self.taken[at] = uniform("lesson", f"{name}/{at}") < chance

    def draws_until(self, day: int) -> Draws:
        """All draws with their outcomes as they stand at the end of the day."""
        n = (day + 1) * SESSIONS_PER_DAY
        age = day - np.arange(n) // SESSIONS_PER_DAY
        reward = self.base[:n] + self.effect * self.taken[:n] + np.where(age < CORRECTED_AFTER, self.first_error[:n], 0)
        return Draws(
            taken=self.taken[:n],
            chance=self.chance[:n],
            came=np.ones(n, dtype=bool),
            heeded=np.ones(n, dtype=bool),
            outcome=np.where(self.scored[:n], np.clip(reward, 0, 1), np.nan),
            least=np.zeros(n),
            day=np.arange(n) // SESSIONS_PER_DAY,
        )


# Figures


def by_effect(results: Sequence[LessonResults], size: float) -> Iterator[tuple[Floats, Floats]]:
    """The days on which lessons with an effect of this size, in either direction, were called and decided."""
    for result in results:
        chosen = np.isclose(np.abs(result.effect), size)
        yield result.called[chosen], result.decided[chosen]


def days_to_call(results: Sequence[LessonResults], size: float) -> tuple[float | None, float]:
    """The median day on which an effect of this size is called, None where half never are; and the share that is."""
    called = np.concatenate([called for called, _decided in by_effect(results, size)])
    median = float(np.median(np.where(np.isnan(called), np.inf, called)))
    return (median if np.isfinite(median) else None), float(np.isfinite(called).mean())


def null_called(results: Sequence[LessonResults]) -> float:
    """The share of lessons without effect that were ever called helpful or harmful."""
    return days_to_call(results, 0)[1]


def figures(worlds: Mapping[str, Sequence[LessonResults]]) -> dict[str, Any]:
    """The figures by name. `null_lessons` is that of the world where most lessons without effect are called."""
    mixed = worlds["mixed"]
    null = {name: round(null_called(results), 4) for name, results in worlds.items()}
    null_decided = np.concatenate([np.isfinite(decided) for _called, decided in by_effect(mixed, 0)])
    covered = np.concatenate([result.covered for results in worlds.values() for result in results])
    return {
        "null_lessons": max(null.values()),
        "null_by_world": null,
        "days_to_call_05": days_to_call(mixed, 0.05)[0],
        "days_to_call_10": days_to_call(mixed, 0.1)[0],
        "called_05": round(days_to_call(mixed, 0.05)[1], 3),
        "called_10": round(days_to_call(mixed, 0.1)[1], 3),
        "null_decided": round(float(null_decided.mean()), 3),
        "interval_covers_always": round(float(covered.mean()), 3),
        "runs": len(mixed),
    }


if __name__ == "__main__":
    main()
