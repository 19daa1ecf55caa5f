"""The enabled category rules in order, ready to be matched against sessions."""

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grading.models import CategoryRule
from grading.signals.conditions import InvalidCondition, Matcher
from grading.signals.traits import Traits


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A rule that a session matches, its index among the enabled rules, and a text of what matched."""

    place: int
    rule: CategoryRule
    met: str

    @property
    def why(self) -> str:
        return f"rule {self.rule.position}: {self.met}"


class Rules:
    """The enabled rules of a list, in order. An invalid rule matches nothing."""

    def __init__(self, rows: Iterable[CategoryRule]) -> None:
        self.rows = [row for row in rows if row.is_on]
        self._matchers = [(row, _matcher(row)) for row in self.rows]

    @classmethod
    def enabled(cls, before: dt.datetime | None = None) -> "Rules":
        """The site's enabled rules; with `before`, only those that were not changed since that moment."""
        return cls.since(CategoryRule.objects.enabled(), before)

    @classmethod
    def since(cls, rows: Iterable[CategoryRule], before: dt.datetime | None) -> "Rules":
        """The rules among `rows` that were not changed since the moment `before`; all of them if it is None."""
        return cls(row for row in rows if before is None or row.changed_at <= before)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def all(self, traits: Traits) -> Iterator[Match]:
        """Every rule that a session matches, in order: the first one decides."""
        for place, (rule, matcher) in enumerate(self._matchers):
            met = "" if matcher is None else matcher.explain_match(traits)
            if met:
                yield Match(place=place, rule=rule, met=met)

    def first(self, traits: Traits) -> Match | None:
        """The rule that decides, or None if none matches."""
        return next(self.all(traits), None)


def _matcher(row: CategoryRule) -> Matcher | None:
    try:
        return Matcher(row.conditions)
    except InvalidCondition:
        return None
