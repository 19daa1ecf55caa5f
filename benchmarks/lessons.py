"""What is said of lessons where the truth is known.

*Called*: forty lessons, each of them drawn in a fifth of forty sessions a day for 180 days, and looked at every day.
Categories differ, a tenth of the sessions has no reward, a fifth of the rewards is corrected after three days. What is
said is what `bandit.core.effect.verdicts` says; draws are by the site's hash with the chance of the policy's version.
*Intention to treat*: lessons that do nothing, and that half of the held-out sessions in trouble fetch all the same.

    python benchmarks/lessons.py [--quick | --smoke]
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bandit.core.betting import Bets, Draws
from bandit.core.effect import EffectVerdict, per_protocol, verdicts
from bandit.core.table import Floats
from bandit.core.thompson import uniform
from benchmarks import scratch
from benchmarks.scratch import Size

LESSONS, DAYS, A_DAY = 40, 180, 8
SPREAD, CATEGORIES = 0.2, (0.47, 0.5, 0.53)
# Sessions in trouble, and the share of them that fetch what was held out from them.
TROUBLE, FETCH = 0.3, 0.5
INTERVALS_EVERY = 10
UNSCORED, CORRECTED, LATE = 0.1, 0.2, 3
STRONG = {EffectVerdict.HELPS, EffectVerdict.HARMFUL}
# The effects of a site's lessons: nothing at all; and half of them something.
NOTHING = np.zeros(LESSONS)
MIXED = np.array([0.0] * 20 + [0.05, -0.05] * 5 + [0.1, -0.1] * 5)
# Runs of each world, and days of each; lessons for the bias.
SIZES = {Size.FULL: (20, DAYS, 400), Size.QUICK: (1, DAYS, 60), Size.SMOKE: (1, 20, 10)}
SEED = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdouts:
    """The holdout of a policy: of a lesson, and of one that is decided, None for the same."""

    undecided: float
    decided: float | None


NEW, OLD = Holdouts(undecided=0.4, decided=0.05), Holdouts(undecided=0.1, decided=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Of each lesson, all (lessons,): its `effect`; the day on which it was first called helps or harmful, and that on
    which it was first decided in any way, NaN for never; whether the interval held the effect at all looks.
    """

    effect: Floats
    called: Floats
    decided: Floats
    covered: Floats


def main() -> None:
    parser = scratch.parser(__doc__, quick="1 run instead of 20", smoke="20 days")
    size = parser.parse_args().size
    runs, days, lessons = SIZES[size]
    with tempfile.TemporaryDirectory() as state:
        scratch.code(state)
        worlds = {
            "nothing": [site(SEED + run, NOTHING, NEW, days) for run in range(runs)],
            "mixed": [site(SEED + 100 + run, MIXED, NEW, days) for run in range(runs)],
            "mixed, holdout .1": [site(SEED + 100 + run, MIXED, OLD, days) for run in range(runs)],
        }
    treated = biases(lessons)
    print(report(worlds, treated))
    print(json.dumps(measured(worlds, treated)))


# ---- lessons that are looked at every day


def site(seed: int, effects: Floats, holdouts: Holdouts, days: int) -> Told:
    """One site's lessons over so many days."""
    from bandit.models import PolicyVersion

    policy = PolicyVersion(holdout=holdouts.undecided, holdout_decided=holdouts.decided)
    dice = np.random.default_rng(seed)
    rows = [LessonRows.rolled(dice, effect, days) for effect in effects]
    called, decided = np.full(len(effects), np.nan), np.full(len(effects), np.nan)
    covered = np.ones(len(effects))
    said = dict.fromkeys(range(len(effects)), EffectVerdict.INSUFFICIENT)
    for day in range(days):
        for number, each in enumerate(rows):
            each.drawn(day, f"{seed}/{number}", policy.chance_of_taking(is_decided=said[number].decides))
        seen = {number: each.seen(day) for number, each in enumerate(rows)}
        said = verdicts(seen)
        for number, verdict in said.items():
            if verdict in STRONG and np.isnan(called[number]):
                called[number] = day + 1
            if verdict.decides and np.isnan(decided[number]):
                decided[number] = day + 1
        if day % INTERVALS_EVERY == INTERVALS_EVERY - 1:
            for number, each in seen.items():
                bets = Bets.on(each)
                covered[number] *= float(not bets.excludes(float(effects[number])))
    return Told(effect=effects, called=called, decided=decided, covered=covered)


@dataclass(slots=True, kw_only=True)
class LessonRows:
    """A lesson's sessions in the order of their draws: what each would earn without it, and what came of the draws."""

    effect: float
    base: Floats
    first_said: Floats
    scored: Floats
    taken: Floats
    chance: Floats

    @classmethod
    def rolled(cls, dice: np.random.Generator, effect: float, days: int) -> "LessonRows":
        n = days * A_DAY
        base = dice.choice(CATEGORIES, n) + dice.normal(0, SPREAD, n)
        return cls(
            effect=effect,
            base=base,
            # What a first grade is off by, until a later one corrects it.
            first_said=np.where(dice.random(n) < CORRECTED, dice.normal(0, 0.2, n), 0),
            scored=dice.random(n) >= UNSCORED,
            taken=np.zeros(n, dtype=bool),
            chance=np.full(n, np.nan),
        )

    def drawn(self, day: int, name: str, chance: float) -> None:
        """The day's draws, by the site's hash."""
        for at in range(day * A_DAY, (day + 1) * A_DAY):
            self.chance[at] = chance
            self.taken[at] = uniform("lesson", f"{name}/{at}") < chance

    def seen(self, day: int) -> Draws:
        """All that is known at the end of the day."""
        n = (day + 1) * A_DAY
        age = day - np.arange(n) // A_DAY
        reward = self.base[:n] + self.effect * self.taken[:n] + np.where(age < LATE, self.first_said[:n], 0)
        return Draws(
            taken=self.taken[:n],
            chance=self.chance[:n],
            came=np.ones(n, dtype=bool),
            heeded=np.ones(n, dtype=bool),
            outcome=np.where(self.scored[:n], np.clip(reward, 0, 1), np.nan),
            least=np.zeros(n),
            day=np.arange(n) // A_DAY,
        )


