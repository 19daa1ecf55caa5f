"""Whether an agent uses the decisions that suit it: a bet that what it drops was drawn as its chances say.

Each decision's arm was drawn with a chance p. Whoever drops some whatever was drawn drops each arm as often as its
chances say, and so uses it. Bet on each arm, among the decisions that were dropped and again among those that were
used, that it is there more often: with a stake λ a decision makes the money

    λ/Z times what it was where it was that arm, 1/Z times where it was another        Z = 1 + p·(λ − 1)

which grows by no expectation where the draws are as they were told, so that it ever reaches 1/α with a chance of α at
most (Ville 1939). The money is parted equally among arms, sides and stakes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# As one that is dropped three times as readily as others is, and one that is always dropped.
STAKES = np.array([3.0, 20.0])
# An agent that drops by no pattern is called picking with this chance at most, over one window of decisions.
ONE_IN = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnDecision:
    """A decision that was drawn: its `arm`, the `odds` of each arm that could be, and whether a session came of it."""

    arm: str
    odds: Mapping[str, float]
    used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Picking:
    """What speaks most for picking: `arm`, dropped (or `kept`) more often than was drawn. Of the `n` decisions that
    were dropped (used) it was `seen` times, where its chances say `expected`. `money` is what a bet of 1 has become.
    """

    arm: str
    kept: bool
    n: int
    seen: int
    expected: float
    money: float


def picking(decisions: Sequence[DrawnDecision]) -> Picking | None:
    """The bet on these decisions of one agent, in any order; None where nothing was left to chance."""
    names = sorted({arm for each in decisions for arm, odds in each.odds.items() if 0 < odds < 1})
    if not names:
        return None
    from scipy.special import logsumexp

    odds = np.array([[each.odds.get(name, 0.0) for name in names] for each in decisions])
    drawn = np.array([[each.arm == name for name in names] for each in decisions])
    used = np.array([each.used for each in decisions])
    z = 1 + odds[:, :, None] * (STAKES - 1)
    steps = np.where(drawn[:, :, None], np.log(STAKES), 0.0) - np.log(z)
    sides = np.stack([steps[~used].sum(axis=0), steps[used].sum(axis=0)])
    side, at, _stake = np.unravel_index(int(sides.argmax()), sides.shape)
    among = used == bool(side)
    return Picking(
        arm=names[at],
        kept=bool(side),
        n=int(among.sum()),
        seen=int(drawn[among, at].sum()),
        expected=float(odds[among, at].sum()),
        money=float(np.exp(min(logsumexp(sides) - np.log(sides.size), 600.0))),
    )
