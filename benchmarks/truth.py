"""Does the trajectory grade say which sessions were good? Sets whose outcomes are known, ranked by the grade.

Every session is read as the product reads it: events, `signals.extract`, `trajectory.grade`. Ranked are

- trajectory/1, a frozen copy of it;
- trajectory/2's number, given or withheld. The product abstains wherever a log shows neither work nor a failure, and
  keeps what the formula makes of such a session beside the abstention. `mean_auc`, `matched_auc` and
  `worst_upper_bound` of the last line are of this number: does it put the sessions in the right order? `coverage` is
  the share of sessions for which it is given out as a grade;
- the grade as given, where a pair of a good and a bad session counts ½ if one of them has no grade: the
  `as_graded_…` figures. In a set of logs without any work or observed failure that is ½ whatever the number knows.
  What cannot be read at all (blind logs) counts ½ in both;
- what each of its observations adds, by itself, and the number of calls for comparison.

Matched AUC is over the pairs of a set whose numbers of calls are within 10 %: what ranks by length alone is ½ there.
Intervals are of 90 %, from tasks drawn with replacement. A set's tasks are split in halves by a hash of their name
(`benchmarks/labelled/labelled.py`). Sessions in which the model never answered are not ranked, their label being that
of the infrastructure; printed is how many of them have a grade, which must be none.

The formula's weights were fitted to neither half. "Left out" are weights fitted to the training halves of the other
sets: would they rank better than the formula's?

The sets are in the folder `labelled` of GRADING_DATA_DIR, else of `../shared/data` beside the checkout. Without it a
few made-up sessions are read instead, and the figures of the last line are null.

    python benchmarks/truth.py [--quick | --smoke]
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks import scratch
from benchmarks.labelled import aider, first_formula, gptme_evals, intercode, made_up, tau_bench
from benchmarks.labelled.fitting import left_out
from benchmarks.labelled.labelled import HELD_OUT, TRAIN, Labelled
from benchmarks.labelled.ranking import Estimate, Half
from benchmarks.scratch import Size
from grading.reward import trajectory
from grading.reward.grade import SourceGrade
from grading.reward.production import Production, collect
from grading.reward.trajectory_formula import WEIGHTS, Contribution, Observed, score
from grading.signals import Signals, extract
from grading.signals.facts import ObservedFacts

READERS = (gptme_evals.sessions, intercode.sessions, tau_bench.sessions, aider.sessions)
RESAMPLES = {Size.FULL: 2_000, Size.QUICK: 200, Size.SMOKE: 20}
SMOKE_EVERY = 6
FACTORS = ("tests", "units", "did_something", "few_turns", "got_going", "errors", "empty_results", "repeats")
FIRST, GRADE, NUMBER = "trajectory/1, frozen", f"{trajectory.VERSION}, as graded", f"{trajectory.VERSION}, its number"


@dataclass(frozen=True)
class Session:
    """A labelled session as the product sees it. A number is NaN where there is none."""

    label: Labelled
    signals: Signals

    @cached_property
    def first(self) -> float:
        value = first_formula.grade(self.signals)
        return math.nan if value is None else value

    @cached_property
    def answer(self) -> SourceGrade:
        return trajectory.grade(
            trajectory.TrajectoryInput(signals=self.signals, production=self.production, facts=ObservedFacts())
        )

    @property
    def grade(self) -> float:
        return math.nan if self.answer.value is None else self.answer.value

    @property
    def number(self) -> float:
        """The grade, or what was withheld where the product abstained."""
        return self.answer.evidence.get("withheld", math.nan) if self.answer.value is None else self.answer.value

    @cached_property
    def rows(self) -> Mapping[str, Contribution]:
        return {row.kind: row for row in score(self._observed).contributions}

    @cached_property
    def production(self) -> Production:
        return collect(self.signals)

    @property
    def _observed(self) -> Observed:
        return Observed.from_signals(self.signals, units=self.production.units, did_something=self.production.is_work)

    def adds(self, kind: str) -> float:
        return self.rows[kind].adds


NUMBERS: Mapping[str, Callable[[Session], float]] = {
    FIRST: lambda one: one.first,
    GRADE: lambda one: one.grade,
    NUMBER: lambda one: one.number,
    **{f"· {kind}": partial(lambda one, kind: one.adds(kind), kind=kind) for kind in FACTORS},
    "(few calls)": lambda one: -one.signals.calls,
}


class Sets:
    """The answered sessions of one half by set, and how each number ranks them."""

    def __init__(self, sessions: Sequence[Session], resamples: int) -> None:
        names = dict.fromkeys(one.label.set for one in sessions)
        self.sessions = {name: [one for one in sessions if one.label.set == name] for name in names}
        self.halves = {
            name: Half(
                [one.label.good for one in rows],
                [one.signals.calls for one in rows],
                [one.label.task for one in rows],
                resamples=resamples,
            )
            for name, rows in self.sessions.items()
        }

    def estimates(self, number: str, *, matched: bool) -> dict[str, Estimate]:
        read = NUMBERS[number]
        return {
            name: self.halves[name].auc([read(one) for one in rows], matched=matched)
            for name, rows in self.sessions.items()
        }

    def mean(self, number: str, *, matched: bool = False) -> float:
        return _mean(one.value for one in self.estimates(number, matched=matched).values())

    @property
    def coverage(self) -> dict[str, float]:
        """The share of each set's sessions that the product grades."""
        return {
            name: sum(not math.isnan(one.grade) for one in rows) / len(rows) for name, rows in self.sessions.items()
        }

    def factors(self) -> dict[str, np.ndarray]:
        """Sessions × the formula's factors, each with its sign."""
        signs = {kind: math.copysign(1, getattr(WEIGHTS, kind)) for kind in FACTORS}
        return {
            name: np.array([[signs[kind] * one.rows[kind].factor for kind in FACTORS] for one in rows])
            for name, rows in self.sessions.items()
        }


