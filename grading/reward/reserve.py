"""Draws which of an arm's abstentions are judged first: by chance, but at least one of every few. Pure."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Whether something was drawn, and the chance in [0, 1] that it had."""

    drawn: bool
    chance: float


def draw_next(number: float, share: float, passed_over: int) -> Drawing:
    """Whether an arm's next abstention is drawn to be judged first, by a random `number` in [0, 1). The last
    `passed_over` abstentions of the arm in a row were not drawn.

    Each is drawn with at least the chance `share` in [0, 1], whatever came before, so that an agent can't know one to
    be safe. Of ⌊1/share⌋ in a row at least one is drawn: if all others were passed over, the last is certain. So at
    least share · n of n abstentions are drawn, rounded down; with m = ⌊1/share⌋ the share drawn is

        1 / Σ_{k<m} (1 − share)^k = share / (1 − (1 − share)^m)

    in the long run: .154 for a share of .1.
    """
    if share <= 0:
        return Drawing(drawn=False, chance=0.0)
    # As a float, .1 is a little more than a tenth; its reciprocal must still count as 10.
    chance = 1.0 if passed_over + 1 >= math.floor(1 / share + 1e-9) else share
    return Drawing(drawn=number < chance, chance=chance)


def may_go_first(reserved_calls: int, calls: int, share: float) -> bool:
    """Whether the next call may go to a drawn session before all others, if `reserved_calls` of the last `calls` did.

    So drawn sessions get at most `share` in [0, 1] of the calls, plus one, while others wait.
    """
    return reserved_calls < share * (calls + 1)
