"""Replaying the log under another policy: the odds it would have given each draw, from what was known then."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property

from bandit import ledger
from bandit.core.posterior import Posterior, chances, fold
from bandit.core.table import RewardRow
from bandit.eligibility import consumption_feedback
from bandit.models import Bandit, PolicyVersion
from bandit.reading import entries_of, policy_with, rows_of, site_day, with_baseline
from bandit.whatif import row_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedDraw:
    """One decision that was drawn and rewarded: the arm, the `odds` it was drawn with, and what came of it."""

    at: datetime
    arm: str
    odds: Mapping[str, float]
    reward: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """What another policy would have said to a draw: its odds among the same arms, and the mean it saw in each."""

    odds: Mapping[str, float]
    means: Mapping[str, float]


# Why a decision is in no log that was not drawn at all; the other reasons are of draws.
INSISTED = "insisted on, not drawn"

Watch = Callable[[Sequence[LoggedDraw]], Iterable[LoggedDraw]]


def draws_of(bandit: Bandit, now: datetime, limit: int) -> tuple[list[LoggedDraw], Counter[str]]:
    """The last `limit` decisions by `now`: those that were drawn and rewarded, the oldest first, and how many were not,
    by reason.

    A reward is the one that counts today, of the session that a draw led to, whichever arm ran in it: pivots are part
    of what a choice leads to.
    """
    latest = list(bandit.selections.filter(created__lte=now).select_related("arm")[:limit])
    entries = ledger.live_entries_of(bandit.name, {each.observation for each in latest}).rewards()
    rewards = {entry.observation: entry.value for entry in entries}
    draws, left_out = [], Counter[str]()
    for each in reversed(latest):
        if each.override is not None:
            left_out[INSISTED] += 1
        elif each.completed_at is None:
            left_out["not finished"] += 1
        elif each.observation not in rewards:
            left_out["without a reward"] += 1
        else:
            odds = {arm: odd for arm, odd in each.eligible.items() if not isinstance(odd, str)}
            draws.append(LoggedDraw(at=each.created, arm=each.arm.name, odds=odds, reward=rewards[each.observation]))
    return draws, left_out


def answers(variant: PolicyVersion, draws: Sequence[LoggedDraw], every: int, watch: Watch) -> Iterator[Counterfactual]:
    """What the variant would have said to each of `draws`, at least one, the oldest first.

    From the ledger as it was known at the draw, or at the last one before that, of the same day, since which fewer than
    `every` rows were learnt. The baseline is that of the day's first draw; the rectifier is the one in force.
    """
    known = LedgerReplay(variant, draws)
    reading: VariantReading | None = None
    for draw in watch(draws):
        known.advance(draw.at)
        if reading is None or known.new_rows >= every or site_day(draw.at) != reading.posterior.day:
            reading = known.read(draw.at)
        yield Counterfactual(odds=reading.odds(tuple(draw.odds)), means=reading.means)


@dataclass(frozen=True, kw_only=True, eq=False)
class VariantReading:
    """The variant's posterior at a moment, and the factors on the arms that read."""

    posterior: Posterior
    factors: Mapping[str, float]
    _odds: dict[tuple[str, ...], dict[str, float]] = field(default_factory=dict)

    @cached_property
    def means(self) -> dict[str, float]:
        means = self.posterior.alpha / (self.posterior.alpha + self.posterior.beta)
        return dict(zip(self.posterior.names, means.tolist(), strict=True))

    def odds(self, eligible: tuple[str, ...]) -> dict[str, float]:
        """The odds among these arms; asked again, those worked out before."""
        if eligible not in self._odds:
            best = self.posterior.chance_of_best(eligible)
            self._odds[eligible] = chances(best, self.posterior.policy, self.factors)
        return self._odds[eligible]


class LedgerReplay:
    """What a variant would have made of the ledger as it grew from the first of some draws to the last.

    `new_rows` counts the ledger rows that came since the last reading.
    """

    def __init__(self, variant: PolicyVersion, draws: Sequence[LoggedDraw]) -> None:
        bandit, start, end = variant.bandit, draws[0].at, draws[-1].at
        self.variant, self.new_rows = variant, 0
        self._arms = {arm.name: arm.is_consumption for arm in bandit.arms.all()}
        self._policy = policy_with(variant)
        self._rows = rows_of(bandit, self._policy, site_day(start), start)
        self._new = list[RewardRow]()
        entries = entries_of(bandit, self._policy).filter(recorded_at__gt=start, recorded_at__lte=end)
        self._later = list(entries.select_related("arm", "grader").order_by("-recorded_at"))
        self._day, self._freed = date.min, self._policy

    def advance(self, moment: datetime) -> None:
        """Take in what was recorded by `moment`."""
        while self._later and self._later[-1].recorded_at <= moment:
            entry = self._later.pop()
            self._new.append(row_of(entry, sign=1 if entry.op == ledger.APPLY else -1))
            self.new_rows += 1

    def read(self, moment: datetime) -> VariantReading:
        """The variant's reading at `moment`, of what was taken in."""
        self.new_rows, today = 0, site_day(moment)
        self._rows, self._new = self._rows.plus(self._new), []
        if self._day != today:
            self._day, self._freed = today, with_baseline(self.variant.bandit, self._policy, today, moment)
        posterior = fold(self._rows, arms=self._arms, policy=self._freed, today=today)
        reading = [name for name, is_consumption in self._arms.items() if is_consumption]
        moved = consumption_feedback(self._rows, reading, self.variant, today, posterior.caps)
        return VariantReading(posterior=posterior, factors={name: each.factor for name, each in moved.items()})
