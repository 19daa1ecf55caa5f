"""Audits of the ledger: buckets are its sums, and an observation counts once in a bandit that chooses one arm.

An audit hardly blocks writers. Ledger rows never change, so nearly all of them are summed without a lock. Each bandit
is then locked while the few rows recorded since are added and its buckets compared.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from operator import add

from django.db import transaction
from django.db.models import Count, Max, Sum

from bandit import ledger
from bandit.buckets import entry_sign, signed_sums
from bandit.models import SUMS, Arm, Bandit, BanditKind, Bucket, Erasure, Grader, LedgerEntry, LedgerEntryQuerySet

# The ids of arm and grader, and the effective day.
Key = tuple[int, int, date]
Sums = tuple[int, ...]
SumsByBandit = dict[int, dict[Key, Sums]]
Step = Callable[[int], object]
KEY = ("arm", "grader", "effective_day")
NOTHING: Sums = (0,) * len(SUMS)
# The most ledger rows that one query sums, and the most buckets that one writes.
SUMMED_ROWS, WRITTEN_ROWS = 200_000, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketMismatch:
    """A bucket that differs from the ledger: the ledger's `expected` SUMS, and those that are `stored`."""

    arm: Arm
    grader: Grader
    day: date
    expected: Sums
    stored: Sums

    def __str__(self) -> str:
        where = f"{self.arm.bandit.name}/{self.arm.name}, {self.grader}, {self.day}"
        return f"{where}: the ledger says {', '.join(SUMS)} = {self.expected}, the bucket says {self.stored}"

    def lines(self) -> Iterator[str]:
        """A line for each column that differs, with both values."""
        bucket = f"bucket {self.arm.bandit.name}/{self.arm.name}, {self.grader}, {self.day}"
        for name, stored, computed in zip(SUMS, self.stored, self.expected, strict=True):
            if stored != computed:
                yield f"{bucket}, {name}: stored {stored}, computed {computed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The number of ledger rows summed, and of buckets that they should make; the stored buckets that differ."""

    rows: int
    buckets: int
    differences: tuple[BucketMismatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubledReward:
    """An observation with live rewards on several arms of a bandit that chooses one arm, the latest last."""

    bandit: Bandit
    observation: str
    entries: tuple[LedgerEntry, ...]

    def __str__(self) -> str:
        arms = ", ".join(f"{entry.arm.name} {entry.value:.3f}" for entry in self.entries)
        return f"{self.bandit.name}: {self.observation} has {len(self.entries)} live rewards: {arms}"

    def lines(self) -> Iterator[str]:
        """One line: the live rewards, and the one that counts."""
        latest = self.entries[-1]
        yield f"{self}; computed 1: {latest.arm.name} {latest.value:.3f}"


def doubled() -> list[DoubledReward]:
    """Every observation with several live rewards in a bandit that chooses one arm. The database refuses new ones."""
    doubled_rewards: list[DoubledReward] = []
    for bandit in _choice_bandits():
        doubled_rewards += _doubled(bandit)
    return doubled_rewards


def undouble() -> int:
    """Reverse all but the latest live reward of each `doubled` observation. Returns how many were reversed."""
    reversed_count = 0
    for bandit in _choice_bandits():
        with transaction.atomic():
            locked = Bandit.objects.locked(bandit.name)
            extra = [entry for each in _doubled(locked) for entry in each.entries[:-1]]
            ledger.rewrite(locked, reversing=extra, applying=[], settlement="replay")
            reversed_count += len(extra)
    return reversed_count


def _choice_bandits() -> Iterable[Bandit]:
    return Bandit.objects.filter(kind=BanditKind.CHOICE).order_by("name")


def _doubled(bandit: Bandit) -> Iterator[DoubledReward]:
    """The bandit's observations with several live rewards, in the order of their names."""
    entries = LedgerEntry.objects.filter(bandit=bandit).order_by()
    live = entries.values_list("observation").annotate(live=Sum(entry_sign())).filter(live__gt=1)
    rewards = ledger.live_entries(bandit.name, [observation for observation, _live in live])
    for name, own in groupby(rewards.order_by("observation", "pk"), key=lambda entry: entry.observation):
        yield DoubledReward(bandit=bandit, observation=name, entries=tuple(own))


def audit() -> list[BucketMismatch]:
    """Every bucket that differs from the ledger."""
    return list(replay().differences)


def replay(*, write: bool = False, step: Step = lambda _rows: None) -> Replay:
    """Sum the whole ledger and compare it with the buckets; with `write`, replace the buckets that differ.

    `step` is called with each number of rows summed. Safe while rewards come in; starts again if an erasure deletes
    rows meanwhile. One pass over the ledger: some two seconds for a million rows.
    """
    last_erasure, last_entry = _last_pk(Erasure), _last_pk(LedgerEntry)
    bandits = list(Bandit.objects.order_by("name"))
    for bandit in bandits:
        with transaction.atomic():
            Bandit.objects.locked(bandit.name)  # once we hold the lock, all rows up to `last_entry` are committed
    sums: SumsByBandit = {bandit.pk: {} for bandit in bandits}
    rows = 0
    for start in range(0, last_entry, SUMMED_ROWS):
        end = min(start + SUMMED_ROWS, last_entry)
        rows += _add_up(LedgerEntry.objects.filter(pk__gt=start, pk__lte=end), sums, step)
    differences: list[BucketMismatch] = []
    buckets, was_erased = 0, False
    for bandit in bandits:
        with transaction.atomic():
            Bandit.objects.locked(bandit.name)
            was_erased = _last_pk(Erasure) != last_erasure
            if was_erased:
                break
            rows += _add_up(LedgerEntry.objects.filter(pk__gt=last_entry, bandit=bandit), sums, step)
            expected = sums.pop(bandit.pk)
            differences += _compare(bandit, expected, write=write)
            buckets += sum(bucket != NOTHING for bucket in expected.values())
    if was_erased:
        repaired = differences if write else ()  # without `write`, the second pass finds them again
        second = replay(write=write, step=step)
        return replace(second, differences=(*repaired, *second.differences))
    return Replay(rows=rows, buckets=buckets, differences=tuple(differences))


def _last_pk(model: type[LedgerEntry | Erasure]) -> int:
    return model.objects.aggregate(last=Max("pk"))["last"] or 0


def _add_up(entries: LedgerEntryQuerySet, sums: SumsByBandit, step: Step) -> int:
    """Add these rows to `sums` and call `step` with their number. Returns that number."""
    total = 0
    grouped = entries.values_list("bandit", *KEY).annotate(rows=Count("pk"), **signed_sums()).order_by()
    for bandit, arm, grader, day, rows, *moments in grouped.iterator():
        sums_of_bandit, key = sums.setdefault(bandit, {}), (arm, grader, day)
        sums_of_bandit[key] = tuple(map(add, sums_of_bandit.get(key, NOTHING), map(int, moments)))
        total += rows
    step(total)
    return total


def _compare(bandit: Bandit, expected: dict[Key, Sums], *, write: bool) -> list[BucketMismatch]:
    """The bandit's buckets that differ from the `expected` ones, as they were; with `write`, they are replaced.

    A missing bucket counts as one whose sums are all 0. The caller has locked the bandit.
    """
    ids: dict[Key, int] = {}
    stored: dict[Key, Sums] = {}
    for pk, arm, grader, day, *moments in Bucket.objects.filter(bandit=bandit).values_list("pk", *KEY, *SUMS):
        key = (arm, grader, day)
        ids[key], stored[key] = pk, tuple(moments)
    keys = sorted(expected.keys() | stored.keys())
    wrong = [key for key in keys if expected.get(key, NOTHING) != stored.get(key, NOTHING)]
    if write and wrong:
        wrong_ids = [ids[key] for key in wrong if key in ids]
        for at in range(0, len(wrong_ids), WRITTEN_ROWS):
            Bucket.objects.filter(pk__in=wrong_ids[at : at + WRITTEN_ROWS]).delete()
        new_buckets = [
            Bucket(
                bandit=bandit,
                arm_id=arm,
                grader_id=grader,
                effective_day=day,
                **dict(zip(SUMS, expected[arm, grader, day], strict=True)),
            )
            for arm, grader, day in wrong
            if expected.get((arm, grader, day), NOTHING) != NOTHING
        ]
        Bucket.objects.bulk_create(new_buckets, batch_size=WRITTEN_ROWS)
        ledger.touch(bandit)
    arms = Arm.objects.select_related("bandit").in_bulk({arm for arm, _, _ in wrong})
    graders = Grader.objects.in_bulk({grader for _, grader, _ in wrong})
    return [
        BucketMismatch(
            arm=arms[arm],
            grader=graders[grader],
            day=day,
            expected=expected.get((arm, grader, day), NOTHING),
            stored=stored.get((arm, grader, day), NOTHING),
        )
        for arm, grader, day in wrong
    ]


def fingerprint(using: str = "default") -> str:
    """SHA-256 over every row of the ledger, in order. Independent of the kind of database."""
    rows, columns = LedgerEntry.objects.using(using).order_by("pk").columns()
    digest = hashlib.sha256()
    for row in rows.values_list(*columns).iterator(chunk_size=5000):
        digest.update(repr([str(value) for value in row]).encode())
    return digest.hexdigest()
