"""The rules that are on, in their order, ready to be asked of sessions."""

import datetime as dt
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grading.models import CategoryRule, glance
from grading.models.glance import CategoryRuleRow
from grading.remembered import remembered
from grading.signals.conditions import InvalidCondition, Matcher
from grading.signals.traits import Traits


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A rule that a session meets, by its place among the rules that are on, and what of the session meets it."""

    place: int
    rule: CategoryRule
    met: str

    @property
    def why(self) -> str:
        return f"rule {self.rule.position}: {self.met}"


class Rules:
    """Rules in their order; one that cannot work is met by nothing."""

    def __init__(self, rows: Iterable[CategoryRule]) -> None:
        self.rows = [row for row in rows if row.is_on]
        self._matchers = [(row, _matcher(row)) for row in self.rows]

    @classmethod
    def in_force(cls, before: dt.datetime | None = None) -> "Rules":
        """The site's rules; only those that were as they are `before` that moment, where one is given."""
        seen = glance.held()
        if seen is None:
            return cls.since(CategoryRule.objects.select_related("category__merged_into"), before)
        return cls.since(map(_row, seen.category_rules), before)

    @classmethod
    def since(cls, rows: Iterable[CategoryRule], before: dt.datetime | None) -> "Rules":
        """Of these the ones that were as they are `before` that moment; all of them where none is given."""
        return cls(row for row in rows if before is None or row.changed_at <= before)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def all(self, traits: Traits) -> Iterator[Match]:
        """Every rule that a session meets, the first that wins first."""
        for place, (rule, matcher) in enumerate(self._matchers):
            met = "" if matcher is None else matcher.why(traits)
            if met:
                yield Match(place=place, rule=rule, met=met)

    def first(self, traits: Traits) -> Match | None:
        return next(self.all(traits), None)


def _row(seen: CategoryRuleRow) -> CategoryRule:
    """The rule as it is; its category is asked for where it is met."""
    return CategoryRule(
        pk=seen.pk,
        position=seen.position,
        conditions=json.loads(seen.conditions),
        category_id=seen.category,
        is_on=True,
        changed_at=seen.changed_at,
    )


def _matcher(row: CategoryRule) -> Matcher | None:
    return _matcher_of(json.dumps(row.conditions))


@remembered(64)
def _matcher_of(conditions: str) -> Matcher | None:
    try:
        return Matcher(json.loads(conditions))
    except InvalidCondition:
        return None
