"""Buckets are sums of the ledger: recompute them, compare, and put right those that differ.

And an observation counts once where one arm was chosen.

Nobody is held up meanwhile. Rows of the ledger never change, so nearly all of it is added up without a lock; each
bandit's writers then wait while the few rows that came in since are added, and its buckets looked at.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from operator import add

from django.db import transaction
from django.db.models import Count, Max, Sum

from bandit import ledger
from bandit.models import SUMS, Arm, Bandit, BanditKind, Bucket, Erasure, Grader, LedgerEntry, LedgerEntryQuerySet
from bandit.reading import sign_of_entry, signed_sums

# (arm, grader) by id and the effective day, of one bandit or, with its id before them, of any.
Key = tuple[int, int, date]
Sums = tuple[int, ...]
Ledger = dict[int, dict[Key, Sums]]
Step = Callable[[int], object]
KEY = ("arm", "grader", "effective_day")
NOTHING: Sums = (0,) * len(SUMS)
# Rows of the ledger added up by one query, and buckets written by one.
ROWS, WRITTEN = 200_000, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketMismatch:
    """A bucket that is not what the ledger says: `expected` and `found` are its SUMS."""

    arm: Arm
    grader: Grader
    day: date
    expected: Sums
    found: Sums

    def __str__(self) -> str:
        where = f"{self.arm.bandit.name}/{self.arm.name}, {self.grader}, {self.day}"
        return f"{where}: the ledger says {', '.join(SUMS)} = {self.expected}, the bucket says {self.found}"

    def lines(self) -> Iterator[str]:
        """A line for each column that differs, with both values."""
        bucket = f"bucket {self.arm.bandit.name}/{self.arm.name}, {self.grader}, {self.day}"
        for name, stored, computed in zip(SUMS, self.found, self.expected, strict=True):
            if stored != computed:
                yield f"{bucket}, {name}: stored {stored}, computed {computed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How many rows of the ledger were added up, to how many buckets, and which of the stored ones are not these."""

    rows: int
    buckets: int
    differences: tuple[BucketMismatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubledReward:
    """An observation with live rewards of several arms of a bandit that chooses one; the latest of them last."""

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
    """Every observation that counts more than once where one arm was chosen. The database refuses new ones."""
    return [each for bandit in _choosing() for each in _doubled(bandit)]


def undouble() -> int:
    """Reverse all but the latest of the live rewards of each such observation; how many rewards those were."""
    undone = 0
    for bandit in _choosing():
        with transaction.atomic():
            held = Bandit.objects.locked(bandit.name)
            extra = [entry for each in _doubled(held) for entry in each.entries[:-1]]
            ledger.rewrite(held, undone=extra, given=[], settlement="replay")
            undone += len(extra)
    return undone


def _choosing() -> Iterable[Bandit]:
    return Bandit.objects.filter(kind=BanditKind.CHOICE).order_by("name")


def _doubled(bandit: Bandit) -> Iterator[DoubledReward]:
    entries = LedgerEntry.objects.filter(bandit=bandit).order_by()
    live = entries.values_list("observation").annotate(live=Sum(sign_of_entry())).filter(live__gt=1)
    held = ledger.live_entries_of(bandit.name, [observation for observation, _live in live])
    for name, own in groupby(held.order_by("observation", "pk"), key=lambda entry: entry.observation):
        yield DoubledReward(bandit=bandit, observation=name, entries=tuple(own))


def audit() -> list[BucketMismatch]:
    """Every bucket that differs from the ledger's sum."""
    return list(replay().differences)


def replay(*, write: bool = False, step: Step = lambda _rows: None) -> Replay:
    """Add the whole ledger up and compare with the buckets; with `write`, put the sums where they differ.

    `step` is told of each number of rows added up. Safe while rewards come in; starts again after an erasure, which
    alone takes rows away. One pass over the ledger: some two seconds for a million rows.
    """
    erasures, upto = _last(Erasure), _last(LedgerEntry)
    bandits = list(Bandit.objects.order_by("name"))
    for bandit in bandits:
        with transaction.atomic():
            Bandit.objects.locked(bandit.name)  # once it is ours, what was being written up to there has been
    sums: Ledger = {bandit.pk: {} for bandit in bandits}
    rows = 0
    for start in range(0, upto, ROWS):
        rows += _add_up(LedgerEntry.objects.filter(pk__gt=start, pk__lte=min(start + ROWS, upto)), sums, step)
    differences: list[BucketMismatch] = []
    buckets = 0
    for bandit in bandits:
        with transaction.atomic():
            Bandit.objects.locked(bandit.name)
            if _last(Erasure) != erasures:
                return replay(write=write, step=step)
            rows += _add_up(LedgerEntry.objects.filter(pk__gt=upto, bandit=bandit), sums, step)
            expected = sums.pop(bandit.pk)
            differences += _compare(bandit, expected, write=write)
            buckets += sum(bucket != NOTHING for bucket in expected.values())
    return Replay(rows=rows, buckets=buckets, differences=tuple(differences))


def _last(model: type[LedgerEntry | Erasure]) -> int:
    return model.objects.aggregate(last=Max("pk"))["last"] or 0


def _add_up(entries: LedgerEntryQuerySet, sums: Ledger, step: Step) -> int:
    """Add these rows to `sums`; how many they were."""
    total = 0
    grouped = entries.values_list("bandit", *KEY).annotate(rows=Count("pk"), **signed_sums()).order_by()
    for bandit, arm, grader, day, rows, *moments in grouped.iterator():
        held, key = sums.setdefault(bandit, {}), (arm, grader, day)
        held[key] = tuple(map(add, held.get(key, NOTHING), map(int, moments)))
        total += rows
    step(total)
    return total


def _compare(bandit: Bandit, expected: dict[Key, Sums], *, write: bool) -> list[BucketMismatch]:
    ids: dict[Key, int] = {}
    found: dict[Key, Sums] = {}
    for pk, arm, grader, day, *moments in Bucket.objects.filter(bandit=bandit).values_list("pk", *KEY, *SUMS):
        key = (arm, grader, day)
        ids[key], found[key] = pk, tuple(moments)
    keys = sorted(expected.keys() | found.keys())
    wrong = [key for key in keys if expected.get(key, NOTHING) != found.get(key, NOTHING)]
    if write and wrong:
        _put(bandit, {key: expected.get(key, NOTHING) for key in wrong}, [ids[key] for key in wrong if key in ids])
    arms = Arm.objects.select_related("bandit").in_bulk({arm for arm, _, _ in wrong})
    graders = Grader.objects.in_bulk({grader for _, grader, _ in wrong})
    return [
        BucketMismatch(
            arm=arms[key[0]],
            grader=graders[key[1]],
            day=key[2],
            expected=expected.get(key, NOTHING),
            found=found.get(key, NOTHING),
        )
        for key in wrong
    ]


def _put(bandit: Bandit, sums: dict[Key, Sums], instead_of: list[int]) -> None:
    """Buckets of these sums in place of the rows of these ids."""
    for at in range(0, len(instead_of), WRITTEN):
        Bucket.objects.filter(pk__in=instead_of[at : at + WRITTEN]).delete()
    made = [
        Bucket(
            bandit=bandit,
            arm_id=arm,
            grader_id=grader,
            effective_day=day,
            **dict(zip(SUMS, moments, strict=True)),
        )
        for (arm, grader, day), moments in sums.items()
        if moments != NOTHING
    ]
    Bucket.objects.bulk_create(made, batch_size=WRITTEN)
    ledger.touch(bandit)


def fingerprint(using: str = "default") -> str:
    """SHA-256 over every row of the ledger, in order: the same on either database where every value is the same."""
    rows, columns = LedgerEntry.objects.using(using).order_by("pk").columns()
    digest = hashlib.sha256()
    for row in rows.values_list(*columns).iterator(chunk_size=5000):
        digest.update(repr([str(value) for value in row]).encode())
    return digest.hexdigest()