# ---- held-out sessions that fetch the lesson


def biases(lessons: int, n: int = 1000) -> dict[str, Any]:
    """Of lessons that do nothing, of which half of the held-out sessions in trouble fetch the lesson: by intention to
    treat and per protocol, the mean difference that is found, and the share whose 90 % interval leaves out 0.
    """
    dice = np.random.default_rng(SEED)
    found: dict[str, list[Any]] = {"itt": [], "per_protocol": []}
    for _ in range(lessons):
        trouble, taken = dice.random(n) < TROUBLE, dice.random(n) < 1 - NEW.undecided
        fetched = ~taken & trouble & (dice.random(n) < FETCH)
        draws = Draws(
            taken=taken,
            chance=np.full(n, 1 - NEW.undecided),
            came=np.ones(n, dtype=bool),
            heeded=~fetched,
            outcome=np.clip(0.6 - 0.3 * trouble + dice.normal(0, SPREAD, n), 0, 1),
            least=np.zeros(n),
            day=np.arange(n) // A_DAY,
        )
        found["itt"].append(Bets.on(draws).effect())
        if beside := per_protocol(draws):
            found["per_protocol"].append(beside)
    return {
        name: {
            "bias": round(float(np.mean([each.mean for each in told])), 4),
            "wrong": round(float(np.mean([each.above or each.below for each in told])), 3),
        }
        for name, told in found.items()
    }


# ---- what came out


def of_effects(told: Sequence[Told], size: float) -> Iterator[tuple[Floats, Floats, Floats]]:
    for each in told:
        chosen = np.isclose(np.abs(each.effect), size)
        yield each.called[chosen], each.decided[chosen], each.covered[chosen]


def days_to_call(told: Sequence[Told], size: float) -> tuple[float | None, float]:
    """The median day on which an effect of this size is called, None where half never are; and the share that is."""
    called = np.concatenate([each for each, _, _ in of_effects(told, size)])
    found = float(np.median(np.where(np.isnan(called), np.inf, called)))
    return (found if np.isfinite(found) else None), float(np.isfinite(called).mean())


def null_called(told: Sequence[Told]) -> float:
    return float(np.concatenate([np.isfinite(called) for called, _, _ in of_effects(told, 0)]).mean())


def measured(worlds: dict[str, list[Told]], treated: dict[str, Any]) -> dict[str, Any]:
    """The figures by name. A lesson that does nothing is counted where it is called most: alone, or among others."""
    new, old = worlds["mixed"], worlds["mixed, holdout .1"]
    null = {name: round(null_called(told), 4) for name, told in worlds.items()}
    covered = np.concatenate([each.covered for told in worlds.values() for each in told])
    return {
        "null_lessons": max(null.values()),
        "null_by_world": null,
        "itt_bias": treated["itt"]["bias"],
        "per_protocol_bias": treated["per_protocol"]["bias"],
        "itt_wrong": treated["itt"]["wrong"],
        "per_protocol_wrong": treated["per_protocol"]["wrong"],
        "days_to_call_05": days_to_call(new, 0.05)[0],
        "days_to_call_10": days_to_call(new, 0.1)[0],
        "called_05": round(days_to_call(new, 0.05)[1], 3),
        "called_10": round(days_to_call(new, 0.1)[1], 3),
        "days_to_call_05_holdout_10": days_to_call(old, 0.05)[0],
        "days_to_call_10_holdout_10": days_to_call(old, 0.1)[0],
        "null_decided": round(float(np.concatenate([np.isfinite(d) for _, d, _ in of_effects(new, 0)]).mean()), 3),
        "interval_covers_always": round(float(covered.mean()), 3),
        "runs": len(new),
    }


def report(worlds: dict[str, list[Told]], treated: dict[str, Any]) -> str:
    lines = [f"{'lessons':20}{'nothing: called':>16}{'.05: days':>12}{'called':>8}{'.1: days':>12}{'called':>8}"]
    for name, told in worlds.items():
        figures = [days_to_call(told, size) if name != "nothing" else (None, np.nan) for size in (0.05, 0.1)]
        shown = "".join(f"{'-' if day is None else f'{day:.0f}':>12}{share:8.2f}" for day, share in figures)
        lines.append(f"{name:20}{null_called(told):16.4f}{shown}")
    lines += ["", f"{'held out, and fetched':24}{'bias':>8}{'interval without 0':>20}"]
    lines += [f"{name:24}{each['bias']:8.4f}{each['wrong']:20.3f}" for name, each in treated.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
