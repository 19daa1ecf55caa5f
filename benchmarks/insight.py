"""Does Insight tell a fall of the agents from other work, other graders, missing grades and harder work?

Simulated sites with 40 sessions a day, a weekday pattern, effects of whole days and six categories
(`benchmarks/compared/world.py`; not the estimator's model). Sessions, facts, verdicts and settlements are in the site's
tables; the page's functions read them, and what is asserted is the page's text.

1. Two periods of four weeks, between which each of the four parts goes up or down by about .04: all 16 combinations,
   with 200 sessions that both rubrics have read. `bias_max`: the largest mean error of a part. Then the same without
   such sessions, and without categories: `unidentified_called` is the share in which the page says what cannot be told
   apart.
2. A new version after 56 days. `delay_p90`: sessions with it until the page says that rewards are lower since, for a
   fall of .05, with days' standard deviation .04; another harness has 40 % of the sessions. `delay_p90_whole_site` is
   the same if every session gets the version. `worse_p90`: until it says that the agents did worse, which it only
   says of recurring tasks.
3. Instead of the fall only one other thing changes, for the worse: `called_mix`, `called_grader`, `called_missing` and
   `called_harder` are the shares of runs in which the page says, at any time in 60 days, that the agents did worse. Of
   missing grades it is the best tenth of the sessions that lose theirs.
4. `coverage`: the share of runs in which the interval of the effect contained it at every look, every other day, with
   days' standard deviation .04 and .08; the lowest. `false_30d`: advisories in 30 days of sites with a new version
   every two weeks, of which none changes anything.
5. `page_ms`: processor time of the page's figures on the largest of these sites.

    python benchmarks/insight.py [--quick | --smoke] [--only NAME]
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small matrices: threads only wait for one another
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks import scratch
from benchmarks.compared import store
from benchmarks.compared.truth import PARTS, expected_rewards, true_parts
from benchmarks.compared.world import LEVELS, Plan, Sessions, live, steady
from benchmarks.scratch import Size

PART, FALL, HARDER = 0.04, -0.05, -0.15
PERIOD, HISTORY = 28, 28
BEFORE, WATCHED = 56, 60
REREAD, BRIDGE = 200, 60
TASKS = 0.5
NEVER = 10**6
BASE_MISSING = 0.03


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How many runs: of each combination of parts, of what cannot be identified, of worlds with a fall and with another
    cause, of each case of the coverage, and of sites without any change; and the days between two looks.
    """

    combinations: int
    unidentified: int
    worlds: int
    causes: int
    coverage: int
    sites: int
    step: int


SIZES = {
    Size.FULL: Scale(combinations=15, unidentified=20, worlds=40, causes=40, coverage=40, sites=12, step=2),
    Size.QUICK: Scale(combinations=1, unidentified=1, worlds=2, causes=1, coverage=1, sites=1, step=6),
    Size.SMOKE: Scale(combinations=0, unidentified=0, worlds=1, causes=0, coverage=0, sites=0, step=30),
}


# 1. Parts


def measure_bias(runs: int) -> float | None:
    if not runs:
        return None
    table = expected_rewards()
    rows, worst = [], 0.0
    for signs in product((1, -1), repeat=len(PARTS)):
        errors = np.array([measure_parts(signs, seed, table) for seed in range(runs)])
        bias = errors.mean(axis=0)
        worst = max(worst, float(np.abs(bias).max()))
        rows.append(["".join("+" if sign > 0 else "−" for sign in signs), *(f"{each:+.4f}" for each in bias)])
    print(f"Mean error of each part, {runs} runs of each combination\n{scratch.table(['signs', *PARTS], rows)}")
    return round(worst, 4)


def measure_parts(signs: tuple[int, ...], seed: int, table: np.ndarray) -> list[float]:
    """The error of each part in one run."""
    from grading.insight.core.results import PartName

    plan = changing(signs, day_deviation=(0.0, 0.04, 0.08)[seed % 3])
    rng = np.random.default_rng([seed, *(sign + 1 for sign in signs)])
    sessions = live(plan, rng)
    with store.stored(sessions, rng, reread=REREAD):
        if seed == 0 and set(signs) == {1}:
            store.check()
        change = compare()
    first = HISTORY + PERIOD
    truth = true_parts(plan, sessions, table, slice(HISTORY, first), slice(first, first + PERIOD))
    parts = [change.part(PartName(name)) for name in PARTS]
    if not all(part.is_identified for part in parts):
        raise SystemExit(f"expected four identified parts; got {change.parts}")
    return [part.value - truth[name] for part, name in zip(parts, PARTS, strict=True)]


