"""The figures of the costs page: tokens and costs of sessions, by day and by the table's group."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from django.db.models import Aggregate, Count, Q, QuerySet, Sum

from bandit.models import Arm
from grading.models import Agent, SessionUsage
from grading.models.sessions import MICRODOLLARS
from grading.models.spending import TOKEN_COLUMNS

# The path of each group from a usage row. An arm is one of several bandits.
GROUPS = {
    "category": "session__category",
    "harness": "session__harness",
    "model": "model",
    "project": "session__project__name",
    "agent": "session__agent__name",
    "day": "day",
    "arm": "",
}
ARMS = {"category": "session__category", "harness": "session__harness", "model": "session__model_arm"}
LESSON = "session__lessons__arm"
# Of these, a session is in one group alone.
EXCLUSIVE = ("category", "harness", "project", "agent", "arm")
NAMELESS = {"model": "no model recorded", "project": "no project"}


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """The tokens and costs of some sessions. Costs are in microdollars and sums over the `priced` rows: `paid`, and
    `covered`, which tokens covered by subscriptions would have cost. The cost of `unpriced` rows is unknown.
    """

    sessions: int = 0
    priced: int = 0
    unpriced: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    paid: int = 0
    covered: int = 0

    def plus(self, other: "UsageSum") -> "UsageSum":
        return UsageSum(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})

    @property
    def tokens(self) -> int:
        return sum(getattr(self, name) for name in TOKEN_COLUMNS)

    @property
    def is_covered(self) -> bool:
        """Whether subscriptions cover the whole cost."""
        return self.covered > 0 and self.paid == 0

    @property
    def paid_usd(self) -> float | None:
        """What was paid, in dollars; None if no cost is known."""
        return self.paid / MICRODOLLARS if self.priced else None

    @property
    def covered_usd(self) -> float | None:
        """What subscriptions cover, in dollars; None if no cost is known."""
        return self.covered / MICRODOLLARS if self.priced else None

    @property
    def usd(self) -> float | None:
        """What was paid and what subscriptions cover, in dollars; None if no cost is known."""
        return (self.paid + self.covered) / MICRODOLLARS if self.priced else None

    @property
    def each_usd(self) -> float | None:
        """The mean cost of a session; None if the cost of some is unknown."""
        return None if self.usd is None or self.unpriced or not self.sessions else self.usd / self.sessions

    @property
    def cached_share(self) -> float | None:
        """The share of input tokens that came from the cache."""
        read = self.input_tokens + self.cached_tokens + self.cache_write_tokens
        return self.cached_tokens / read if read else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingTable:
    """The rows of the table, (name, sum) each, and the number of sessions in them."""

    rows: list[tuple[str, UsageSum]]
    sessions: int


def sum_by(usage: QuerySet[SessionUsage], *paths: str) -> list[tuple[tuple[Any, ...], UsageSum]]:
    """(values, sum) of the usage rows by the values at these paths. A session counts once in each group."""
    subscribers = list(Agent.objects.filter(has_subscription=True).values_list("pk", flat=True))
    aggregates: dict[str, Aggregate] = {
        "sessions": Count("session", distinct=True),
        "rows": Count("pk"),
        "priced": Count("cost_micro"),
        "covered": Sum("cost_micro", filter=Q(session__agent__in=subscribers), default=0),
        # Last, because they have the names of columns.
        **{name: Sum(name, default=0) for name in (*TOKEN_COLUMNS, "cost_micro")},
    }
    if not subscribers:
        del aggregates["covered"]  # saves a join
    groups = []
    for row in usage.order_by().values(*paths).annotate(**aggregates):
        values = tuple(row.pop(path) for path in paths)
        cost, covered, count = row.pop("cost_micro"), row.pop("covered", 0), row.pop("rows")
        each = UsageSum(**row, unpriced=count - row["priced"], paid=cost - covered, covered=covered)
        groups.append((values, each))
    return groups


def table(usage: QuerySet[SessionUsage], by: str) -> SpendingTable:
    """The table by one of `GROUPS`, the most expensive first; by day the latest first."""
    paths = ARMS.values() if by == "arm" else [GROUPS[by]]
    groups = sum_by(usage, *paths)
    if by == "arm":
        sums_by_bandit = {}
        for index, bandit in enumerate(ARMS):
            sums_by_bandit[bandit] = [(keys[index], each) for keys, each in groups]
        lessons = sum_by(usage.filter(session__lessons__taken=True), LESSON)
        sums_by_bandit["lesson"] = [(key, each) for (key,), each in lessons]
        rows = []
        for bandit, sums in sums_by_bandit.items():
            named_sums = name_arms([(key, each) for key, each in sums if key is not None])
            rows += [(f"{bandit}: {name}", each) for name, each in named_sums]
    elif by in ("category", "harness"):
        rows = name_arms([(key, each) for (key,), each in groups], nameless=f"no {by}")
    elif by == "day":
        rows = [(f"{day:%-d %b %Y}", each) for (day,), each in sorted(groups, key=lambda group: group[0], reverse=True)]
    else:
        rows = [(value or NAMELESS[by], each) for (value,), each in groups]
    if by != "day":
        rows.sort(key=lambda row: (-row[1].paid - row[1].covered, -row[1].tokens, row[0]))
    if by in EXCLUSIVE:
        return SpendingTable(rows=rows, sessions=sum(each.sessions for _values, each in groups))
    return SpendingTable(rows=rows, sessions=usage.order_by().values("session").distinct().count())


def name_arms(groups: Iterable[tuple[int | None, UsageSum]], *, nameless: str = "") -> list[tuple[str, UsageSum]]:
    """(name, sum) by arm, of sums by an arm's key; `nameless` is the name for None. Merged arms are one."""
    groups = list(groups)
    arms = Arm.objects.select_related("merged_into").in_bulk([key for key, _each in groups if key is not None])
    sums: dict[str, UsageSum] = defaultdict(UsageSum)
    for key, each in groups:
        name = nameless if key is None else arms[key].current.name
        sums[name] = sums[name].plus(each)
    return list(sums.items())
