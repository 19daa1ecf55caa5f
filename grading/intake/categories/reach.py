"""The sessions that category rules would match, rule by rule."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import Q
from msgspec import convert

from grading.intake.categories.rules import Match, Rules
from grading.models import CategoryRule, Session
from grading.models.sessions import CategoryOrigin, SessionQuerySet
from grading.signals.traits import Traits

# Sessions that are examined, the latest first.
MAX_SESSIONS = 20_000


@dataclass(slots=True, kw_only=True)
class RuleReach:
    """What one rule matches: `caught` are the keys of its sessions, latest first. `earlier` counts the matches that go
    to an earlier rule, by the number of that rule.
    """

    caught: list[int] = field(default_factory=list)
    earlier: dict[int, int] = field(default_factory=dict)  # no Counter, in which templates find any attribute

    @property
    def count(self) -> int:
        return len(self.caught)


@dataclass(slots=True, kw_only=True)
class Reach:
    """What the enabled rules match of `total` sessions, of which `examined` were examined.

    `rules` has an entry for each rule in order. `why` is the match of each session by key. `repositories` counts the
    repositories of the sessions that no rule matches.
    """

    total: int = 0
    examined: int = 0
    rules: list[RuleReach] = field(default_factory=list)
    why: dict[int, Match] = field(default_factory=dict)
    repositories: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return len(self.why)

    @property
    def remaining(self) -> int:
        return self.total - self.count

    @property
    def shared(self) -> tuple[str, int] | None:
        """The repository of most of the sessions left, and their number; None if no two share one."""
        most_common = self.repositories.most_common(1)
        return most_common[0] if most_common and most_common[0][1] > 1 else None


def uncategorised(rows: Iterable[CategoryRule]) -> Reach:
    """What these rules match of the sessions without a category. Two queries."""
    sessions = Session.objects.uncategorised()
    return _reach(rows, sessions, total=sessions.count())


def others(rows: Iterable[CategoryRule]) -> Reach:
    """Sessions with a category from a rule or the agent to which these rules would give another one. Two queries."""
    weak = Q(category_from__in=[CategoryOrigin.RULE, CategoryOrigin.AGENT], category__isnull=False)
    sessions = Session.objects.yours().filter(weak, traits__isnull=False)
    return _reach(rows, sessions, total=sessions.count())


def _reach(rows: Iterable[CategoryRule], sessions: SessionQuerySet, total: int) -> Reach:
    """What these rules match of the latest MAX_SESSIONS of `sessions`. `total` is how many `sessions` there are.

    A session that has the category of its first matching rule already isn't counted as matched.
    """
    rules = Rules(rows)
    result = Reach(total=total, rules=[RuleReach() for _ in rules.rows])
    columns = ("pk", "traits__data", "category__merged_into", "category")
    for pk, data, merged, category in sessions.order_by("-ended_at", "-pk").values_list(*columns)[:MAX_SESSIONS]:
        result.examined += 1
        traits = convert(data or {}, Traits)
        matches = [] if data is None else list(rules.all(traits))
        if not matches:
            result.repositories.update(traits.repositories[-1:])  # the last is the folder's name, if the log has it
            continue
        first = matches[0]
        if category is not None and first.rule.category.current.pk in (merged, category):
            continue
        result.rules[first.place].caught.append(pk)
        result.why[pk] = first
        number = first.rule.position
        for later in matches[1:]:
            earlier = result.rules[later.place].earlier
            earlier[number] = earlier.get(number, 0) + 1
    return result


def todo(reaches: Sequence[Reach]) -> list[list[object]]:
    """The `todo` list of a change that gives the matched sessions their categories: [session, arm, rule, why] each."""
    matches = {pk: match for reach in reaches for pk, match in reach.why.items()}
    return [[pk, match.rule.category.current.pk, match.rule.pk, match.why] for pk, match in matches.items()]
