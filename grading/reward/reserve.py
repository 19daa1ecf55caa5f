"""Which of an arm's abstentions are judged first: by chance, and never none of many."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Whether something was drawn, and the chance in [0, 1] that it had."""

    drawn: bool
    chance: float


def draw(number: float, share: float, passed_over: int) -> Drawing:
    """Draw the arm's next abstention by a random `number` in [0, 1); `passed_over` before it, in a row, were not drawn.

    Each has at least the chance `share` in [0, 1], whatever came before, so that none is ever known to be safe. Of
    ⌊1/share⌋ in a row one is drawn at least: where all others were passed over, the last is drawn for certain. So an
    arm's drawn ones are never fewer than share · n, rounded down; with m = ⌊1/share⌋ they are

        1 / Σ_{k<m} (1 − share)^k = share / (1 − (1 − share)^m)

    of many: .154 for a share of .1.
    """
    if share <= 0:
        return Drawing(drawn=False, chance=0.0)
    # A share of .1 is a little more than a tenth, and its reciprocal is to be 10 all the same.
    chance = 1.0 if passed_over + 1 >= math.floor(1 / share + 1e-9) else share
    return Drawing(drawn=number < chance, chance=chance)


def may_go_first(served: int, of: int, share: float) -> bool:
    """Whether one more of those that were drawn goes before all others, where `served` of the last `of` calls were.

    So they take no more than `share` in [0, 1] of the calls, and one, while others wait.
    """
    return served < share * (of + 1)
