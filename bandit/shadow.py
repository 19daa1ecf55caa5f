"""Shadow mode: what a variant of a policy would have chosen and earned on the log, before it is switched on.

For each draw the ledger is read as it was known at that moment, with the variant in place of what was in force: the
odds it would have had among the same eligible arms, beside those that were drawn with, weigh the reward that came of it
(bandit.core.offpolicy). Each draw is asked by itself; what the variant would have learnt from choices that it alone
would have made, no log can tell. What may be chosen at all (supply, limits, probation, pauses) stays as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from bandit.core.estimate import signed
from bandit.core.offpolicy import DrawLog, PolicyComparison, compare
from bandit.core.table import Floats
from bandit.hindsight import INSISTED, Counterfactual, LoggedDraw, Watch, answers, draws_of
from bandit.models import PolicyVersion

LIMIT = 300
# For a page: so many ledger rows learnt between two readings. Over 300 draws of a year at 50 rewards a day, a reading
# at each draw took 4.6 s, after 10 rows .59 s, after 50 rows .24 s.
FAST = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowShare:
    """How many of a hundred such draws choose an arm: as it `ran`, and as it `would` have been."""

    arm: str
    ran: float
    would: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A variant against what ran: from `used` of the last `looked_at` decisions, `first` to `last`.

    `left_out` counts the others by reason. `shares` are of the arms that were eligible in any draw; there are none,
    and `comparison` is None, where no draw could be used. `sentence` says all that may be said.
    """

    bandit: str
    variant: str
    looked_at: int
    used: int
    left_out: Mapping[str, int]
    first: datetime | None
    last: datetime | None
    comparison: PolicyComparison | None
    shares: tuple[ShadowShare, ...]
    sentence: str


def shadow(variant: PolicyVersion, now: datetime, *, limit: int = LIMIT, every: int = 1, watch: Watch = iter) -> Report:
    """What `variant`, saved or not, would have earned on the last `limit` decisions by `now` of its bandit.

    The ledger is read anew at every draw before which `every` rows or more were learnt: 1 is exact, more is faster, for
    a page. Nothing is saved. `watch` is handed the draws and gives them back one by one, for a progress bar. Raises
    ValueError for a limit that is not positive.
    """
    if limit < 1:
        raise ValueError(f"a shadow looks at one decision at least; got a limit of {limit}")
    draws, left_out = draws_of(variant.bandit, now, limit)
    looked_at = len(draws) + left_out.total()
    unrewarded = left_out.total() - left_out[INSISTED]
    log, shares = _log(draws, list(answers(variant, draws, every, watch)), unrewarded) if draws else (None, ())
    comparison = compare(log) if log else None
    return Report(
        bandit=variant.bandit.name,
        variant=str(variant),
        looked_at=looked_at,
        used=len(draws),
        left_out=dict(left_out),  # a Counter has every key: also "items", to a template
        first=draws[0].at if draws else None,
        last=draws[-1].at if draws else None,
        comparison=comparison,
        shares=shares,
        sentence=_sentence(comparison, looked_at, priced=variant.cost_weight > 0),
    )


def _log(
    draws: Sequence[LoggedDraw], answered: Sequence[Counterfactual], unrewarded: int
) -> tuple[DrawLog, tuple[ShadowShare, ...]]:
    names = sorted(answered[0].means)
    ran, would = (_table(names, [each.odds for each in some]) for some in (draws, answered))
    log = DrawLog(
        arm=np.array([names.index(draw.arm) for draw in draws]),
        ran=ran,
        reward=np.array([draw.reward for draw in draws]),
        target=would,
        model=_table(names, [each.means for each in answered]),
        unrewarded=unrewarded,
    )
    columns = zip(names, *(100 * each.mean(axis=0) for each in (ran, would)), strict=True)
    shares = (ShadowShare(arm=name, ran=float(before), would=float(after)) for name, before, after in columns)
    return log, tuple(share for share in shares if share.ran or share.would)


def _table(names: Sequence[str], rows: Sequence[Mapping[str, float]]) -> Floats:
    return np.array([[row.get(name, 0.0) for name in names] for row in rows])


def _sentence(comparison: PolicyComparison | None, looked_at: int, *, priced: bool) -> str:
    if comparison is None:
        return f"Cannot tell yet: none of {looked_at} decisions was drawn, finished and rewarded."
    gain, levels = comparison.gain, comparison.levels
    if comparison.doubt or gain is None:
        return f"Cannot tell yet: {comparison.doubt}."
    verdict = "better" if gain.above else "worse" if gain.below else "which may be chance"
    said = (
        f"Over {comparison.n} of the last {looked_at} decisions, an effective sample of {comparison.effective:.0f}, "
        f"the variant would have earned {signed(gain.mean)} a draw against what ran (90 % interval "
        f"{signed(gain.low)} to {signed(gain.high)}), {verdict}."
    )
    if levels:
        would, ran = levels.snips, levels.earned
        said += f" That is {would.mean:.3f} ({would.low:.3f} to {would.high:.3f}); what ran earned {ran.mean:.3f}."
    else:
        said += (
            f" How much either earned cannot be told: {100 * (1 - comparison.rewarded):.0f} % of the draws have no "
            "reward, and which do depends on how they went, so that the gain may be a little off, too."
        )
    if comparison.clipped:
        said += (
            f" {comparison.clipped} weights of up to {comparison.largest:.0f} were cut to {comparison.cap:.0f}: what "
            "only the variant does often is told too small."
        )
    return said + (" Its price on cost is in its odds, not in these rewards." if priced else "")
