"""When to say that something got worse: rarely by chance, whatever is looked at and however often."""

import datetime as dt
from collections.abc import Mapping, Sequence

from grading.insight.core.results import EffectFinding, MarkEffect, TimeMark

# At most so many false advisories are expected in so many days.
RATE, DAYS = 0.1, 30
# The share of the reward in the allowance of a mark; the other measures have the rest.
REWARD_SHARE = 0.5
WORSE = frozenset({EffectFinding.WORSE, EffectFinding.HARDER_OR_WORSE})


def allot(marks: Sequence[TimeMark]) -> dict[str, float]:
    """The chance of a false advisory that each mark may use, by its key.

    The allowance grows by RATE / DAYS each day, and a mark gets what has grown since the one before it, up to RATE. So
    more marks don't make more false advisories, and nobody gains by making marks. The first mark has the most.
    """
    changes = sorted((mark for mark in marks if mark.is_change), key=lambda mark: (mark.at, mark.key))
    chances, last = {}, None
    for mark in changes:
        days = (
            DAYS if last is None else min((mark.at - last).total_seconds() / dt.timedelta(days=1).total_seconds(), DAYS)
        )
        chances[mark.key] = RATE * days / DAYS
        last = mark.at
    return chances


def select_worse(effects: Sequence[MarkEffect], chances: Mapping[str, float]) -> list[MarkEffect]:
    """The effects that are worth an advisory. A group of marks has the sum of their allowances; half of it is for the
    reward. The p-value is for both directions, and only one is worse: twice the allowance is its limit.
    """
    selected = []
    for effect in effects:
        others = {each.measure.name for each in effects if each.measure.better and each.measure.name != "reward"}
        share = REWARD_SHARE if effect.measure.name == "reward" else (1 - REWARD_SHARE) / max(1, len(others))
        allowance = min(RATE, sum(chances.get(mark.key, 0.0) for mark in effect.marks)) * share
        if effect.finding in WORSE and effect.p_value is not None and effect.p_value <= 2 * allowance:
            selected.append(effect)
    return selected
