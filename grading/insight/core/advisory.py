"""Which effects are reported as advisories, so that false ones are rare however many measures are watched."""

import datetime as dt
from collections.abc import Mapping, Sequence

from grading.insight.core.results import EffectFinding, MarkEffect, TimeMark

# At most RATE false advisories are expected in DAYS days.
RATE, DAYS = 0.1, 30
# The share of the reward in the allowance of a mark; the other measures have the rest.
REWARD_SHARE = 0.5
WORSE = frozenset({EffectFinding.WORSE, EffectFinding.HARDER_OR_WORSE})


def allot(marks: Sequence[TimeMark]) -> dict[str, float]:
    """The probability of a false advisory that is allowed for each mark, by its key.

    The allowance grows by RATE / DAYS each day, up to RATE, and a mark gets what has grown since the mark before it. So
    more marks don't cause more false advisories. The first mark gets RATE.
    """
    changes = sorted((mark for mark in marks if mark.is_change), key=lambda mark: (mark.at, mark.key))
    allowances: dict[str, float] = {}
    last: dt.datetime | None = None
    for mark in changes:
        days = DAYS if last is None else min((mark.at - last) / dt.timedelta(days=1), DAYS)
        allowances[mark.key] = RATE * days / DAYS
        last = mark.at
    return allowances


def select_worse(effects: Sequence[MarkEffect], allowances: Mapping[str, float]) -> list[MarkEffect]:
    """The effects that are worse by more than chance, given the allowances of marks by key.

    A group of marks has the sum of their allowances, up to RATE. REWARD_SHARE of it is for the reward, and the other
    measures share the rest. An effect's p-value is two-sided, but only one of the sides is worse, so its limit is twice
    the allowance.
    """
    selected = []
    names = {effect.measure.name for effect in effects if effect.measure.better}
    other_share = (1 - REWARD_SHARE) / max(1, len(names - {"reward"}))
    for effect in effects:
        share = REWARD_SHARE if effect.measure.name == "reward" else other_share
        allowance = min(RATE, sum(allowances.get(mark.key, 0.0) for mark in effect.marks)) * share
        if effect.finding in WORSE and effect.p_value is not None and effect.p_value <= 2 * allowance:
            selected.append(effect)
    return selected