def compare() -> Any:
    from grading.insight import changes
    from grading.insight.core.results import Span

    first = HISTORY + PERIOD
    before = Span(first=store.day_of(HISTORY), last=store.day_of(first - 1))
    return changes.compare(before, Span(first=store.day_of(first), last=store.day_of(first + PERIOD - 1)))


def changing(signs: tuple[int, ...], **fields: Any) -> Plan:
    """A plan in which the four parts change after HISTORY and one period, each by about ± PART."""
    mix, within, graders, missing = signs
    days = HISTORY + 2 * PERIOD
    is_after = np.arange(days) >= HISTORY + PERIOD
    plan = steady(days, **fields)
    return replace(
        plan,
        level=np.where(is_after, within * PART, 0.0),
        reading=np.where(is_after, graders * PART, 0.0),
        rubric=is_after.astype(int),
        shares=np.where(is_after[:, None], tilted_shares(mix * PART), plan.shares),
        missing=np.where(is_after[:, None], tilted_missing(missing * PART), BASE_MISSING),
    )


def tilted_shares(shift: float) -> np.ndarray:
    """Shares of the categories with which the mean level is higher by `shift`."""
    return solve(lambda slope: _softmax(slope * LEVELS), lambda shares: float(shares @ LEVELS), shift)


def tilted_missing(shift: float) -> np.ndarray:
    """Chances to have no grade with which the mean of the graded is higher by `shift`."""

    def missing(slope: float) -> np.ndarray:
        distance = (LEVELS - LEVELS.mean()) * -np.sign(slope)
        return BASE_MISSING + np.clip(np.abs(slope) * np.clip(distance, 0, None), 0, 0.9)

    def mean(chances: np.ndarray) -> float:
        return float((1 - chances) @ LEVELS / (1 - chances).sum())

    return solve(missing, mean, shift)


def _softmax(values: np.ndarray) -> np.ndarray:
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def solve(make: Callable[[float], np.ndarray], mean: Callable[[np.ndarray], float], shift: float) -> np.ndarray:
    """The result of `make` whose mean is that of the levels plus `shift`, by bisection."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(make(middle)) < LEVELS.mean() + shift else (low, middle)
    return make(low)


def measure_unidentified(runs: int) -> float | None:
    """The share of runs in which the page says what cannot be told apart, and prints no number for it."""
    from grading.insight.core.results import PartName

    if not runs:
        return None
    called, total = 0, 0
    for seed, sign in product(range(runs), (1, -1)):
        rng = np.random.default_rng([seed, sign + 1])
        sessions = live(changing((sign, -sign, sign, -sign)), rng)
        cases = [(10, False, PartName.GRADERS, "other graders"), (REREAD, True, PartName.MIX, "other work")]
        for reread, is_nameless, name, words in cases:
            with store.stored(sessions, rng, reread=reread):
                if is_nameless:
                    forget_categories()
                change = compare()
            text = write_page(change)
            part = change.part(name)
            says_so = words in text.lower() and "cannot be told apart" in text
            called += part is not None and not part.is_identified and len(part.names) > 1 and says_so
            total += 1
    print(f"{called} of {total} runs say what cannot be told apart")
    return round(called / total, 3)


def forget_categories() -> None:
    from grading.models import Session

    Session.objects.filter(pk__gte=store.FIRST_KEY).update(category=None)


def write_page(change: Any, effects: Any = ()) -> str:
    """What the page says about a change and effects."""
    from grading.insight import sentences

    parts = [sentences.write_headline(change), *sentences.write_change(change)]
    return " ".join([*parts, *(sentences.write_effect(effect) for effect in effects)])


# 2. to 4. Versions


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the page says on a day: the effect of the newest mark, and its sentences."""

    day: int
    effect: Any
    text: str


def version_world(
    seed: int, *, days: int = BEFORE + WATCHED, **fields: Any
) -> tuple[Plan, Sessions, np.random.Generator]:
    rng = np.random.default_rng([seed, 77])
    is_after = np.arange(days) >= BEFORE
    plan = steady(days, **{"new_version": is_after, "task_share": TASKS, **fields})
    return plan, live(plan, rng), rng


