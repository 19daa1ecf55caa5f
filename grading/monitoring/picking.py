"""Detects agents that use only the decisions they like: a bet against the hypothesis that they drop any arm alike.

Each decision's arm was drawn with a probability p. An agent that drops decisions regardless of arm drops each arm as
often as it was drawn, and uses it as often. For each arm, one bets that it is more frequent than that among the dropped
decisions, and again among the used ones. With a stake λ, each decision multiplies the money by

    λ/Z if it was that arm, 1/Z if it was another        Z = 1 + p·(λ − 1)

The expectation is 1 if decisions are dropped regardless of arm, so the probability that the money ever reaches 1/α is
at most α (Ville 1939). The money is divided equally among arms, sides and stakes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# For an arm that is dropped three times as often as others, and for one that is always dropped.
STAKES = np.array([3.0, 20.0])
# An agent that drops decisions regardless of arm is accused with this probability at most, over a window of decisions.
ONE_IN = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnDecision:
    """A drawn decision: its `arm`, the probability (`odds`) of each eligible arm, and whether a session came of it."""

    arm: str
    odds: Mapping[str, float]
    used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Picking:
    """The strongest evidence: `arm` is `count` of the `n` dropped decisions (or used ones, if `is_of_used`), although
    only `expected` of them would be by its probabilities. `money` is what a bet of 1 has become.
    """

    arm: str
    is_of_used: bool
    n: int
    count: int
    expected: float
    money: float


def picking(decisions: Sequence[DrawnDecision]) -> Picking | None:
    """The bet on these decisions of one agent, in any order; None if no arm was drawn at random."""
    names = sorted({arm for each in decisions for arm, odds in each.odds.items() if 0 < odds < 1})
    if not names:
        return None
    from scipy.special import logsumexp

    # Shapes: decisions, arms and, for the steps, stakes.
    odds = np.array([[each.odds.get(name, 0.0) for name in names] for each in decisions])
    drawn = np.array([[each.arm == name for name in names] for each in decisions])
    used = np.array([each.used for each in decisions])
    z = 1 + odds[:, :, None] * (STAKES - 1)
    log_steps = np.where(drawn[:, :, None], np.log(STAKES), 0.0) - np.log(z)
    # The logarithm of what each bet became, by side (dropped, used), arm and stake; and the side and arm of the best.
    log_money = np.stack([log_steps[~used].sum(axis=0), log_steps[used].sum(axis=0)])
    side, arm, _stake = np.unravel_index(int(log_money.argmax()), log_money.shape)
    is_of_used = bool(side)
    of_side = used == is_of_used
    log_mean = logsumexp(log_money) - np.log(log_money.size)
    return Picking(
        arm=names[arm],
        is_of_used=is_of_used,
        n=int(of_side.sum()),
        count=int(drawn[of_side, arm].sum()),
        expected=float(odds[of_side, arm].sum()),
        money=float(np.exp(min(log_mean, 600.0))),  # exp overflows above 709
    )
