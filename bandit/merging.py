"""Making one arm another name of another, and undoing that: rewards move as reverses and applies, and back.

After a part every bucket is bit for bit what it was before the merge, but for rewards that were changed in between.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Max

from bandit import ledger
from bandit.arms import Act, done, in_turn
from bandit.core.posterior import Outlook
from bandit.core.posterior import outlook as outlook_on
from bandit.models import Arm, BanditKind, LedgerEntry, LedgerEntryQuerySet
from bandit.reading import evidence_of, outlook, parts_of, site_day
from bandit.whatif import row_of

MERGE = "merge:"
REWARD = ("value_micro", "cost_micro", "grader", "effective_day")


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """`moved` rewards went to the other arm; `kept` observations had one there already, which stays as it is.

    Abstentions move along and are not counted.
    """

    moved: int
    kept: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmerged:
    """`moved` rewards came back. Of the observations in `again` the reward was changed since: settle them anew."""

    moved: int
    again: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MergePreview:
    """What a merge would do, before it does it."""

    merged: Merged
    before: Outlook
    after: Outlook


def merge(arm: Arm, into: Arm, *, by: str, why: str = "") -> Merged:
    """Make `arm` another name of `into`: its live rewards move there, with value, day, grader and cost as they are.

    An observation that has a reward on both, as lessons may, keeps that of `into`, and the other is only reversed.
    Arms that were merged into `arm` go along. Raises ValueError for arms of two bandits, one arm, or a merged one.
    """
    with in_turn(arm) as held:
        target = _mergeable(held, into)
        moving, doubles = _to_move(held, target)
        settlement = _settlement(held)
        given = [ledger.copy_to(target, entry, settlement) for entry in moving]
        ledger.rewrite(held.bandit, undone=[*moving, *doubles], given=given, settlement=settlement)
        held.merged.update(merged_into=target)
        done(held, Act.MERGED, other=target, by=by, why=why, merged_into=target)
    return _counted(moving, doubles)


def unmerge(arm: Arm, *, by: str, why: str = "") -> Unmerged:
    """Undo the arm's merge: the rewards that moved with it come back as they were, but for those changed since.

    Merges are undone in the order opposite to theirs. Raises ValueError for an arm that is not merged, or that another
    one's merge took along since.
    """
    with in_turn(arm) as held:
        into, settlement = held.merged_into, _settlement(held)
        if into is None:
            raise ValueError(f"{held.name} is not merged into another arm; nothing was changed")
        last = _last_merge(held)
        if last is not None and last != into:
            raise ValueError(
                f"{held.name} came to {into.name} along with {last.name}, which was merged later; part that first"
            )
        moved = {entry.observation for entry in _live_by(into, settlement)}
        past = _reversed_by(held, settlement)
        # Where one arm was chosen an observation has one reward: what the merge did not move has it elsewhere, or none.
        stays = held.bandit.kind != BanditKind.CHOICE
        back = [
            entry
            for entry, at in past
            if entry.observation in moved or (stays and not _changed_since(entry, at, settlement))
        ]
        given = [ledger.copy_to(held, entry, entry.settlement) for entry in back]
        ledger.rewrite(held.bandit, undone=_live_by(into, settlement), given=given, settlement=settlement)
        # The arms that had been merged into this one before go back with it.
        came_with = [each.pk for each in into.merged.exclude(pk=held.pk) if _last_merge(each) == held]
        Arm.objects.filter(pk__in=came_with).update(merged_into=held)
        done(held, Act.PARTED, other=into, by=by, why=why, merged_into=None)
    restored = {entry.observation for entry in back}
    return Unmerged(moved=_rewards(back), again=tuple(e.observation for e, _ in past if e.observation not in restored))


def preview_merge(arm: Arm, into: Arm, now: datetime) -> MergePreview:
    """What merging would do. Nothing is saved. Raises ValueError as `merge`."""
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
    """What the ledger's rows of this arm's merge say they came from."""
    return f"{MERGE}{arm.pk}"


def _mergeable(arm: Arm, into: Arm) -> Arm:
    """`into` as it is now, if `arm` may be merged into it."""
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
    """The arm's live entries: those to move, and those of observations that the target has a live one of; or, where
    one arm was chosen, any other arm, as a site of before may have it.
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
    """The arm's latest entry of each observation, where this merge reversed it, and the id of the reverse."""
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

    One that the merge gave the other arm was: whatever holds it there now, that is to be settled anew. One that the
    other arm had as well stayed, unless more was recorded since than moves between arms, which come to nothing.
    """
    rows = LedgerEntry.objects.filter(bandit=entry.bandit_id, observation=entry.observation, pk__gt=at)
    if rows.filter(op=ledger.APPLY, settlement=settlement).exists():
        return True
    came: Counter[tuple[object, ...]] = Counter()
    for op, *reward in rows.values_list("op", *REWARD):
        came[tuple(reward)] += 1 if op == ledger.APPLY else -1
    return any(came.values())


def _last_merge(arm: Arm) -> Arm | None:
    event = arm.events.filter(act=Act.MERGED).select_related("other").first()
    return None if event is None else event.other
