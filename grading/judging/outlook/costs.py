"""The judge's costs, from the attempts. A cost that no reply states is unknown, never 0."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, FloatField, Q, QuerySet, Sum, Value

from grading.judging.allowance import prices
from grading.models import JudgeAttempt, JudgeKeyTest
from grading.models.judging import AttemptOutcome
from grading.vocabulary import Reason

MILLION = 1_000_000
TOKENS = {
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cache_read_tokens": "tokens from the cache",
    "cache_write_tokens": "tokens to the cache",
}
# Below this share of known costs, a sum is only a lower bound.
ENOUGH_KNOWN = 0.8
# Attempts that may have been charged. Without a cost, it is unknown.
REPLIED = (AttemptOutcome.GRADED, AttemptOutcome.REFUSED, AttemptOutcome.INVALID, AttemptOutcome.RUNNING)
UNKNOWN_COST = Q(cost_usd=None) & (Q(estimated_usd__isnull=False) | Q(outcome__in=REPLIED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """The cost of some attempts. `usd` is the sum of the known costs, None if none is known.

    `known` counts the charged attempts whose cost is known, `unknown_cost` the others, and `expected_usd` is the
    estimated cost of these others. `read` and `written` are input and output tokens.
    """

    attempts: int = 0
    known: int = 0
    unknown_cost: int = 0
    usd: float | None = None
    expected_usd: float = 0.0
    read: int = 0
    written: int = 0

    @property
    def coverage(self) -> float | None:
        """The share in [0, 1] of charged attempts whose cost is known; None if none was charged."""
        charged = self.known + self.unknown_cost
        return self.known / charged if charged else None

    @property
    def free(self) -> int:
        """Attempts that cost nothing: rejected, or never sent."""
        return self.attempts - self.known - self.unknown_cost

    @property
    def is_least(self) -> bool:
        """Whether `usd` is only a lower bound, because too few costs are known."""
        return self.coverage is not None and self.coverage < ENOUGH_KNOWN

    @property
    def each_usd(self) -> float | None:
        """The mean of the known costs."""
        return self.usd / self.known if self.usd is not None and self.known else None

    @property
    def committed_usd(self) -> float:
        """What counts against a budget: the known costs, and estimates for the unknown costs."""
        return (self.usd or 0.0) + self.expected_usd

    def __add__(self, other: "Spend") -> "Spend":
        costs = [spend.usd for spend in (self, other) if spend.usd is not None]
        return Spend(
            attempts=self.attempts + other.attempts,
            known=self.known + other.known,
            unknown_cost=self.unknown_cost + other.unknown_cost,
            usd=sum(costs) if costs else None,
            expected_usd=self.expected_usd + other.expected_usd,
            read=self.read + other.read,
            written=self.written + other.written,
        )


# Pairs of a key (the values of some columns) and its spend.
Spends = Sequence[tuple[tuple[Any, ...], Spend]]
FIGURES = {
    "attempts": Count("pk"),
    "known": Count("cost_usd"),
    "unknown_cost": Count("pk", filter=UNKNOWN_COST),
    "usd": Sum("cost_usd"),
    "expected_usd": Sum("estimated_usd", filter=UNKNOWN_COST),
    "read": Sum("input_tokens"),
    "written": Sum("output_tokens"),
}

# A test without a cost or an error may have cost something.
TEST_FIGURES = {
    **FIGURES,
    "unknown_cost": Count("pk", filter=Q(cost_usd=None, reason=Reason.NONE)),
    "expected_usd": Sum(Value(0.0), output_field=FloatField()),
}


def spend(attempts: QuerySet[JudgeAttempt]) -> Spend:
    """The spend of all attempts together, in one query."""
    return _spend(attempts.aggregate(**FIGURES))


def spend_by(attempts: QuerySet[JudgeAttempt], **keys: Any) -> list[tuple[tuple[Any, ...], Spend]]:
    """The spend for each combination of `keys` (expressions by name), sorted by the keys. One query."""
    rows: Any = attempts.order_by().values(**keys).annotate(**FIGURES).order_by(*keys)
    return [(tuple(row[key] for key in keys), _spend(row)) for row in rows]


def sum_by(spends: Spends, *places: int) -> list[tuple[tuple[Any, ...], Spend]]:
    """Group spends by the values at these places of their keys, and sum each group. Sorted by the shorter keys."""
    sums: dict[tuple[Any, ...], Spend] = {}
    for key, spend in spends:
        group = tuple(key[place] for place in places)
        sums[group] = sums.get(group, Spend()) + spend
    return sorted(sums.items(), key=lambda group_and_sum: group_and_sum[0])


def tests_since(moment: dt.datetime) -> QuerySet[JudgeKeyTest]:
    """The calls since then that judged no session (tests of keys, and canaries), which cost money too."""
    return JudgeKeyTest.objects.filter(started_at__gte=moment)


def spend_on_tests(tests: QuerySet[JudgeKeyTest]) -> Spend:
    """The spend on all these tests together, in one query."""
    return _spend(tests.order_by().aggregate(**TEST_FIGURES))


def spend_on_tests_by(tests: QuerySet[JudgeKeyTest], **keys: Any) -> list[tuple[tuple[Any, ...], Spend]]:
    """The spend on tests for each combination of `keys` (expressions by name), sorted by the keys. One query."""
    rows: Any = tests.order_by().values(**keys).annotate(**TEST_FIGURES).order_by(*keys)
    return [(tuple(row[key] for key in keys), _spend(row)) for row in rows]


def _spend(row: Mapping[str, Any]) -> Spend:
    """The spend in an aggregated row, in which sums over no rows are NULL."""
    figures = {name: row[name] or 0 for name in FIGURES if name != "usd"}
    return Spend(**figures, usd=row["usd"])


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTerm:
    """One term of a sum: tokens at a price in dollars per million."""

    label: str
    tokens: int
    price: float

    @property
    def usd(self) -> float:
        return self.tokens * self.price / MILLION


def terms(attempts: QuerySet[JudgeAttempt]) -> list[CostTerm]:
    """The terms of the known costs: tokens by model, kind and batch, times today's prices."""
    sums = {field: Sum(field) for field in TOKENS}
    paid = attempts.filter(cost_usd__isnull=False).order_by()
    rows: Any = paid.values("model", batched=Q(batch__isnull=False)).annotate(**sums).order_by("model", "batched")
    terms: list[CostTerm] = []
    for row in rows:
        for field, label in TOKENS.items():
            if row[field]:
                one_million: Any = {field: MILLION}
                price_per_million = prices.cost(row["model"], **one_million, batch=row["batched"])
                name = f"{label} in batches" if row["batched"] else label
                terms.append(CostTerm(label=name, tokens=row[field], price=price_per_million))
    return terms


def since(moment: dt.datetime) -> QuerySet[JudgeAttempt]:
    """The attempts that started then or later."""
    return JudgeAttempt.objects.filter(started_at__gte=moment)


def per_verdict(attempts: QuerySet[JudgeAttempt]) -> tuple[float | None, dict[str, float]]:
    """The mean cost of a verdict in dollars (None if no cost is known), and its mean use of each dimension of the rate
    limits (empty if unknown). One query.
    """
    counted = Q(input_tokens__isnull=False, output_tokens__isnull=False)
    sums = attempts.filter(outcome=AttemptOutcome.GRADED).aggregate(
        usd=Sum("cost_usd"),
        known=Count("cost_usd"),
        n=Count("pk", filter=counted),
        read=Sum("input_tokens", filter=counted),
        written=Sum("output_tokens", filter=counted),
    )
    each_usd = sums["usd"] / sums["known"] if sums["known"] else None
    if not sums["n"]:
        return each_usd, {}
    read = sums["read"] / sums["n"]
    written = sums["written"] / sums["n"]
    return each_usd, {"requests": 1.0, "input_tokens": read, "output_tokens": written, "tokens": read + written}
