"""Merges one arm into another, and undoes that: in the ledger, rewards move as reverses and applies, and back.

After an undo every bucket is bit for bit what it was before the merge, except for rewards changed in between.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Max

from bandit import ledger
from bandit.arms import Act, locked_arm, record_event
from bandit.core.posterior import Outlook
from bandit.core.posterior import outlook as outlook_on
from bandit.models import Arm, Bandit, BanditKind, LedgerEntry, LedgerEntryQuerySet
from bandit.reading import effective_policy, outlook, parts_of, site_day
from bandit.whatif import row_of_entry

MERGE = "merge:"
REWARD = ("value_micro", "cost_micro", "grader", "effective_day")


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The number of `rewards` that moved to the other arm, and of `doubles`, which ended since it had one already.

    Abstentions move too, but aren't counted.
    """

    rewards: int
    doubles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmerged:
    """The number of `rewards` that came back. Those of the observations `to_settle` did not, because they changed after
    the merge: the caller must settle these observations again.
    """

    rewards: int
    to_settle: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MergePreview:
    """What a merge would do to the rewards and to the outlook."""

    merged: Merged
    before: Outlook
    after: Outlook


def merge(arm: Arm, into: Arm, *, by: str, why: str = "") -> Merged:
    """Merge `arm` into `into`: its live rewards move there with their value, day, grader and cost.

    An observation with a reward on both, as lessons may have, keeps the one on `into`; the other is reversed. Arms that
    were merged into `arm` move, too. Raises ValueError for the same arm, arms of two bandits, or a merged arm.
    """
    with locked_arm(arm) as current:
        target = _load_target(current, into)
        moving, doubles = _entries_to_move(current, target)
        settlement = _settlement(current)
        copies = [ledger.copy_to(target, entry, settlement) for entry in moving]
        ledger.rewrite(current.bandit, reversing=[*moving, *doubles], applying=copies, settlement=settlement)
        current.merged.update(merged_into=target)
        record_event(current, Act.MERGED, other=target, by=by, why=why, merged_into=target)
    return Merged(rewards=_count_rewards(moving), doubles=_count_rewards(doubles))


def unmerge(arm: Arm, *, by: str, why: str = "") -> Unmerged:
    """Undo the arm's merge: the rewards that it moved come back as they were.

    Those changed after the merge do not; their observations are returned as `to_settle`. Merges are undone latest
    first. Raises ValueError for an arm that is not merged, or whose target was merged into another arm later and took
    this arm along.
    """
    with locked_arm(arm) as current:
        into, settlement = current.merged_into, _settlement(current)
        if into is None:
            raise ValueError(f"{current.name} is not merged into another arm; nothing was changed")
        own_target = _last_merge(current)
        if own_target is not None and own_target != into:
            raise ValueError(
                f"{current.name} came to {into.name} along with {own_target.name}, which was merged later; "
                "part that first"
            )
        copies_there = list(_live(into).filter(settlement=settlement))
        to_restore, to_settle = _split_restorable(current, settlement, copies_there)
        restored = [ledger.copy_to(current, entry, entry.settlement) for entry in to_restore]
        ledger.rewrite(current.bandit, reversing=copies_there, applying=restored, settlement=settlement)
        # Arms that had been merged into this one before move back with it.
        came_with = [each.pk for each in into.merged.exclude(pk=current.pk) if _last_merge(each) == current]
        Arm.objects.filter(pk__in=came_with).update(merged_into=current)
        record_event(current, Act.PARTED, other=into, by=by, why=why, merged_into=None)
    return Unmerged(rewards=_count_rewards(to_restore), to_settle=tuple(to_settle))


def preview_merge(arm: Arm, into: Arm, now: datetime) -> MergePreview:
    """What `merge` would do; nothing is stored. Raises ValueError as `merge`."""
    target = _load_target(arm, into)
    moving, doubles = _entries_to_move(arm, target)
    row, today = Bandit.objects.get(pk=arm.bandit_id), site_day(now)
    current = effective_policy(row)
    policy, rows = current.policy_on(today), current.rows(today)
    # The rows after the merge: without the doubles, and with the target as the arm of the others. A row's kind has its
    # arm and grader.
    rows_without_doubles = rows.plus(row_of_entry(entry, sign=-1) for entry in doubles)
    kinds = [kind._replace(arm=target.name) if kind.arm == arm.name else kind for kind in rows_without_doubles.kinds]
    rows_after = replace(rows_without_doubles, kinds=tuple(kinds))
    _, before = current.outlook(today)
    if policy.parts:
        policy = replace(policy, parts=parts_of(row, {arm.name: target.name}))  # the parts after the merge
    posterior = outlook(row, policy, rows_after, today).posterior
    after = outlook_on(posterior, before.chances.keys() - {arm.name})  # the merged arm cannot be chosen any more
    merged = Merged(rewards=_count_rewards(moving), doubles=_count_rewards(doubles))
    return MergePreview(merged=merged, before=before, after=after)


def _settlement(arm: Arm) -> str:
    """The `settlement` of the ledger entries that this arm's merge wrote."""
    return f"{MERGE}{arm.pk}"