def main() -> None:
    parser = scratch.parser(__doc__, quick="200 resamples instead of 2,000", smoke="every sixth session, 20 resamples")
    size = parser.parse_args().size
    folder = scratch.data_folder() / "labelled"
    if not folder.is_dir():
        print(f"{folder} is not there: these sessions are made up, and say nothing of anything. Set GRADING_DATA_DIR.")
        print(json.dumps(dict.fromkeys(report(list(made_up.sessions()), RESAMPLES[Size.SMOKE]))))
        return
    labelled = list(chain.from_iterable(read(folder) for read in READERS))
    print(json.dumps(report(labelled[:: SMOKE_EVERY if size is Size.SMOKE else 1], RESAMPLES[size])))


def report(labelled: Sequence[Labelled], resamples: int) -> dict[str, float]:
    """Print the tables of both halves; returns the figures of the training halves."""
    sessions = [Session(one, extract(one.events)) for one in labelled]
    silent = [one for one in sessions if not one.label.answered]
    graded = sum(not math.isnan(one.grade) for one in silent)
    print(f"{len(sessions)} sessions. In {len(silent)} the model never answered; {graded} of these have a grade.")
    halves = {
        half: Sets([one for one in sessions if one.label.answered and one.label.half == half], resamples)
        for half in (TRAIN, HELD_OUT)
    }
    for half, sets in halves.items():
        _print_sizes(half, sets)
        _print_table(sets, matched=False)
        _print_table(sets, matched=True)
    _print_failures(halves)
    _print_left_out(halves)
    train = halves[TRAIN]
    figures = {
        "mean_auc": train.mean(NUMBER),
        "matched_auc": train.mean(NUMBER, matched=True),
        "best_feature_mean_auc": max(train.mean(f"· {kind}") for kind in FACTORS),
        "worst_upper_bound": min(one.high for one in train.estimates(NUMBER, matched=False).values()),
        "coverage": _mean(train.coverage.values()),
        "as_graded_mean_auc": train.mean(GRADE),
        "as_graded_matched_auc": train.mean(GRADE, matched=True),
    }
    return {name: round(value, 3) for name, value in figures.items()}


