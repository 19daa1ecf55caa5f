"""Merges one arm into another, and undoes that: in the ledger, rewards move as reverses and applies, and back.

After an undo every bucket is bit for bit what it was before the merge, except for rewards changed in between.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Max

from bandit import ledger
from bandit.arms import Act, locked_arm, record_event
from bandit.core.posterior import Outlook
from bandit.core.posterior import outlook as outlook_on
from bandit.models import Arm, BanditKind, LedgerEntry, LedgerEntryQuerySet
from bandit.reading import evidence_of, outlook, parts_of, site_day
from bandit.whatif import row_of

MERGE = "merge:"
REWARD = ("value_micro", "cost_micro", "grader", "effective_day")


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """`moved` rewards went to the other arm; `kept` observations had one there already, which did not change.

    Abstentions move, too, and are not counted.
    """

    moved: int
    kept: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmerged:
    """`moved` rewards came back. The rewards of the observations `again` changed since the merge: settle them again."""

    moved: int
    again: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MergePreview:
    """What a merge would do to the rewards and to the posterior."""

    merged: Merged
    before: Outlook
    after: Outlook


def merge(arm: Arm, into: Arm, *, by: str, why: str = "") -> Merged:
    """Merge `arm` into `into`: its live rewards move there with their value, day, grader and cost.

    An observation with a reward on both, as lessons may have, keeps the one on `into`; the other is reversed. Arms that
    were merged into `arm` move, too. Raises ValueError for the same arm, arms of two bandits, or a merged arm.
    """
    with locked_arm(arm) as current:
        target = _mergeable(current, into)
        moving, doubles = _to_move(current, target)
        settlement = _settlement(current)
        copies = [ledger.copy_to(target, entry, settlement) for entry in moving]
        ledger.rewrite(current.bandit, undone=[*moving, *doubles], given=copies, settlement=settlement)
        current.merged.update(merged_into=target)
        record_event(current, Act.MERGED, other=target, by=by, why=why, merged_into=target)
    return _counted(moving, doubles)


def unmerge(arm: Arm, *, by: str, why: str = "") -> Unmerged:
    """Undo the arm's merge: the rewards that it moved come back as they were, except those changed since.

    Merges are undone latest first. Raises ValueError for an arm that is not merged, or that a later merge of another
    arm moved again.
    """
    with locked_arm(arm) as current:
        into, settlement = current.merged_into, _settlement(current)
        if into is None:
            raise ValueError(f"{current.name} is not merged into another arm; nothing was changed")
        last = _last_merge(current)
        if last is not None and last != into:
            raise ValueError(
                f"{current.name} came to {into.name} along with {last.name}, which was merged later; part that first"
            )
        moved = {entry.observation for entry in _live_by(into, settlement)}
        past = _reversed_by(current, settlement)
        # A bandit that chooses one arm has one reward per observation: one that the merge did not move is elsewhere.
        stays = current.bandit.kind != BanditKind.CHOICE
        back = [
            entry
            for entry, at in past
            if entry.observation in moved or (stays and not _changed_since(entry, at, settlement))
        ]
        copies = [ledger.copy_to(current, entry, entry.settlement) for entry in back]
        ledger.rewrite(current.bandit, undone=_live_by(into, settlement), given=copies, settlement=settlement)
        # Arms that had been merged into this one before move back with it.
        came_with = [each.pk for each in into.merged.exclude(pk=current.pk) if _last_merge(each) == current]
        Arm.objects.filter(pk__in=came_with).update(merged_into=current)
        record_event(current, Act.PARTED, other=into, by=by, why=why, merged_into=None)
    restored = {entry.observation for entry in back}
    return Unmerged(moved=_rewards(back), again=tuple(e.observation for e, _ in past if e.observation not in restored))


def preview_merge(arm: Arm, into: Arm, now: datetime) -> MergePreview:
    """What `merge` would do; nothing is stored. Raises ValueError as `merge`."""
    target = _mergeable(arm, into)
    moving, doubles = _to_move(arm, target)
    row, today = arm.bandit, site_day(now)
    policy, rows = evidence_of(row, today)
    without = rows.plus(row_of(entry, sign=-1) for entry in doubles)
    kinds = tuple(each._replace(arm=target.name) if each.arm == arm.name else each for each in without.kinds)
    moved = replace(without, kinds=kinds)
    before = outlook(row, policy, rows, today)
    merged = replace(policy, parts=parts_of(row, {arm.name: target.name})) if policy.parts else policy
    posterior = outlook(row, merged, moved, today).posterior
    after = outlook_on(posterior, before.chances.keys() - {arm.name})
    return MergePreview(merged=_counted(moving, doubles), before=before, after=after)


def _settlement(arm: Arm) -> str:
    """The `settlement` of the ledger entries that this arm's merge wrote."""
    return f"{MERGE}{arm.pk}"


