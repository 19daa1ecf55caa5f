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
from typing import Any

from grading.signals import Signals

HALF_LIFE = 2.0
HALF_TURNS = 4.0
LOWEST = 0.02
# A row of the sum: the name of its weight, what was observed as text, and the factor.
Factor = tuple[str, str, float]


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
    signals: Signals | None, *, units: float, did_something: bool, lowest: float = LOWEST, highest: float = 1.0
) -> TrajectoryScore:
    """The sum of the formula, limited to [`lowest`, `highest`]; a row of kind `limit` says so if that changes it.

    `signals` show the conduct: without a log (None) it is unknown, and counts neither for nor against the session.
    `units` is its confirmed work in commit-equivalents, from all evidence; `did_something`: some of it isn't
    bookkeeping. What was not observed adds 0; its row says so.
    """
    factors = (*_work_factors(signals, units, did_something=did_something), *_conduct_factors(signals))
    rows = tuple(
        Contribution(kind=kind, text=text, factor=factor, weight=getattr(WEIGHTS, kind))
        for kind, text, factor in factors
    )
    total = math.fsum(row.adds for row in rows)
    value = min(max(total, lowest), highest)
    if value != total:
        text = f"at most {highest} here" if value < total else f"at least {lowest} here"
        rows = (*rows, Contribution(kind="limit", text=text, factor=1.0, weight=value - total))
    return TrajectoryScore(value=value, contributions=rows)


def _work_factors(signals: Signals | None, units: float, *, did_something: bool) -> tuple[Factor, ...]:
    """The rows of what the session achieved."""
    tests = {
        None: ("no test run, or its result is not known", 0.0),
        True: ("tests passed at the end", 1.0),
        False: ("it broke tests", -1.0),
    }
    return (
        ("base", "starting value of every session", 1.0),
        ("tests", *tests[None if signals is None else signals.last_tests]),
        ("units", f"{units:.1f} commit-equivalents of confirmed work", -math.expm1(-units / HALF_LIFE)),
        ("did_something", "did something" if did_something else "no work was seen", float(did_something)),
    )


def _conduct_factors(signals: Signals | None) -> tuple[Factor, ...]:
    """The rows of how the session went about it."""
    if signals is None:
        unknown = ("few_turns", "got_going", "errors", "empty_results", "repeats")
        return tuple((kind, "not known without a log", 0.0) for kind in unknown)
    turns = signals.user_turns
    failed, results = (signals.failed_calls, signals.known_results) if signals.are_results_known else (0, 0)
    empty_text = "results are empty although they can’t be"
    return (
        ("few_turns", f"{turns} user turn{'s' * (turns != 1)}", 1 / (1 + (max(1, turns) - 1) / HALF_TURNS)),
        ("got_going", "dead start" if signals.dead_start else "got going", float(not signals.dead_start)),
        _share_row("errors", failed, results, "results are failures"),
        _share_row("empty_results", signals.empty_results, signals.must_print, empty_text),
        _share_row("repeats", signals.repeats, signals.repeatable, "calls were repeated without need"),
    )


def _share_row(kind: str, part: int, whole: int, what: str) -> Factor:
    share = min(1.0, part / whole) if whole > 0 else 0.0
    return kind, f"{part} of {whole} {what}", share
