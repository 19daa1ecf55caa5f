"""Does the trajectory grade say which sessions were good? Sets of known outcomes, ranked by the grade.

Every session is read as the product reads it: events, `signals.extract`, `trajectory.grade`. Sessions are ranked by

- the trajectory's number, given or withheld. The product abstains if a log shows neither work nor a failure, and stores
  the formula's number beside the abstention. `mean_auc`, `matched_auc` and `worst_upper_bound` of the last line are of
  this number. `coverage` is the share of sessions for which it is given as a grade;
- the grade as given. A pair of a good and a bad session counts ½ if one of them has no grade: the `as_graded_…`
  figures. In a set of logs without any work or failure that is ½ whatever the number says. A log that can't be read
  counts ½ in both;
- each of the formula's contributions alone, and the number of calls for comparison.

Matched AUC is over the pairs of a set whose numbers of calls are within 10 %: a number that ranks by length alone has ½
there. Intervals are of 90 %, from tasks drawn with replacement. A set's tasks are split in halves by a hash of their
name. Sessions in which the model never answered are not ranked: their label is that of the infrastructure. None of them
may have a grade.

The formula's weights were fitted to neither half.

The sets are in the folder `labelled` of GRADING_DATA_DIR, else of `../shared/data` beside the checkout. Without it, a
few invented sessions are read and the figures of the last line are null.

    python benchmarks/truth.py [--quick | --smoke]
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks import scratch
from benchmarks.labelled import aider, gptme_evals, intercode, tau_bench
from benchmarks.labelled.ranking import Estimate, HalfSet
from benchmarks.labelled.sessions import HELD_OUT, TRAIN, LabelledSession, invented_sessions
from benchmarks.scratch import Size
from grading.reward import trajectory
from grading.reward.grade import SourceGrade
from grading.reward.production import Production, collect
from grading.reward.trajectory_formula import Contribution, score
from grading.signals import Signals, extract
from grading.signals.facts import ObservedFacts

READERS = (gptme_evals.sessions, intercode.sessions, tau_bench.sessions, aider.sessions)
RESAMPLES = {Size.FULL: 2_000, Size.QUICK: 200, Size.SMOKE: 20}
# A smoke run reads every sixth session.
SMOKE_STEP = 6
FACTORS = ("tests", "units", "did_something", "few_turns", "got_going", "errors", "empty_results", "repeats")
GRADE, NUMBER = f"{trajectory.VERSION}, as graded", f"{trajectory.VERSION}, its number"
Score = Callable[["RankedSession"], float]


@dataclass(frozen=True)
class RankedSession:
    """A labelled session as the product sees it. A number is NaN if there is none."""

    label: LabelledSession
    signals: Signals

    @cached_property
    def production(self) -> Production:
        return collect(self.signals)

    @cached_property
    def source_grade(self) -> SourceGrade:
        return trajectory.grade(
            trajectory.TrajectoryInput(signals=self.signals, production=self.production, facts=ObservedFacts())
        )

    @property
    def grade(self) -> float:
        return math.nan if self.source_grade.value is None else self.source_grade.value

    @property
    def number(self) -> float:
        """The grade, or what was withheld when the product abstained."""
        return self.source_grade.evidence.get("withheld", math.nan) if math.isnan(self.grade) else self.grade

    @cached_property
    def contributions(self) -> Mapping[str, Contribution]:
        production = self.production
        found = score(self.signals, units=production.units, did_something=production.is_work)
        return {row.kind: row for row in found.contributions}


def contribution_score(kind: str) -> Score:
    return lambda session: session.contributions[kind].adds


SCORES: Mapping[str, Score] = {
    GRADE: lambda session: session.grade,
    NUMBER: lambda session: session.number,
    **{f"· {kind}": contribution_score(kind) for kind in FACTORS},
    "(few calls)": lambda session: -session.signals.calls,
}


class Sets:
    """The answered sessions of one half of all sets, by set, and how each score ranks them."""

    def __init__(self, sessions: Sequence[RankedSession], resamples: int) -> None:
        names = dict.fromkeys(session.label.set for session in sessions)
        self.sessions = {name: [each for each in sessions if each.label.set == name] for name in names}
        self.halves = {
            name: HalfSet(
                [session.label.good for session in rows],
                [session.signals.calls for session in rows],
                [session.label.task for session in rows],
                resamples=resamples,
            )
            for name, rows in self.sessions.items()
        }

    def estimates(self, score_name: str, *, matched: bool) -> dict[str, Estimate]:
        read = SCORES[score_name]
        return {
            name: self.halves[name].auc([read(session) for session in rows], matched=matched)
            for name, rows in self.sessions.items()
        }

    def mean(self, score_name: str, *, matched: bool = False) -> float:
        return mean_of_numbers(each.value for each in self.estimates(score_name, matched=matched).values())

    @property
    def coverage(self) -> dict[str, float]:
        """The share of each set's sessions that the product grades."""
        return {name: float(np.mean([has_grade(each) for each in rows])) for name, rows in self.sessions.items()}


