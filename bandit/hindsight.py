"""The log read again with another policy: at each draw, what it would have said from what was known then."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from bandit import ledger, rectifying
from bandit.core.posterior import Policy, fold
from bandit.eligibility import consumption_feedback
from bandit.models import Bandit, LedgerEntry, PolicyVersion, Selection
from bandit.reading import chances, policy_from, rows_of, site_day, with_baseline
from bandit.whatif import single


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One decision that was drawn and rewarded: the arm, the `odds` it was drawn with, and what came of it."""

    at: datetime
    arm: str
    odds: Mapping[str, float]
    reward: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What another policy would have said to a draw: its odds among the same arms, and the mean it saw in each."""

    odds: Mapping[str, float]
    means: Mapping[str, float]


Watch = Callable[[Sequence[Draw]], Iterable[Draw]]


def draws_of(bandit: Bandit, now: datetime, limit: int) -> tuple[list[Draw], Counter[str]]:
    """The last `limit` decisions by `now`: those that were drawn and rewarded, the oldest first, and how many were not,
    by reason.

    A reward is the one that counts today, of the session that a draw led to, whichever arm ran in it: pivots are part
    of what a choice leads to.
    """
    latest = list(bandit.selections.filter(created__lte=now).select_related("arm")[:limit])
    entries = ledger.live_entries_of(bandit.name, {each.observation for each in latest})
    rewards, names = {entry.observation: entry.value for entry in entries}, _names(bandit)
    draws, left_out = [], Counter[str]()
    for each in reversed(latest):
        odds = {arm: odd for arm, odd in each.eligible.items() if not isinstance(odd, str)}
        reason = _reason_against(each, rewards.keys(), odds.keys() <= names.keys())
        if reason:
            left_out[reason] += 1
        else:
            now_named = {names[arm]: odd for arm, odd in odds.items()}
            reward = rewards[each.observation]
            draws.append(Draw(at=each.created, arm=each.arm.name, odds=now_named, reward=reward))
    return draws, left_out


def _names(bandit: Bandit) -> dict[str, str]:
    """Every name that an arm goes by or went by, and the one it has now."""
    arms = list(bandit.arms.prefetch_related("aliases"))
    aliases = {alias.alias: arm.name for arm in arms for alias in arm.aliases.all()}
    return aliases | {arm.name: arm.name for arm in arms}


def _reason_against(selection: Selection, rewarded: Iterable[str], known: bool) -> str:  # noqa: FBT001 - private
    if selection.override is not None:
        return "insisted on, not drawn"
    if selection.completed_at is None:
        return "not finished"
    if selection.observation not in rewarded:
        return "without a reward"
    return "" if known else "from arms that have another name now"


def answers(variant: PolicyVersion, draws: Sequence[Draw], watch: Watch) -> Iterator[Answer]:
    """What the variant would have said to each of `draws`, at least one, the oldest first.

    From the ledger as it was known at each draw. The variant's baseline is read once a day, at the day's first draw;
    its rectifier is the one in force.
    """
    bandit, base = variant.bandit, policy_from(variant, rectifying.in_force(variant.bandit))
    arms = {arm.name: arm.is_consumption for arm in bandit.arms.all()}
    known = Known(bandit, base, draws)
    day: date | None = None
    for draw in watch(draws):
        learnt, today = known.advance(draw.at), site_day(draw.at)
        if today != day:
            policy = with_baseline(bandit, base, today, draw.at)
        if learnt or today != day:
            posterior = fold(known.rows, arms=arms, policy=policy, today=today)
            means = dict(
                zip(posterior.names, (posterior.alpha / (posterior.alpha + posterior.beta)).tolist(), strict=True)
            )
            reading = [name for name, is_consumption in arms.items() if is_consumption]
            moved = consumption_feedback(known.rows, reading, variant, today)
            factors = {name: each.factor for name, each in moved.items()}
        day = today
        odds = chances(posterior.chance_of_best(draw.odds), policy.floor, factors)
        yield Answer(odds=odds, means=means)


class Known:
    """The ledger's `rows` as they grew from the first of some draws to the last."""

    def __init__(self, bandit: Bandit, policy: Policy, draws: Sequence[Draw]) -> None:
        start, end = draws[0].at, draws[-1].at
        self.rows = rows_of(bandit, policy, site_day(start), start)
        entries = LedgerEntry.objects.filter(bandit=bandit, recorded_at__gt=start, recorded_at__lte=end)
        self._later = list(entries.select_related("arm", "grader").order_by("-recorded_at"))

    def advance(self, moment: datetime) -> bool:
        """Take in what was recorded by `moment`; says whether there was anything."""
        before = len(self._later)
        while self._later and self._later[-1].recorded_at <= moment:
            entry = self._later.pop()
            sign = 1 if entry.op == LedgerEntry.Op.APPLY else -1
            self.rows.append(
                single(
                    entry.arm.name, entry.grader, entry.effective_day, entry.value_micro, entry.cost_micro, sign=sign
                )
            )
        return len(self._later) < before
