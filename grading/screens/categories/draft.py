"""A category rule while it is edited: its conditions, its category, and why it can't be saved."""

import uuid
from dataclasses import dataclass, field
from typing import Any, Self

from django.http import QueryDict

from bandit.models import Arm
from grading.models import CategoryRule
from grading.signals import conditions
from grading.signals.conditions import Field, Test


@dataclass(slots=True, kw_only=True)
class RuleDraft:
    """A rule that is added (`rule` is None) or changed. `rows` are the form's conditions, some of them blank."""

    rule: CategoryRule | None = None
    rows: list[dict[str, str]] = field(default_factory=list)
    category: Arm | None = None
    others: bool = False
    problem: str = ""

    @classmethod
    def from_rule(cls, rule: CategoryRule | None) -> Self:
        """The draft of an existing rule; blank for a new one."""
        stored = rule.conditions if rule is not None else []
        rows = [{**each, "values": ", ".join(each["values"])} for each in stored if isinstance(each, dict)]
        return cls(rule=rule, rows=_filled(rows), category=None if rule is None else rule.category.current)

    @classmethod
    def typed(cls, params: QueryDict, rule: CategoryRule | None) -> Self:
        """The draft from a submitted form. `problem` says what is missing."""
        rows = []
        for number in range(conditions.MAX_CONDITIONS):
            names = ("field", "test", "values")
            rows.append({name: params.get(f"{name}-{number}", "").strip() for name in names})
        category = categories().filter(name=params.get("category", "")[:200]).first()
        typed = [row for row in rows if row["values"]]
        draft = cls(rule=rule, rows=_filled(typed), category=category, others="others" in params)
        try:
            conditions.Matcher(draft.conditions)
        except conditions.InvalidCondition as error:
            draft.problem = str(error)
        if not draft.problem and category is None:
            draft.problem = "Choose the category that such sessions get."
        return draft

    @property
    def conditions(self) -> list[dict[str, Any]]:
        """The conditions in the form that a rule stores."""
        typed = [row for row in self.rows if row["values"]]
        return [{**row, "values": [each.strip() for each in row["values"].split(",") if each.strip()]} for row in typed]

    @property
    def is_complete(self) -> bool:
        """Whether it can be saved as a rule."""
        return not self.problem and bool(self.conditions) and self.category is not None

    def row(self) -> CategoryRule:
        """The unsaved rule, a new one in the last position. The draft must be complete."""
        assert self.category is not None  # noqa: S101 - as the docstring says
        before = self.rule
        return CategoryRule(
            pk=None if before is None else before.pk,
            position=CategoryRule.objects.count() + 1 if before is None else before.position,
            conditions=self.conditions,
            category=self.category,
            is_on=True if before is None else before.is_on,
        )


def categories() -> Any:
    """The categories that a session can be given."""
    return Arm.objects.in_bandit("category").filter(merged_into=None, retired_at=None).order_by("name")


def uuid_of(text: str) -> str:
    """A form's idempotency key; "" if it is not a valid UUID."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return ""


def choices() -> dict[str, list[tuple[str, str]]]:
    """The fields and tests that a condition can use."""
    return {
        "fields": [(each.value, each.label) for each in Field],
        "tests": [(each.value, each.value) for each in Test],
    }


def _filled(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows, and blank ones after them up to MAX_CONDITIONS in all."""
    blank = {"field": Field.WORDS.value, "test": Test.CONTAINS.value, "values": ""}
    return [*rows, *({**blank} for _ in range(conditions.MAX_CONDITIONS - len(rows)))]
