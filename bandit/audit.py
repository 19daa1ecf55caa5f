"""The buckets are the ledger, added up: compare the two, or rebuild the one from the other (N2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from django.db import transaction
from django.db.models import BigIntegerField, Case, F, Sum, Value, When
from django.db.models.functions import Cast

from bandit.models import Arm, Bandit, Bucket, Grader, LedgerEntry

Key = tuple[int, int, date]
Sums = tuple[int, int, int]
NOTHING: Sums = (0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A bucket that is not what the ledger says: `expected` and `found` are (n, s, q)."""

    arm: Arm
    grader: Grader
    day: date
    expected: Sums
    found: Sums

    def __str__(self) -> str:
        where = f"{self.arm.bandit.name}/{self.arm.name}, {self.grader}, {self.day}"
        return f"{where}: the ledger says n, s, q = {self.expected}, the bucket says {self.found}"


def fold(bandit: str) -> dict[Key, Sums]:
    """(arm id, grader id, effective day) → (n, s, q), from the ledger alone; sums of nothing are left out."""
    arms = Bandit.objects.named(bandit).arms.all()
    return {(arm.pk, *key): sums for arm in arms for key, sums in _ledger_sums(arm).items()}


def audit(arms: Iterable[Arm] | None = None) -> list[Difference]:
    """Every bucket that differs from the ledger's sum, of these arms or of all. Safe while rewards come in."""
    chosen = Arm.objects.select_related("bandit").order_by("bandit", "name") if arms is None else arms
    return [difference for arm in chosen for difference in _differences(arm)]


def rebuild(bandit: str) -> int:
    """Throw the buckets away and add them up from the ledger again. Returns how many there are now."""
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        Bucket.objects.filter(bandit=row).delete()
        made = [
            Bucket(bandit=row, arm_id=arm, grader_id=grader, effective_day=day, n=n, s=s, q=q)
            for (arm, grader, day), (n, s, q) in fold(bandit).items()
        ]
        Bucket.objects.bulk_create(made, batch_size=500)
    return len(made)


def _differences(arm: Arm) -> list[Difference]:
    with transaction.atomic():
        Bandit.objects.locked(arm.bandit.name)
        expected, found = _ledger_sums(arm), _bucket_sums(arm)
    wrong = [key for key in sorted(expected.keys() | found.keys()) if expected.get(key) != found.get(key)]
    graders: Mapping[int, Grader] = Grader.objects.in_bulk({grader for grader, _ in wrong})
    return [
        Difference(
            arm=arm,
            grader=graders[grader],
            day=day,
            expected=expected.get((grader, day), NOTHING),
            found=found.get((grader, day), NOTHING),
        )
        for grader, day in wrong
    ]


def _ledger_sums(arm: Arm) -> dict[tuple[int, date], Sums]:
    sign = Case(When(op=LedgerEntry.Op.APPLY, then=Value(1)), default=Value(-1), output_field=BigIntegerField())
    value = Cast("value_micro", BigIntegerField())
    rows = (
        LedgerEntry.objects.filter(bandit=arm.bandit_id, arm=arm)
        .values_list("grader", "effective_day")
        .annotate(total_n=Sum(sign), total_s=Sum(sign * value), total_q=Sum(sign * value * value))
        .order_by()
    )
    return _sums(rows)


def _bucket_sums(arm: Arm) -> dict[tuple[int, date], Sums]:
    rows = Bucket.objects.filter(bandit=arm.bandit_id, arm=arm)
    return _sums(rows.values_list("grader", "effective_day", F("n"), F("s"), F("q")))


def _sums(rows: Iterable[tuple[int, date, int, int, int]]) -> dict[tuple[int, date], Sums]:
    sums = {(grader, day): (int(n), int(s), int(q)) for grader, day, n, s, q in rows}
    return {key: values for key, values in sums.items() if values != NOTHING}
