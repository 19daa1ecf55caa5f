"""A bandit's rewards as columns of integers, whether read from its buckets or added up from the ledger."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from bandit.core.table import ABSTAINED, MOMENTS, Flags, Ints, RewardRows, RowKind, distinct
from bandit.ledger import GraderKey
from bandit.models import SUMS, Arm, Bandit, Bucket, Grader

KEY = ("arm_id", "grader_id", "effective_day")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewardSums:
    """A bandit's rewards by arm, grader and the day's ordinal: `keys` (m, 3), and `sums` (m, 6) the SUMS of a bucket.

    `arms` are names and `graders` rows by their keys.
    """

    keys: Ints
    sums: Ints
    arms: Mapping[int, str]
    graders: Mapping[int, Grader]

    @classmethod
    def of(cls, bandit: Bandit, values: Iterable[Sequence[Any]]) -> "RewardSums":
        """From tuples of the KEY and the SUMS. Three queries, the one for the values included.

        Sums may be decimals: PostgreSQL adds up 64-bit integers to one.
        """
        numbers = [(arm, grader, day.toordinal(), *map(int, sums)) for arm, grader, day, *sums in values]
        columns = np.array(numbers, dtype=np.int64).reshape(len(numbers), len(KEY) + len(SUMS))
        keys, sums = columns[:, : len(KEY)], columns[:, len(KEY) :]
        graders = Grader.objects.in_bulk(set(keys[:, 1].tolist()))
        return cls(keys=keys, sums=sums, arms=arms_of(bandit), graders=graders)

    def rows(self, *, with_abstentions: bool) -> RewardRows:
        """What a policy reads."""
        keys, sums = self.keys, self.sums[:, : len(MOMENTS)]
        if not with_abstentions:
            is_reward = ~self._is_abstention
            keys, sums = keys[is_reward], sums[is_reward]
        size = 1 + max(self.graders, default=0)
        pairs, pair = distinct(keys[:, 0] * size + keys[:, 1])
        numbers: dict[RowKind, int] = {}
        kinds = [
            numbers.setdefault(kind_of(self.arms[arm], self.graders[grader]), len(numbers))
            for arm, grader in (divmod(each, size) for each in pairs.tolist())
        ]
        return RewardRows(tuple(numbers), np.array(kinds, dtype=np.int64)[pair], keys[:, 2], sums)

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
        arms, position = np.unique(self.keys[:, 0], return_inverse=True)
        totals = np.zeros(len(arms), dtype=np.int64)
        np.add.at(totals, position, counts)
        return {self.arms[arm]: n for arm, n in zip(arms.tolist(), totals.tolist(), strict=True) if n}


def read(bandit: Bandit, days: tuple[date, date]) -> RewardSums:
    """The buckets of these days, the last included, that hold anything. Three queries."""
    buckets = Bucket.objects.filter(bandit=bandit, effective_day__range=days, n__gt=0).order_by()
    return RewardSums.of(bandit, buckets.values_list(*KEY, *SUMS))


def kind_of(arm: str, grader: Grader | GraderKey) -> RowKind:
    """What a reward of this arm and grader is named by in rows."""
    return RowKind(
        arm=arm,
        source=grader.source,
        stratum=grader.stratum,
        context=grader.context,
        salience=grader.salience,
        judge=judge_of(grader.model, grader.route, grader.rubric),
        version=grader.version,
        view=grader.view,
        witness=grader.witness,
        standing=grader.standing,
        agent=grader.agent,
    )


def judge_of(model: str, route: str, rubric: str) -> str:
    """A name for exactly this judge; "" where none is told."""
    return f"{model} {route} {rubric}".strip()


def arms_of(bandit: Bandit) -> dict[int, str]:
    """The names of the bandit's arms by their keys. One query."""
    return dict(Arm.objects.filter(bandit=bandit).order_by().values_list("pk", "name"))
