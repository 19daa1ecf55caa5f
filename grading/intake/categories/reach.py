"""What rules would catch, rule by rule, before anything is saved."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import F, Q

from grading.intake.categories.rules import Match, Rules
from grading.models import CategoryRule, Session
from grading.models.sessions import CategoryOrigin, SessionQuerySet
from grading.signals.traits import Traits

# So many sessions are looked at, the latest first.
MOST = 20_000


@dataclass(slots=True, kw_only=True)
class RuleReach:
    """What one rule catches: sessions, the latest first, and how many more go to which earlier rule, by its number."""

    caught: list[int] = field(default_factory=list)
    earlier: dict[int, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.caught)


@dataclass(slots=True, kw_only=True)
class Reach:
    """What rules catch of `total` sessions, each by the place of its rule among those that are on.

    `why` has the match of each session that is caught, by its key. Of those that are left `folders` says which
    repositories they share. `looked` is how many were looked at.
    """

    total: int = 0
    looked: int = 0
    rules: list[RuleReach] = field(default_factory=list)
    why: dict[int, Match] = field(default_factory=dict)
    repositories: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return len(self.why)

    @property
    def left(self) -> int:
        return self.total - self.count

    @property
    def shared(self) -> tuple[str, int] | None:
        """The repository that most of those that are left share, and how many; None where no two do."""
        found = self.repositories.most_common(1)
        return found[0] if found and found[0][1] > 1 else None


def uncategorised(rows: Iterable[CategoryRule]) -> Reach:
    """What these rules catch of the sessions without a category. Two queries."""
    sessions = Session.objects.uncategorised()
    return _reach(rows, sessions, total=sessions.count())


def others(rows: Iterable[CategoryRule]) -> Reach:
    """Of which sessions that have a category by a rule or the agent's word these rules make another. Two queries."""
    weak = Q(category_from__in=[CategoryOrigin.RULE, CategoryOrigin.AGENT], category__isnull=False)
    sessions = Session.objects.yours().filter(weak, traits__isnull=False)
    return _reach(rows, sessions, total=sessions.count())


def _reach(rows: Iterable[CategoryRule], sessions: SessionQuerySet, total: int) -> Reach:
    rules = Rules(rows)
    found = Reach(total=total, rules=[RuleReach() for _ in rules.rows])
    current = F("category__merged_into"), F("category")
    seen = sessions.order_by("-ended_at", "-pk").values_list("pk", "traits__data", *current)[:MOST]
    for pk, data, merged, category in seen:
        found.looked += 1
        traits = Traits.from_dict(data or {})
        matches = [] if data is None else list(rules.all(traits))
        if not matches:
            found.repositories.update(traits.repositories[-1:])
            continue
        first = matches[0]
        if category is not None and first.rule.category.current.pk in (merged, category):
            continue
        found.rules[first.place].caught.append(pk)
        found.why[pk] = first
        for later in matches[1:]:
            earlier, number = found.rules[later.place].earlier, first.rule.position
            earlier[number] = earlier.get(number, 0) + 1
    return found


def todo(reaches: Sequence[Reach]) -> list[list[object]]:
    """What is to be done to the sessions that are caught, as a change keeps it: session, arm, rule, why."""
    rows: Mapping[int, Match] = {pk: match for reach in reaches for pk, match in reach.why.items()}
    return [[pk, match.rule.category.current.pk, match.rule.pk, match.why] for pk, match in rows.items()]
