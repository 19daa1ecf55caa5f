"""Whether "over all" on the calibration page is what it says: its interval against the gap of every session there is.

The judge's gap to people differs from arm to arm, and the queue asks about the arms with the largest first. Fifty
answers are given, in the places that the queue hands out.
"""

from dataclasses import dataclass

import numpy as np
from django.db import transaction
from django.utils import timezone

from benchmarks.reviewing.site import Site
from benchmarks.reviewing.world import Outcome, at
from benchmarks.simulation.world import CONCENTRATION, JUDGE_NOISE, MEANS
from grading import review
from grading.review import calibration
from grading.review.agreement import MeanEstimate, agreement
from grading.vocabulary import Source

SESSIONS, DAYS, ROUNDS, A_ROUND = 500, 10, 5, 10
GAPS = (0.0, 0.0, 0.05, -0.05, 0.1, -0.1, 0.25, 0.35)
PERSON_NOISE, FLAGGED = 0.05, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """Of one run: whether the interval held the truth by what was drawn, and by every blind pair of the slice, whatever
    the order; how many pairs were drawn.
    """

    drawn: bool
    every: bool
    pairs: int


def covered(seed: int) -> Covered:
    """One run; leaves no row behind."""
    dice = np.random.default_rng(seed)
    outcomes = [judged(seed, number, dice) for number in range(SESSIONS)]
    truth = float(np.mean([each.value - each.human for each in outcomes]))
    with transaction.atomic():
        site = Site()
        for each in outcomes:
            site.finish(each)
        site.put_up(outcomes)
        for _ in range(ROUNDS):
            review.prioritise(at(DAYS))
            site.review(A_ROUND)
        review.take_turns(timezone.now())
        (found,) = calibration.calibrations()
        every = agreement([pair.compared for pair in calibration.pairs().all])
        transaction.set_rollback(True)
    return Covered(drawn=_holds(found.whole.bias, truth), every=_holds(every.bias, truth), pairs=found.whole.n)


def judged(seed: int, number: int, dice: np.random.Generator) -> Outcome:
    """A session of the run, of any arm and day."""
    arm = int(dice.integers(len(GAPS)))
    quality = float(dice.beta(CONCENTRATION * MEANS[arm], CONCENTRATION * (1 - MEANS[arm])))
    judge, human = quality + GAPS[arm] + dice.normal(0, JUDGE_NOISE), quality + dice.normal(0, PERSON_NOISE)
    return Outcome(
        name=f"coverage {seed}/{number}",
        day=int(dice.integers(DAYS)),
        arm=arm,
        source=Source.JUDGE,
        value=float(np.clip(judge, 0, 1)),
        flagged=bool(dice.random() < FLAGGED),
        human=float(np.clip(human, 0, 1)),
    )


def _holds(estimate: MeanEstimate | None, truth: float) -> bool:
    if estimate is None or estimate.low is None or estimate.high is None:
        return False
    return estimate.low <= truth <= estimate.high