def watch(sessions: Sessions, rng: np.random.Generator, step: int, *, reread: int = 0) -> Iterator[Look]:
    """What the page says every `step` days after the new version. Sessions are loaded once, and those of later days are
    left out at each look; at the last, what the site computes from its tables has to be the same.
    """
    from grading.insight import sentences, since
    from grading.insight.core.effects import EffectInputs, estimate_effects
    from grading.insight.core.measures import MEASURES

    days = len(sessions.day_effect)
    last = BEFORE + 3 + (days - 1 - BEFORE - 3) // step * step
    with store.stored(sessions, rng, reread=reread):
        now = store.end_of(days - 1)
        whole = since.load_inputs(now, ["reward"])
        effect = None
        for day in range(BEFORE + 3, days, step):
            cut = store.day_of(day).toordinal()
            inputs = EffectInputs(
                table=whole.table.where(whole.table.days <= cut),
                tasks=whole.tasks.where(whole.tasks.days <= cut),
                marks=whole.marks,
                groups=whole.groups,
                scale=whole.scale,
            )
            effects = estimate_effects(inputs, MEASURES["reward"], is_reward=True)
            if effects:
                effect = effects[0]
                yield Look(day=day, effect=effect, text=sentences.write_effect(effect))
        if effect is not None and last == days - 1:
            again = since.read(now).effects[0]
            if again != effect:
                raise SystemExit(f"expected the page's effect to be {effect}; got {again}")


def measure_versions(scale: Scale) -> dict[str, int | None]:
    from grading.insight.sentences import AGENTS_DID_WORSE

    figures: dict[str, int | None] = {}
    days = BEFORE + WATCHED
    fall = np.where(np.arange(days) >= BEFORE, FALL, 0.0)
    for name, share in (("", 0.6), ("_whole_site", 1.0)):
        found, worse = [], []
        for seed in range(scale.worlds):
            _plan, sessions, rng = version_world(seed, level=fall, first_harness=share)
            looks = list(watch(sessions, rng, scale.step))
            found.append(first_after(looks, ("lower on like work", AGENTS_DID_WORSE)))
            worse.append(first_after(looks, (AGENTS_DID_WORSE,)))
        figures[f"delay_p90{name}"] = quantile(found)
        figures[f"worse_p90{name}"] = quantile(worse)
        print(
            f"A fall of .05{name.replace('_', ' ')}: found after {np.median(found):.0f} sessions (median), "
            f"{np.mean(np.array(found) < NEVER):.0%} in {WATCHED} days; the agents did worse after "
            f"{np.median(worse):.0f}, {np.mean(np.array(worse) < NEVER):.0%}"
        )
    return figures


def first_after(looks: list[Look], words: tuple[str, ...]) -> int:
    """How many sessions had the new version when the page first said one of these, NEVER if it never did."""
    return next((look.effect.after for look in looks if any(each in look.text for each in words)), NEVER)


def quantile(delays: list[int]) -> int | None:
    value = int(np.quantile(delays, 0.9, method="higher"))
    return None if value == NEVER else value


def measure_other_causes(scale: Scale) -> dict[str, float | None]:
    """For each cause alone, the share of runs in which the page says that the agents did worse."""
    days = BEFORE + WATCHED
    is_after = np.arange(days) >= BEFORE
    rising = np.where(is_after, HARDER * (np.arange(days) - BEFORE) / WATCHED, 0.0)
    shares = np.where(is_after[:, None], tilted_shares(-PART), 1 / len(LEVELS))
    causes: dict[str, dict[str, Any]] = {
        "mix": {"shares": shares},
        "grader": {"reading": np.where(is_after, -PART, 0.0), "rubric": is_after.astype(int)},
        "missing": {"best_missing": np.where(is_after, 0.1, 0.0)},
        "harder": {"difficulty": rising},
        "nothing": {},
    }
    figures: dict[str, float | None] = {}
    for name, fields in causes.items():
        called = 0
        for seed in range(scale.causes):
            # With and without sessions that both rubrics have read.
            reread = BRIDGE if name == "grader" and seed % 2 else 0
            _plan, sessions, rng = version_world(seed, **fields)
            called += says_worse(sessions, rng, scale.step, reread)
        figures[f"called_{name}"] = round(called / scale.causes, 3) if scale.causes else None
        print(f"{name}: the agents did worse, says the page in {called} of {scale.causes} runs", flush=True)
    return figures


def says_worse(sessions: Sessions, rng: np.random.Generator, step: int, reread: int) -> bool:
    """Whether the page says that the agents did worse: since the mark, at any look, or in the four weeks after it."""
    from grading.insight import changes
    from grading.insight.core.results import Span
    from grading.insight.sentences import AGENTS_DID_WORSE

    said = any(AGENTS_DID_WORSE in look.text for look in watch(sessions, rng, step, reread=reread))
    with store.stored(sessions, rng, reread=reread):
        before = Span(first=store.day_of(BEFORE - PERIOD), last=store.day_of(BEFORE - 1))
        after = Span(first=store.day_of(BEFORE), last=store.day_of(BEFORE + PERIOD - 1))
        change = changes.compare(before, after)
    return said or AGENTS_DID_WORSE in write_page(change)


