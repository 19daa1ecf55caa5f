"""A bandit's rewards as columns of integers, read from its buckets or summed from the ledger."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
from django.db.models import BigIntegerField, Case, Sum, Value, When
from django.db.models.functions import Cast, Coalesce

from bandit.core.table import ABSTAINED, MOMENTS, Flags, Ints, RewardRows, RowKind, distinct
from bandit.ledger import GraderKey
from bandit.models import PRODUCTIVE, SUMS, Arm, Bandit, Bucket, Grader, LedgerEntry

KEY = ("arm_id", "grader_id", "effective_day")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewardSums:
    """A bandit's rewards by arm, grader and day: `keys` (m, 3), with the day's ordinal, and `sums` (m, 6) as in SUMS.

    `arms` maps the arms' keys to their names, `graders` the graders' keys to their rows.
    """

    keys: Ints
    sums: Ints
    arms: Mapping[int, str]
    graders: Mapping[int, Grader]

    @classmethod
    def from_values(cls, bandit: Bandit, values: Iterable[Sequence[Any]]) -> "RewardSums":
        """Build it from a tuple (*KEY, *SUMS) for each arm, grader and day of the bandit. Two queries.

        Sums may be decimals: PostgreSQL returns one for a sum of 64-bit integers.
        """
        numbers = [(arm, grader, day.toordinal(), *map(int, sums)) for arm, grader, day, *sums in values]
        columns = np.array(numbers, dtype=np.int64).reshape(len(numbers), len(KEY) + len(SUMS))
        keys, sums = columns[:, : len(KEY)], columns[:, len(KEY) :]
        arms = dict(Arm.objects.filter(bandit=bandit).order_by().values_list("pk", "name"))
        graders = Grader.objects.in_bulk(set(keys[:, 1].tolist()))
        return cls(keys=keys, sums=sums, arms=arms, graders=graders)

    def rows(self, *, with_abstentions: bool) -> RewardRows:
        """The rows that a policy reads: one for each of `keys`, with its kind and MOMENTS."""
        keys, sums = self.keys, self.sums[:, : len(MOMENTS)]
        if not with_abstentions:
            is_reward = ~self._is_abstention
            keys, sums = keys[is_reward], sums[is_reward]
        # One code for each pair of arm and grader, so that a pair's kind is computed once. Several may have one kind.
        size = 1 + max(self.graders, default=0)
        codes, code_index = distinct(keys[:, 0] * size + keys[:, 1])
        number_by_kind: dict[RowKind, int] = {}
        kind_numbers = []  # of the kind of each code
        for code in codes.tolist():
            arm, grader = divmod(code, size)
            kind = kind_of(self.arms[arm], self.graders[grader])
            kind_numbers.append(number_by_kind.setdefault(kind, len(number_by_kind)))
        kind_index = np.array(kind_numbers, dtype=np.int64)[code_index]
        return RewardRows(tuple(number_by_kind), kind_index, keys[:, 2], sums)

    @property
    def productive(self) -> dict[str, int]:
        """How many productive rewards each arm has; arms without any are left out."""
        return self._by_arm(self.sums[:, SUMS.index("productive")])

    @property
    def abstentions(self) -> dict[str, int]:
        """How many observations of each arm could not be graded; arms without any are left out."""
        return self._by_arm(self.sums[:, SUMS.index("n")] * self._is_abstention)

    @property
    def _is_abstention(self) -> Flags:
        graders = [pk for pk, grader in self.graders.items() if grader.source == ABSTAINED]
        return np.isin(self.keys[:, 1], graders)

    def _by_arm(self, counts: Ints) -> dict[str, int]:
        """The sum of `counts`, one for each of `keys`, for each arm, by its name; arms with a sum of 0 are left out."""
        arms, position = np.unique(self.keys[:, 0], return_inverse=True)
        totals = np.zeros(len(arms), dtype=np.int64)
        np.add.at(totals, position, counts)
        return {self.arms[arm]: n for arm, n in zip(arms.tolist(), totals.tolist(), strict=True) if n}


def read_sums(bandit: Bandit, days: tuple[date, date], known_by: datetime | None = None) -> RewardSums:
    """The sums over these days, the last included: from the buckets, or from ledger entries recorded until `known_by`.

    Three queries.
    """
    if known_by is None:
        buckets = Bucket.objects.filter(bandit=bandit, effective_day__range=days, n__gt=0).order_by()
        return RewardSums.from_values(bandit, buckets.values_list(*KEY, *SUMS))
    entries = LedgerEntry.objects.filter(bandit=bandit, effective_day__range=days, recorded_at__lte=known_by)
    return RewardSums.from_values(bandit, entries.order_by().values_list(*KEY).annotate(**signed_sums()))


def entry_sign() -> Case:
    """1 for an apply and −1 for a reverse; its sum over ledger entries is the number of live rewards."""
    return Case(When(op=LedgerEntry.Op.APPLY, then=Value(1)), default=Value(-1), output_field=BigIntegerField())


def signed_sums() -> dict[str, Sum]:
    """The SUMS as aggregates of ledger entries, applies minus reverses, under the names "total_n", "total_s", …."""
    sign = entry_sign()
    value, cost = Cast("value_micro", BigIntegerField()), Coalesce("cost_micro", Value(0))
    costed = Case(When(cost_micro=None, then=Value(0)), default=sign, output_field=BigIntegerField())
    productive = Case(When(value_micro__gt=PRODUCTIVE, then=sign), default=0, output_field=BigIntegerField())
    sums = (sign, sign * value, sign * value * value, sign * cost, costed, productive)  # in the order of SUMS
    return {f"total_{name}": Sum(each) for name, each in zip(SUMS, sums, strict=True)}


def kind_of(arm: str, grader: Grader | GraderKey) -> RowKind:
    """The kind of the rows of this arm and grader."""
    return RowKind(
        arm=arm,
        source=grader.source,
        stratum=grader.stratum,
        context=grader.context,
        salience=grader.salience,
        judge=f"{grader.model} {grader.route} {grader.rubric}".strip(),
        version=grader.version,
        view=grader.view,
        witness=grader.witness,
        standing=grader.standing,
        agent=grader.agent,
    )
