"""What-if: the outlook of a bandit under hypothetical rewards or calibrations. Nothing is stored."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from bandit import ledger
from bandit.buckets import kind_of
from bandit.core.posterior import Outlook
from bandit.core.table import RewardRow
from bandit.ledger import Credit, GraderKey
from bandit.models import Arm, Bandit, CalibrationVersion, Grader, LedgerEntry
from bandit.reading import EffectivePolicy, effective_policy, outlook, site_day, with_baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class HypotheticalReward:
    """What an arm might get for an observation on the day `day`: a credit, or no reward if that is None."""

    observation: str
    arm: str
    day: date
    credit: Credit | None


def what_if_changed(
    bandit: str, changes: Mapping[str, Sequence[HypotheticalReward]], now: datetime
) -> tuple[Outlook, Outlook]:
    """The bandit's outlook (now, after all of `changes`, which are by bandit).

    Changes in other bandits matter for this one's baseline. About ten queries, and one for each arm named. Raises as
    `rows_of_changes`.
    """
    return what_if_rows(bandit, rows_of_changes(changes), now)


def rows_of_changes(changes: Mapping[str, Sequence[HypotheticalReward]]) -> dict[str, list[RewardRow]]:
    """The rows that these changes would add and remove (`n` is −1), by bandit; `changes` is by bandit, too.

    Like a correction, a change removes whatever is live for its observation, on every arm; without a credit it adds
    nothing. One query for each bandit and each arm named. Raises UnknownBandit, UnknownArm, or ValueError for two
    changes of one arm's reward for one observation.
    """
    rows_by_bandit: dict[str, list[RewardRow]] = {}
    for bandit, own in changes.items():
        distinct = {(change.observation, change.arm) for change in own}
        if len(distinct) < len(own):
            raise ValueError(f"{len(own)} changes of {len(distinct)} arms' rewards; change each one once")
        live = ledger.live_entries(bandit, {change.observation for change in own})
        rows = rows_by_bandit[bandit] = [row_of_entry(entry, sign=-1) for entry in live]
        arms = {text: Arm.objects.resolve(bandit, text).name for text in {change.arm for change in own}}
        rows += [row_of_credit(arms[each.arm], each.credit, each.day) for each in own if each.credit is not None]
    return rows_by_bandit


def what_if_rows(bandit: str, extra_rows: Mapping[str, Sequence[RewardRow]], now: datetime) -> tuple[Outlook, Outlook]:
    """The bandit's outlook (now, with these rows added). A row with `n` of −1 removes a reward.

    `extra_rows` is by bandit: the rows of this bandit and those of its baseline are used. Raises UnknownBandit.
    """
    before, (after,) = what_if_each(bandit, [extra_rows], now)
    return before, after


def what_if_each(
    bandit: str, alternatives: Iterable[Mapping[str, Sequence[RewardRow]]], now: datetime
) -> tuple[Outlook, list[Outlook]]:
    """The bandit's outlook (now, with the rows of each alternative added). Arguments and errors as `what_if_rows`."""
    row, today = Bandit.objects.named(bandit), site_day(now)
    current = effective_policy(row)
    _, before = current.outlook(today)
    after = []
    for extra_rows in alternatives:
        policy = current.policy_on(today)
        baseline_rows = [] if row.baseline is None else list(extra_rows.get(row.baseline.name, ()))
        if baseline_rows:
            policy = with_baseline(row, current.policy, today, extra_rows=baseline_rows)
        rows = current.rows(today).plus(extra_rows.get(bandit, ()))
        after.append(outlook(row, policy, rows, today, arms=current.arms))
    return before, after


def what_if_calibrated(
    current: EffectivePolicy, calibrations: Sequence[CalibrationVersion | None], now: datetime
) -> list[Outlook]:
    """The outlook under each of these calibrations, stored or not, instead of the current one.

    Under None, or one that is off, every reward is read as given.
    """
    today = site_day(now)
    policy = current.policy_on(today)
    outlooks = []
    for each in calibrations:
        fallbacks, offsets = (None, {}) if each is None else (each.fallback_calibration, each.offset_by_stratum)
        outlooks.append(current.outlook(today, replace(policy, calibration=fallbacks, offsets=offsets))[1])
    return outlooks


def what_if_without(bandit: str, source: str, now: datetime) -> tuple[Outlook, Outlook]:
    """The outlook (now, with a weight of 0 for `source`). The baseline does not change. Raises UnknownBandit."""
    current, today = effective_policy(Bandit.objects.named(bandit)), site_day(now)
    policy = current.policy_on(today)
    without = replace(policy, weights={**policy.weights, source: 0.0})
    return current.outlook(today)[1], current.outlook(today, without)[1]


def row_of_credit(arm: str, credit: Credit, day: date) -> RewardRow:
    """The row that the ledger would record for this credit of the arm."""
    return _reward_row(arm, credit.grader, day, credit.micro, credit.cost_micro, sign=1)


def row_of_entry(entry: LedgerEntry, *, sign: int) -> RewardRow:
    """A ledger entry as a row: added with `sign` 1, removed with −1."""
    return _reward_row(
        entry.arm.name, entry.grader, entry.effective_day, entry.value_micro, entry.cost_micro, sign=sign
    )


def _reward_row(
    arm: str, grader: Grader | GraderKey, day: date, micro: int, cost: int | None, *, sign: int
) -> RewardRow:
    """A row of one reward, added with `sign` 1 or removed with −1; the value and the cost in micro-units."""
    return RewardRow(
        **kind_of(arm, grader)._asdict(),
        day=day,
        n=sign,
        s=sign * micro,
        q=sign * micro**2,
        cost=sign * (cost or 0),
        costed=0 if cost is None else sign,
    )