def main() -> None:
    parser = scratch.parser(__doc__, quick="200 resamples instead of 2,000", smoke="every sixth session, 20 resamples")
    size = parser.parse_args().size
    folder = scratch.data_folder() / "labelled"
    if not folder.is_dir():
        print(f"{folder} is not there: these sessions are invented and measure nothing. Set GRADING_DATA_DIR.")
        print(json.dumps(dict.fromkeys(report(list(invented_sessions()), RESAMPLES[Size.SMOKE]))))
        return
    labelled = list(chain.from_iterable(read(folder) for read in READERS))
    print(json.dumps(report(labelled[:: SMOKE_STEP if size is Size.SMOKE else 1], RESAMPLES[size])))


def report(labelled: Sequence[LabelledSession], resamples: int) -> dict[str, float]:
    """Print the tables of both halves. Returns the figures of the training halves."""
    sessions = [RankedSession(label, extract(label.events)) for label in labelled]
    unanswered = [session for session in sessions if not session.label.answered]
    graded = sum(map(has_grade, unanswered))
    print(f"{len(sessions)} sessions. In {len(unanswered)} the model never answered; {graded} of these have a grade.")
    halves = {
        half: Sets([each for each in sessions if each.label.answered and each.label.half == half], resamples)
        for half in (TRAIN, HELD_OUT)
    }
    for half, sets in halves.items():
        print_half(half, sets)
    train = halves[TRAIN]
    figures = {
        "mean_auc": train.mean(NUMBER),
        "matched_auc": train.mean(NUMBER, matched=True),
        "best_feature_mean_auc": max(train.mean(f"· {kind}") for kind in FACTORS),
        "worst_upper_bound": min(each.high for each in train.estimates(NUMBER, matched=False).values()),
        "coverage": mean_of_numbers(train.coverage.values()),
        "as_graded_mean_auc": train.mean(GRADE),
        "as_graded_matched_auc": train.mean(GRADE, matched=True),
    }
    return {name: round(value, 3) for name, value in figures.items()}


def print_half(half: str, sets: Sets) -> None:
    rows = []
    for name, sessions in sets.sessions.items():
        good, matched = sum(session.label.good for session in sessions), int(sets.halves[name].matched.sum())
        pairs = good * (len(sessions) - good)
        rows.append([name, len(sessions), good, f"{sets.coverage[name]:.2f}", pairs, matched])
    headings = [f"{half} halves", "sessions", "good", "share with a grade", "pairs", "matched pairs"]
    print(f"\n{scratch.table(headings, rows)}")
    for matched in (False, True):
        rows = []
        for score_name in SCORES:
            estimates = sets.estimates(score_name, matched=matched).values()
            cells = [f"{each.value:.2f} [{each.low:.2f}, {each.high:.2f}]" for each in estimates]
            rows.append([score_name, *cells, f"{mean_of_numbers(each.value for each in estimates):.3f}"])
        print(f"\n{scratch.table(['matched AUC' if matched else 'AUC', *sets.sessions, 'mean'], rows)}")


def has_grade(session: RankedSession) -> bool:
    return not math.isnan(session.grade)


def mean_of_numbers(values: Iterable[float]) -> float:
    """The mean of those that are not NaN; NaN if there is none."""
    numbers = [value for value in values if not math.isnan(value)]
    return sum(numbers) / len(numbers) if numbers else math.nan


if __name__ == "__main__":
    main()