def _mergeable(arm: Arm, into: Arm) -> Arm:
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


def _to_move(arm: Arm, target: Arm) -> tuple[list[LedgerEntry], list[LedgerEntry]]:
    """The arm's live entries in two parts: those to move, and those whose observation has a live entry on the target.

    In a bandit that chooses one arm, an entry on any other arm counts, too: earlier versions could write such.
    """
    own = _live(arm)
    others = LedgerEntry.objects.filter(bandit=arm.bandit_id).exclude(arm=arm).live()
    there = others if arm.bandit.kind == BanditKind.CHOICE else others.filter(arm=target)
    there = there.filter(observation__in=own.values("observation"))
    taken = set(there.values_list("observation", flat=True))
    entries = list(own)
    moving = [entry for entry in entries if entry.observation not in taken]
    return moving, [entry for entry in entries if entry.observation in taken]


def _counted(moving: Sequence[LedgerEntry], doubles: Sequence[LedgerEntry]) -> Merged:
    return Merged(moved=_rewards(moving), kept=_rewards(doubles))


def _rewards(entries: Iterable[LedgerEntry]) -> int:
    return sum(not entry.is_abstention for entry in entries)


def _live(arm: Arm) -> LedgerEntryQuerySet:
    rows = LedgerEntry.objects.filter(bandit=arm.bandit_id, arm=arm).live()
    return rows.select_related("bandit", "arm", "grader").order_by("pk")


def _live_by(into: Arm, settlement: str) -> list[LedgerEntry]:
    return list(_live(into).filter(settlement=settlement))


def _reversed_by(arm: Arm, settlement: str) -> list[tuple[LedgerEntry, int]]:
    """The arm's latest entry of each observation whose last revision is this merge's reverse, with the reverse's id."""
    own = LedgerEntry.objects.filter(bandit=arm.bandit_id, arm=arm)
    last = dict(own.order_by().values_list("observation").annotate(last=Max("revision")))
    reverses = own.filter(op=ledger.REVERSE, settlement=settlement).values_list("observation", "revision", "pk")
    at = {observation: pk for observation, revision, pk in reverses if last[observation] == revision}
    applies = own.filter(op=ledger.APPLY, observation__in=own.filter(settlement=settlement).values("observation"))
    rows = applies.select_related("bandit", "arm", "grader").order_by("pk")
    return [
        (entry, at[entry.observation])
        for entry in rows
        if entry.observation in at and entry.revision == last[entry.observation]
    ]


def _changed_since(entry: LedgerEntry, at: int, settlement: str) -> bool:
    """Whether the observation's reward, which is no longer where the merge put it, was changed after the row `at`.

    It was if the merge moved it to the other arm: something has reversed it there since. If the other arm had a reward
    of its own, it was unless all later rows cancel out, as moves between arms do.
    """
    rows = LedgerEntry.objects.filter(bandit=entry.bandit_id, observation=entry.observation, pk__gt=at)
    if rows.filter(op=ledger.APPLY, settlement=settlement).exists():
        return True
    balance: Counter[tuple[object, ...]] = Counter()
    for op, *reward in rows.values_list("op", *REWARD):
        balance[tuple(reward)] += 1 if op == ledger.APPLY else -1
    return any(balance.values())


def _last_merge(arm: Arm) -> Arm | None:
    event = arm.events.filter(act=Act.MERGED).select_related("other").first()
    return None if event is None else event.other
