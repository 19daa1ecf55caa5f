"""Detects agents that use only the decisions they like: a bet against the hypothesis that they drop any arm alike.

Each decision's arm was drawn with a probability p. If an agent drops decisions regardless of arm, an arm's share of the
dropped decisions is its share of all decisions, and so is its share of the used ones. For each arm, one bet is that it
is more frequent than that among the dropped decisions, and another that it is more frequent among the used ones. With a
stake λ, each decision multiplies a bet's money by

    λ/Z if it was that arm, 1/Z if it was another        Z = 1 + p·(λ − 1)

The expectation is 1 if decisions are dropped regardless of arm, so the probability that the money ever reaches 1/α is
at most α (Ville 1939). The money is divided equally among arms, sides and stakes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# Best for an arm that is dropped three times as often as others, and for an arm that is always dropped.
STAKES = np.array([3.0, 20.0])
# An agent that drops decisions regardless of arm is reported with a probability of at most 1 in ONE_IN, over a window.
ONE_IN = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnDecision:
    """A drawn decision: its `arm`, the probability of each eligible arm (`odds`), and whether a session used it."""

    arm: str
    odds: Mapping[str, float]
    used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Picking:
    """The strongest evidence that an agent picks among its decisions.

    Of its `n` dropped decisions, `count` were for `arm`, but `expected` are expected by the arm's probabilities. If
    `is_of_used`, the same holds for its used decisions instead. `money` is what a bet of 1, divided among all arms,
    sides and stakes, has become.
    """

    arm: str
    is_of_used: bool
    n: int
    count: int
    expected: float
    money: float


def find_picking(decisions: Sequence[DrawnDecision]) -> Picking | None:
    """The strongest evidence in these decisions of one agent, in any order; None if no arm was drawn at random."""
    names = sorted({arm for decision in decisions for arm, odds in decision.odds.items() if 0 < odds < 1})
    if not names:
        return None
    from scipy.special import logsumexp

    odds = np.array([[decision.odds.get(name, 0.0) for name in names] for decision in decisions])  # (decisions, arms)
    drawn = np.array([[decision.arm == name for name in names] for decision in decisions])  # (decisions, arms)
    used = np.array([decision.used for decision in decisions])
    z = 1 + odds[:, :, None] * (STAKES - 1)  # (decisions, arms, stakes)
    log_steps = np.where(drawn[:, :, None], np.log(STAKES), 0.0) - np.log(z)
    # The logarithm of what each bet became: (sides, arms, stakes), where the sides are dropped and used.
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