def measure_coverage(scale: Scale) -> float | None:
    """The share of runs whose interval contained the effect at every look, the lowest of several worlds."""
    if not scale.coverage:
        return None
    shares = []
    days = BEFORE + WATCHED
    for deviation, size in product((0.04, 0.08), (0.0, FALL)):
        level = np.where(np.arange(days) >= BEFORE, size, 0.0)
        covered = 0
        for seed in range(scale.coverage):
            _plan, sessions, rng = version_world(seed + 1000, level=level, day_deviation=deviation)
            covered += all(contains(look, sessions) for look in watch(sessions, rng, scale.step))
        shares.append(covered / scale.coverage)
        print(f"days ± {deviation}, effect {size}: covered at every look in {shares[-1]:.3f} of runs", flush=True)
    return round(min(shares), 3)


def contains(look: Look, sessions: Sessions) -> bool:
    """Whether the interval contains the effect that the version had on the sessions until then."""
    if look.effect.low is None:
        return True
    rows = sessions.is_new & (sessions.day <= look.day)
    reward = np.where(np.isnan(sessions.reward), sessions.reward_before, sessions.reward)
    truth = float((reward - sessions.reward_before)[rows].mean())
    return look.effect.low <= truth <= look.effect.high


def measure_false_advisories(scale: Scale) -> float | None:
    """Advisories that open in 30 days of sites on which nothing changes but the version's name."""
    from grading.insight import advisories, since
    from grading.insight.core.effects import EffectInputs, group_marks
    from grading.insight.core.results import SinceReading

    if not scale.sites:
        return None
    opened, days = 0, BEFORE + 120
    names = ["reward", "cost", "minutes"]
    for seed in range(scale.sites):
        _plan, sessions, rng = version_world(seed + 5000, days=days, new_version=np.zeros(days, dtype=bool))
        with store.stored(sessions, rng):
            rename_versions()
            whole = since.load_inputs(store.end_of(days - 1), names)
            about = set[str]()
            for day in range(BEFORE, days, scale.step):
                cut = store.day_of(day).toordinal()
                marks = [mark for mark in whole.marks if mark.day.toordinal() <= cut - 1]
                table = whole.table.where(whole.table.days <= cut)
                inputs = EffectInputs(
                    table=table,
                    tasks=whole.tasks.where(whole.tasks.days <= cut),
                    marks=marks,
                    groups=group_marks(marks, table),
                    scale=whole.scale,
                )
                reading = SinceReading(marks=tuple(marks), effects=since.effects_of(inputs, names))
                about |= {advisory.about for advisory in advisories.find_worse(reading)}
        opened += len(about)
    figure = opened * 30 / (scale.sites * (days - BEFORE))
    print(f"{opened} false advisories on {scale.sites} sites in {days - BEFORE} days each", flush=True)
    return round(figure, 3)


def rename_versions() -> None:
    """A new version every two weeks."""
    from grading.models import SessionFacts

    for number in range(30):
        first, last = store.end_of(14 * number - 1), store.end_of(14 * number + 13)
        rows = SessionFacts.objects.filter(session__ended_at__gt=first, session__ended_at__lte=last)
        rows.update(harness_version=f"1.{number}")


# 5. The page


def measure_page() -> float:
    """Milliseconds of processor time for the figures of the page, but for those that the worker stores."""
    from grading.insight import changes, loading, marks
    from grading.insight.core.results import Span

    _plan, sessions, rng = version_world(1)
    now = store.end_of(len(sessions.day_effect) - 1)
    with store.stored(sessions, rng):
        times = []
        for _ in range(3):
            start = time.process_time()
            span = loading.last_weeks(now)
            loading.load_cells(span, columns=("category",), measures=("reward",))
            marks.load_marks(Span(first=span.first, last=span.last))
            changes.compare(*changes.last_two_weeks(now))
            times.append(time.process_time() - start)
    return round(1000 * min(times), 1)


# Each returns some of the figures.
STAGES: dict[str, Callable[[Scale], dict[str, Any]]] = {
    "bias": lambda scale: {"bias_max": measure_bias(scale.combinations)},
    "unidentified": lambda scale: {"unidentified_called": measure_unidentified(scale.unidentified)},
    "versions": measure_versions,
    "causes": measure_other_causes,
    "coverage": lambda scale: {"coverage": measure_coverage(scale)},
    "advisories": lambda scale: {"false_30d": measure_false_advisories(scale)},
    "page": lambda _scale: {"page_ms": measure_page()},
}


def main() -> None:
    parser = scratch.parser(__doc__, quick="few runs of each, in a minute", smoke="one run of some")
    parser.add_argument("--only", choices=STAGES, help="one stage alone")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    with TemporaryDirectory() as state:
        scratch.site(state)
        for name, measure in STAGES.items():
            if options.only in {None, name}:
                figures |= measure(SIZES[options.size])
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
