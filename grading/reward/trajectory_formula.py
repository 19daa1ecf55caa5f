"""The formula of trajectory/3: one number from what a log shows of a session, and what each observation adds to it.

    0.10 + 0.26·own tests + 0.205·(1 − exp(−units / 2)) + 0.14·did something + 0.125·few user turns + 0.11·got going
         − 0.165·error rate − 0.05·empty results − 0.075·repeats

Own tests are +1 if the tests were green at the end, −1 if the session broke them, else 0. The other factors are in
[0, 1]; few user turns is 1 for one turn and a half for five. The signs and the ratios of the weights were set
beforehand: weights fitted to other sets of sessions rank no better (docs/decisions/017). The scale was
chosen so that one commit and nothing wrong is 0.56, a few commits with green tests about 0.9, and red tests without
any work below 0.1.

Effort is not success: for the same results and failures, nothing here grows with the number of calls, turns or tokens.
Each confirmed thing adds to the grade; each error, empty result and repeat takes from it.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

from grading.signals import Signals

HALF_LIFE = 2.0
HALF_TURNS = 4.0
LOWEST = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The inputs of the formula. All counts are at least 0.

    `has_log`: there is a log that shows the conduct. `units`: confirmed work in commit-equivalents. `did_something`:
    some of it isn't bookkeeping. `last_tests`: as in `Signals`.
    """

    has_log: bool = True
    units: float = 0.0
    did_something: bool = False
    last_tests: bool | None = None
    failed_calls: int = 0
    known_results: int = 0
    user_turns: int = 0
    dead_start: bool = False
    empty_results: int = 0
    must_print: int = 0
    repeats: int = 0
    repeatable: int = 0

    @classmethod
    def from_signals(cls, signals: Signals | None, *, units: float, did_something: bool) -> Self:
        """A session's conduct from its log, and its work as summed from all evidence.

        Without a log its conduct is unknown, and counts neither for nor against it.
        """
        if signals is None:
            return cls(has_log=False, units=units, did_something=did_something)
        return cls(
            units=units,
            did_something=did_something,
            last_tests=signals.last_tests,
            failed_calls=signals.failed_calls if signals.are_results_known else 0,
            known_results=signals.known_results if signals.are_results_known else 0,
            user_turns=signals.user_turns,
            dead_start=signals.dead_start,
            empty_results=signals.empty_results,
            must_print=signals.must_print,
            repeats=signals.repeats,
            repeatable=signals.repeatable,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What a factor of 1 adds to the grade; negative weights lower it."""

    base: float = 0.10
    tests: float = 0.26
    units: float = 0.205
    did_something: float = 0.14
    few_turns: float = 0.125
    got_going: float = 0.11
    errors: float = -0.165
    empty_results: float = -0.05
    repeats: float = -0.075


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """One row of the sum. `kind` is the weight's name, or `limit`; `factor` in [-1, 1] is the observation, `text`
    describes it.
    """

    kind: str
    text: str
    factor: float
    weight: float

    @property
    def adds(self) -> float:
        return self.factor * self.weight

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": self.text, "factor": round(self.factor, 6), "adds": round(self.adds, 6)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryScore:
    """A grade in [0.02, 1] and the rows that add up to it; no rows if it isn't a sum."""

    value: float
    contributions: tuple[Contribution, ...] = ()


WEIGHTS = Weights()


def score(
    observed: Observed, weights: Weights = WEIGHTS, *, lowest: float = LOWEST, highest: float = 1.0
) -> TrajectoryScore:
    """The sum of the formula, limited to [`lowest`, `highest`]; a row of kind `limit` says so if that changes it.

    What was not observed adds 0; its row says so.
    """
    rows = tuple(
        Contribution(kind=kind, text=text, factor=factor, weight=getattr(weights, kind))
        for kind, text, factor in _factors(observed)
    )
    total = math.fsum(row.adds for row in rows)
    value = min(max(total, lowest), highest)
    if value != total:
        text = f"at most {highest} here" if value < total else f"at least {lowest} here"
        rows = (*rows, Contribution(kind="limit", text=text, factor=1.0, weight=value - total))
    return TrajectoryScore(value=value, contributions=rows)


def _factors(observed: Observed) -> tuple[tuple[str, str, float], ...]:
    """The rows of the sum as (name of the weight, description of what was observed, factor)."""
    tests = {
        None: ("no test run, or its result is not known", 0.0),
        True: ("tests passed at the end", 1.0),
        False: ("it broke tests", -1.0),
    }
    tests_text, tests_factor = tests[observed.last_tests]
    work = (
        ("base", "starting value of every session", 1.0),
        ("tests", tests_text, tests_factor),
        (
            "units",
            f"{observed.units:.1f} commit-equivalents of confirmed work",
            -math.expm1(-observed.units / HALF_LIFE),
        ),
        (
            "did_something",
            "did something" if observed.did_something else "no work was seen",
            float(observed.did_something),
        ),
    )
    if not observed.has_log:
        unknown = ("few_turns", "got_going", "errors", "empty_results", "repeats")
        return (*work, *((kind, "not known without a log", 0.0) for kind in unknown))
    turns = max(1, observed.user_turns)
    return (
        *work,
        (
            "few_turns",
            f"{observed.user_turns} user turn{'s' * (observed.user_turns != 1)}",
            1 / (1 + (turns - 1) / HALF_TURNS),
        ),
        ("got_going", "dead start" if observed.dead_start else "got going", float(not observed.dead_start)),
        _share_row("errors", observed.failed_calls, observed.known_results, "results are failures"),
        _share_row(
            "empty_results", observed.empty_results, observed.must_print, "results are empty although they can’t be"
        ),
        _share_row("repeats", observed.repeats, observed.repeatable, "calls were repeated without need"),
    )


def _share_row(kind: str, part: int, whole: int, what: str) -> tuple[str, str, float]:
    share = min(1.0, part / whole) if whole > 0 else 0.0
    return kind, f"{part} of {whole} {what}", share