def _print_sizes(half: str, sets: Sets) -> None:
    print(f"\n{half.capitalize()} halves: sessions (good) · share with a grade · pairs · matched pairs")
    for name, rows in sets.sessions.items():
        good = sum(one.label.good for one in rows)
        matched = int(sets.halves[name].matched.sum())
        share = f"{sets.coverage[name]:.2f}"
        print(f"  {name:22}{len(rows):5} ({good}) · {share} · {good * (len(rows) - good)} · {matched}")


def _print_table(sets: Sets, *, matched: bool) -> None:
    print(
        f"\n{'  matched AUC' if matched else '  AUC':26}"
        + "".join(f"{name[:16]:>19}" for name in sets.sessions)
        + "   mean"
    )
    for number in NUMBERS:
        found = sets.estimates(number, matched=matched)
        cells = "".join(f"{one.value:6.2f} [{one.low:.2f}, {one.high:.2f}]".rjust(19) for one in found.values())
        print(f"  {number:24}{cells}{_mean(one.value for one in found.values()):7.3f}")


def _print_failures(halves: Mapping[str, Sets]) -> None:
    """What the sessions without any work came to, by what their log shows: which of it is evidence of a failure?"""
    kinds: Mapping[str, Callable[[Signals], bool]] = {
        "every known result is a failure": lambda seen: 0 < seen.known_results == seen.failed_calls,
        "some worked, after a dead start": lambda seen: seen.dead_start and seen.failed_calls < seen.known_results,
        "no call at all": lambda seen: seen.calls == 0,
        "all else": lambda seen: seen.calls > 0 and not seen.dead_start,
    }
    print("\nSessions without any work: how many were good")
    for half, sets in halves.items():
        for kind, shows in kinds.items():
            idle = {
                name: [one.label.good for one in rows if not one.production.is_work and shows(one.signals)]
                for name, rows in sets.sessions.items()
            }
            listed = ", ".join(f"{name} {sum(good)} of {len(good)}" for name, good in idle.items() if good)
            print(f"  {half + ', ' + kind:44}{listed or '–'}")


def _print_left_out(halves: Mapping[str, Sets]) -> None:
    """How weights fitted to the other sets rank each set, beside the formula's."""
    train = halves[TRAIN]
    start = np.array([abs(getattr(WEIGHTS, kind)) for kind in FACTORS])
    fitted = left_out(train.factors(), train.halves, start)
    print(
        "\nLeft out: AUC (matched) by the formula's weights, and by weights fitted to the other sets' training halves"
    )
    for half, sets in halves.items():
        factors = sets.factors()
        for title, weights in (("formula", dict.fromkeys(factors, start)), ("fitted", fitted)):
            cells, values = [], []
            for name, rows in factors.items():
                both = [sets.halves[name].auc(rows @ weights[name], matched=one).value for one in (False, True)]
                values.append(both)
                cells.append(f"{both[0]:.2f} ({both[1]:.2f})".rjust(19))
            means = [_mean(column) for column in zip(*values, strict=True)]
            print(f"  {half + ', ' + title:24}{''.join(cells)}  {means[0]:.3f} ({means[1]:.3f})")
    for name, weights in fitted.items():
        print(
            f"  without {name:22}"
            + " ".join(f"{kind} {value:.2f}" for kind, value in zip(FACTORS, weights, strict=True))
        )


def _mean(values: Iterable[float]) -> float:
    numbers = [value for value in values if not math.isnan(value)]
    return sum(numbers) / len(numbers) if numbers else math.nan


if __name__ == "__main__":
    main()