def _load_target(arm: Arm, into: Arm) -> Arm:
    """`into`, freshly loaded. Raises ValueError if `arm` cannot be merged into it."""
    target = Arm.objects.select_related("merged_into").get(pk=into.pk)
    if arm.bandit_id != target.bandit_id:
        raise ValueError(f"{arm.name} and {target.name} are arms of two bandits; only arms of one can be merged")
    if arm.pk == target.pk:
        raise ValueError(f"{arm.name} cannot be merged into itself; name another arm")
    if arm.merged_into is not None:
        raise ValueError(f"{arm.name} was merged into {arm.merged_into.name} already; nothing was changed")
    if target.merged_into is not None:
        raise ValueError(f"{target.name} was merged into {target.merged_into.name}; merge {arm.name} into that")
    return target


def _entries_to_move(arm: Arm, target: Arm) -> tuple[list[LedgerEntry], list[LedgerEntry]]:
    """The arm's live entries: those to move, and those whose observation has a live entry on the target already.

    In a bandit that chooses one arm, an observation with a live entry on any other arm is not moved either. Earlier
    versions could write several.
    """
    own = _live(arm)
    others = LedgerEntry.objects.filter(bandit=arm.bandit_id).exclude(arm=arm).live()
    if arm.bandit.kind != BanditKind.CHOICE:
        others = others.filter(arm=target)
    others = others.filter(observation__in=own.values("observation"))
    taken = set(others.values_list("observation", flat=True))
    entries = list(own)
    moving = [entry for entry in entries if entry.observation not in taken]
    doubles = [entry for entry in entries if entry.observation in taken]
    return moving, doubles


def _count_rewards(entries: Iterable[LedgerEntry]) -> int:
    return sum(not entry.is_abstention for entry in entries)


def _live(arm: Arm) -> LedgerEntryQuerySet:
    """The arm's live entries, oldest first."""
    rows = LedgerEntry.objects.filter(bandit=arm.bandit_id, arm=arm).live()
    return rows.select_related("bandit", "arm", "grader").order_by("pk")


def _entries_merged_away(arm: Arm, settlement: str) -> list[tuple[LedgerEntry, int]]:
    """The arm's last entry for each observation if the merge reversed it, with the key of the row that reversed it.

    An apply and its reverse have the same revision. A later reward of the arm would have a higher one.
    """
    own = LedgerEntry.objects.filter(bandit=arm.bandit_id, arm=arm)
    last_revisions = dict(own.order_by().values_list("observation").annotate(last=Max("revision")))
    reverses = own.filter(op=ledger.REVERSE, settlement=settlement).values_list("observation", "revision", "pk")
    reverse_pks = {observation: pk for observation, revision, pk in reverses if last_revisions[observation] == revision}
    applies = own.filter(op=ledger.APPLY, observation__in=own.filter(settlement=settlement).values("observation"))
    entries: list[tuple[LedgerEntry, int]] = []
    for entry in applies.select_related("bandit", "arm", "grader").order_by("pk"):
        reverse_pk = reverse_pks.get(entry.observation)
        if reverse_pk is not None and entry.revision == last_revisions[entry.observation]:
            entries.append((entry, reverse_pk))
    return entries


def _split_restorable(
    arm: Arm, settlement: str, copies_there: Iterable[LedgerEntry]
) -> tuple[list[LedgerEntry], list[str]]:
    """The entries that an undo of this merge restores, and the observations whose reward changed since the merge.

    `copies_there` are the merge's copies that are still live on the other arm.
    """
    observations_there = {entry.observation for entry in copies_there}
    is_choice = arm.bandit.kind == BanditKind.CHOICE
    to_restore: list[LedgerEntry] = []
    changed: list[str] = []
    for entry, reverse_pk in _entries_merged_away(arm, settlement):
        # A bandit that chooses one arm has one reward per observation: without a copy, it is on another arm.
        if entry.observation not in observations_there and (is_choice or _changed_since(entry, reverse_pk, settlement)):
            changed.append(entry.observation)
        else:
            to_restore.append(entry)
    return to_restore, changed


def _changed_since(entry: LedgerEntry, reverse_pk: int, merge_settlement: str) -> bool:
    """Whether the observation's reward changed after the merge reversed `entry` (`reverse_pk` is the key of that row).

    The caller has checked that no copy by the merge (an apply with `merge_settlement`) is live on the other arm.

    - If the merge wrote a copy, something has reversed that copy since, so the reward changed.
    - If the merge wrote none, because the other arm had a reward of its own, the reward changed unless every reward
      was reversed as often as applied since. The arm doesn't matter: to move a reward, one is reversed on one arm and
      an equal one applied on the other.
    """
    rows = LedgerEntry.objects.filter(bandit=entry.bandit_id, observation=entry.observation, pk__gt=reverse_pk)
    if rows.filter(op=ledger.APPLY, settlement=merge_settlement).exists():
        return True
    balance: Counter[tuple[object, ...]] = Counter()  # applies minus reverses of each reward, on whichever arm
    for op, *reward in rows.values_list("op", *REWARD):
        balance[tuple(reward)] += 1 if op == ledger.APPLY else -1
    return any(balance.values())


def _last_merge(arm: Arm) -> Arm | None:
    """The target of the last merge of this arm itself, not of an arm that it was merged into. None if it had none."""
    event = arm.events.filter(act=Act.MERGED).select_related("other").first()
    return None if event is None else event.other
