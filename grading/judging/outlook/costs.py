"""What the judge costs, from the attempts' rows. A cost that nobody told is unknown, never 0."""

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
# Something may have been charged, and nobody has said how much (yet).
REPLIED = (AttemptOutcome.GRADED, AttemptOutcome.REFUSED, AttemptOutcome.INVALID, AttemptOutcome.RUNNING)
UNKNOWN_COST = Q(cost_usd=None) & (Q(estimated_usd__isnull=False) | Q(outcome__in=REPLIED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What some attempts cost. `usd` is the sum of the costs that are known; None where none is.

    `known` and `unknown_cost` count the attempts that cost something we know, or something nobody told; `expected_usd`
    is what the latter were estimated at.
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
        """The share in [0, 1] of the attempts charged for whose cost is known; None where nothing was charged."""
        charged = self.known + self.unknown_cost
        return self.known / charged if charged else None

    @property
    def free(self) -> int:
        """Attempts that cost nothing: turned away, or never sent."""
        return self.attempts - self.known - self.unknown_cost

    @property
    def is_least(self) -> bool:
        return self.coverage is not None and self.coverage < ENOUGH_KNOWN

    @property
    def each_usd(self) -> float | None:
        """The mean of the known costs."""
        return self.usd / self.known if self.usd is not None and self.known else None

    @property
    def committed_usd(self) -> float:
        """What counts against a budget: known costs, and the unknown ones at their estimates."""
        return (self.usd or 0.0) + self.expected_usd

    def __add__(self, other: "Spend") -> "Spend":
        known = [spend.usd for spend in (self, other) if spend.usd is not None]
        return Spend(
            attempts=self.attempts + other.attempts,
            known=self.known + other.known,
            unknown_cost=self.unknown_cost + other.unknown_cost,
            usd=sum(known) if known else None,
            expected_usd=self.expected_usd + other.expected_usd,
            read=self.read + other.read,
            written=self.written + other.written,
        )


# What each combination of some keys cost.
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

# A test that answered without a price, or of which nobody knows what became, may have cost something.
TEST_FIGURES = {
    **FIGURES,
    "unknown_cost": Count("pk", filter=Q(cost_usd=None, reason=Reason.NONE)),
    "expected_usd": Sum(Value(0.0), output_field=FloatField()),
}


def spend(attempts: QuerySet[JudgeAttempt]) -> Spend:
    return _spend(attempts.aggregate(**FIGURES))


def spend_by(attempts: QuerySet[JudgeAttempt], **keys: Any) -> list[tuple[tuple[Any, ...], Spend]]:
    """One query: the spend for each combination of `keys` (expressions by name), in the order of the keys."""
    rows: Any = attempts.order_by().values(**keys).annotate(**FIGURES).order_by(*keys)
    return [(tuple(row[key] for key in keys), _spend(row)) for row in rows]


def added_up(spends: Spends, *kept: int) -> list[tuple[tuple[Any, ...], Spend]]:
    """The spend for each combination of those of the keys that are at these places, in their order."""
    found: dict[tuple[Any, ...], Spend] = {}
    for key, spend in spends:
        of = tuple(key[place] for place in kept)
        found[of] = found.get(of, Spend()) + spend
    return sorted(found.items(), key=lambda each: each[0])


def tests_since(moment: dt.datetime) -> QuerySet[JudgeKeyTest]:
    """The calls that tested a key, from then on: nobody's session was judged by them, and they cost money too."""
    return JudgeKeyTest.objects.filter(started_at__gte=moment)


def spend_on_tests(tests: QuerySet[JudgeKeyTest]) -> Spend:
    return _spend(tests.order_by().aggregate(**TEST_FIGURES))


def spend_on_tests_by(tests: QuerySet[JudgeKeyTest], **keys: Any) -> list[tuple[tuple[Any, ...], Spend]]:
    """The same for each combination of `keys`, as `spend_by` has it."""
    rows: Any = tests.order_by().values(**keys).annotate(**TEST_FIGURES).order_by(*keys)
    return [(tuple(row[key] for key in keys), _spend(row)) for row in rows]


def _spend(row: Mapping[str, Any]) -> Spend:
    zeros = {name: row[name] or 0 for name in FIGURES if name != "usd"}
    return Spend(**zeros, usd=row["usd"])


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTerm:
    """One term of a sum: tokens at a price in dollars per million."""

    words: str
    tokens: int
    price: float

    @property
    def usd(self) -> float:
        return self.tokens * self.price / MILLION


def terms(attempts: QuerySet[JudgeAttempt]) -> list[CostTerm]:
    """The arithmetic of what is known: tokens by model, kind and batch, times the prices of today."""
    sums = {field: Sum(field) for field in TOKENS}
    paid = attempts.filter(cost_usd__isnull=False).order_by()
    rows: Any = paid.values("model", batched=Q(batch__isnull=False)).annotate(**sums).order_by("model", "batched")
    found: list[CostTerm] = []
    for row in rows:
        for field, words in TOKENS.items():
            if row[field]:
                a_million: Any = {field: MILLION}
                price = prices.cost(row["model"], **a_million, batch=row["batched"])
                name = f"{words} in batches" if row["batched"] else words
                found.append(CostTerm(words=name, tokens=row[field], price=price))
    return found


def since(moment: dt.datetime) -> QuerySet[JudgeAttempt]:
    """The attempts that started then or later."""
    return JudgeAttempt.objects.filter(started_at__gte=moment)


def per_verdict(attempts: QuerySet[JudgeAttempt]) -> tuple[float | None, dict[str, float]]:
    """What a verdict cost on average, None where no cost is known; and what it took, by dimension of the allowance,
    empty where that is not known. One query.
    """
    counted = Q(input_tokens__isnull=False, output_tokens__isnull=False)
    found = attempts.filter(outcome=AttemptOutcome.GRADED).aggregate(
        usd=Sum("cost_usd"),
        known=Count("cost_usd"),
        n=Count("pk", filter=counted),
        read=Sum("input_tokens", filter=counted),
        written=Sum("output_tokens", filter=counted),
    )
    each_usd = found["usd"] / found["known"] if found["known"] else None
    if not found["n"]:
        return each_usd, {}
    read, written = found["read"] / found["n"], found["written"] / found["n"]
    return each_usd, {"requests": 1.0, "input_tokens": read, "output_tokens": written, "tokens": read + written}
