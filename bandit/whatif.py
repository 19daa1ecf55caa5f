"""What the bandit would believe if something were otherwise; nothing is saved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from bandit import ledger
from bandit.buckets import kind_of
from bandit.core.calibration import Scale
from bandit.core.posterior import Outlook
from bandit.core.rectify import Stratum
from bandit.core.table import RewardRow
from bandit.ledger import Credit, GraderKey, Learner
from bandit.models import Arm, Bandit, Grader, LedgerEntry
from bandit.reading import InForce, outlook, policy_of, present_outlook, rows_of, site_day, with_baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class HypotheticalReward:
    """What may become of an arm's reward for one observation: `value` in [0, 1] (None: none) from `source`, for `day`.

    The rest is as in a ledger.Credit and its GraderKey.
    """

    observation: str
    arm: str
    value: float | None
    source: str
    day: date
    stratum: str = ""
    context: str = ""
    salience: int = 100
    cost_usd: float | None = None
    witness: str = ""
    agent: str = ""

    @property
    def grader(self) -> GraderKey:
        return GraderKey(
            source=self.source,
            stratum=self.stratum,
            context=self.context,
            salience=self.salience,
            witness=self.witness,
            agent=self.agent,
        )


def what_if_many(
    bandit: str,
    changes: Sequence[HypotheticalReward],
    now: datetime,
    *,
    beside: Mapping[str, Sequence[HypotheticalReward]] | None = None,
) -> tuple[Outlook, Outlook]:
    """The outlook now, and as it would be after all of `changes`, in any order.

    `beside` is what changes in other bandits with them, by name: the means that this one's rewards are freed of may be
    theirs. Nothing is saved. Some ten queries, and one for each arm named. Raises as `rows_moved` does.
    """
    return what_if_moved(bandit, rows_moved({**(beside or {}), bandit: changes}), now)


def rows_moved(changes: Mapping[str, Sequence[HypotheticalReward]]) -> dict[str, list[RewardRow]]:
    """The rows that come and go by these changes, by bandit.

    What is live for their observations is taken out, on every arm, as corrections would. A query for each bandit, and
    one for each arm named. Raises UnknownBandit, UnknownArm, or ValueError for a value outside [0, 1] or an arm of an
    observation that is changed twice.
    """
    moved: dict[str, list[RewardRow]] = {}
    for name, own in changes.items():
        apart = {(change.observation, change.arm) for change in own}
        if len(apart) < len(own):
            raise ValueError(f"{len(own)} changes of {len(apart)} arms' rewards; change each one once")
        # What is live, abstentions too, goes.
        live = ledger.live_entries_of(name, {change.observation for change in own})
        rows = moved[name] = [row_of(entry, sign=-1) for entry in live]
        arms = {text: Arm.objects.resolve(name, text).name for text in {change.arm for change in own}}
        for change in own:
            if change.value is not None:
                credit = ledger.Credit(value=change.value, grader=change.grader, cost_usd=change.cost_usd)
                arm = arms[change.arm]
                rows.append(_single(arm, change.grader, change.day, credit.micro, credit.cost_micro, sign=1))
    return moved


def what_if_moved(bandit: str, moved: Mapping[str, Sequence[RewardRow]], now: datetime) -> tuple[Outlook, Outlook]:
    """The outlook now, and as it would be with these rows more (with `n` of −1, less), by the bandit that they are of.

    Raises UnknownBandit.
    """
    row, today = Bandit.objects.named(bandit), site_day(now)
    policy = policy_of(row)
    rows = rows_of(row, policy, today).plus(moved.get(bandit, ()))
    freed = with_baseline(row, policy, today)
    baseline = [] if row.baseline is None else list(moved.get(row.baseline.name, ()))
    after = with_baseline(row, policy, today, moved=baseline) if baseline else freed
    return present_outlook(row, freed, today), outlook(row, after, rows, today)


def what_if_rectified(held: InForce, offsets: Mapping[Stratum, float], now: datetime) -> tuple[Outlook, Outlook]:
    """The outlook without any rectifier, and with one of these offsets, whatever is in force.

    Raises ValueError for an offset out of range or of human grades.
    """
    today = site_day(now)
    policy = held.policy_on(today)
    without, with_them = (held.outlook(today, replace(policy, rectifier=each))[1] for each in ({}, offsets))
    return without, with_them


def what_if_calibrated(held: InForce, scales: Sequence[Scale | None], now: datetime) -> list[Outlook]:
    """The outlook under each of these scales (None: every source as it stands), whatever is in force.

    A rectifier's offsets of what one of them would read are left out, as they were fitted under another.
    """
    today = site_day(now)
    policy = held.policy_on(today)
    found = []
    for scale in scales:
        read = () if scale is None else scale.sources
        kept = {key: offset for key, offset in policy.rectifier.items() if key[1] not in read}
        found.append(held.outlook(today, replace(policy, scale=scale, rectifier=kept))[1])
    return found


def what_if_without(bandit: str, source: str, now: datetime) -> tuple[Outlook, Outlook]:
    """The outlook now, and as it would be if `source` counted for nothing.

    A baseline that its rewards are freed of stays as it is. Raises UnknownBandit.
    """
    row, today = Bandit.objects.named(bandit), site_day(now)
    policy = with_baseline(row, policy_of(row), today)
    without = replace(policy, weights={**policy.weights, source: 0.0})
    return present_outlook(row, policy, today), present_outlook(row, without, today)


def row_for(learner: Learner, credit: Credit, day: date) -> RewardRow:
    """A reward as it would be recorded of this arm, as a row."""
    grader = replace(credit.grader, context=learner.context, salience=learner.salience)
    return _single(learner.arm.name, grader, day, credit.micro, credit.cost_micro, sign=1)


def row_of(entry: LedgerEntry, *, sign: int) -> RewardRow:
    """One reward's entry as a row: 1 for one that comes, −1 for one that goes."""
    return _single(entry.arm.name, entry.grader, entry.effective_day, entry.value_micro, entry.cost_micro, sign=sign)


def _single(arm: str, grader: Grader | GraderKey, day: date, micro: int, cost: int | None, *, sign: int) -> RewardRow:
    """One reward come (`sign` 1) or gone (−1), in micro-units, as a row."""
    return RewardRow(
        **kind_of(arm, grader)._asdict(),
        day=day,
        n=sign,
        s=sign * micro,
        q=sign * micro**2,
        cost=sign * (cost or 0),
        costed=0 if cost is None else sign,
    )
