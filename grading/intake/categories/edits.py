"""Edits of the list of rules. Each is kept as a change; the list is what those make of it that were not undone.

So an edit can be undone whatever came after it, and the list of any earlier moment can be had again.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from bandit.models import Arm
from grading.evidence import ownership
from grading.models import CategoryChange, CategoryRule, CategoryWord, SessionTraits
from grading.models.categories import RuleAct
from grading.models.sessions import CategoryOrigin

# A rule of the list: its key as "rule", and its columns. A list of them is in order.
State = dict[str, Any]


def make(by: User, act: RuleAct, rule: CategoryRule, *, beside: CategoryRule | None = None) -> CategoryChange | None:
    """Do this to the list, and keep who did; None where it would change nothing. No session changes by it.

    `rule` is as it is to be: of ADD not saved yet. UP puts it right before `beside` and DOWN right after it, which is
    its neighbour unless told.
    """
    with transaction.atomic():
        ownership.lock()
        before = [_state(row) for row in CategoryRule.objects.all()]
        if act is RuleAct.ADD:
            rule.position, rule.changed_at = len(before) + 1, timezone.now()
            rule.save(force_insert=True)
        edit: dict[str, Any] = {"act": act, "rule": rule.pk, "number": rule.position, "words": str(rule)}
        if act in (RuleAct.ADD, RuleAct.CHANGE):
            edit |= {"conditions": rule.conditions, "category": rule.category_id}
        if act in (RuleAct.UP, RuleAct.DOWN):
            edit["beside"] = _neighbour(before, rule, act) if beside is None else beside.pk
        if act is not RuleAct.ADD and _after(before, edit, timezone.now()) == before:
            return None
        change = CategoryChange.objects.create(by=by, origin=CategoryOrigin.RULE, edit={**edit, "before": before})
        restore()
    return change


def states(until: datetime | None = None) -> list[State] | None:
    """The list that the edits until then make that were not undone; None where nobody edited it yet. One query."""
    rows = _edits()
    found: list[State] | None = rows[0].edit["before"] if rows else None
    for row in rows:
        if found is not None and row.undone_at is None and (until is None or row.created_at <= until):
            found = _after(found, row.edit, row.created_at)
    return found


def rules_at(moment: datetime) -> list[CategoryRule]:
    """The rules in their order as of that moment, without the edits that were undone. Two queries."""
    found = states(moment)
    if found is None:
        return list(CategoryRule.objects.select_related("category__merged_into"))
    arms = Arm.objects.select_related("merged_into").in_bulk({state["category"] for state in found})
    return [_row(state, number, arms[state["category"]]) for number, state in enumerate(found, 1)]


def restore() -> None:
    """Make the rules' rows what `states` says. The caller has the lock."""
    found, rows = states(), _edits()
    if found is None:
        return
    known = {row.edit["rule"] for row in rows} | {state["rule"] for state in rows[0].edit["before"]}
    CategoryRule.everything.filter(pk__in=known - {state["rule"] for state in found}).update(is_deleted=True)
    for number, state in enumerate(found, 1):
        CategoryRule.everything.filter(pk=state["rule"]).update(
            conditions=state["conditions"],
            category=state["category"],
            is_on=state["is_on"],
            position=number,
            changed_at=datetime.fromisoformat(state["changed_at"]),
            is_deleted=False,
        )


def asked_since(moment: datetime) -> list[int]:
    """The sessions of which the rules said something, or could have, since then."""
    said = CategoryWord.objects.filter(origin=CategoryOrigin.RULE, change=None, said_at__gte=moment)
    since = Q(session__received_at__gte=moment) | Q(session__in=said.values("session"))
    return list(SessionTraits.objects.filter(since).order_by("pk").values_list("pk", flat=True))


def _edits() -> list[CategoryChange]:
    return list(CategoryChange.objects.exclude(edit={}).order_by("pk"))


def _after(rules: list[State], edit: Mapping[str, Any], at: datetime) -> list[State]:
    """The list after one edit more; as it was where the rule is not in it any more."""
    act, key, moved = RuleAct(edit["act"]), edit["rule"], at.isoformat()
    here = next((rule for rule in rules if rule["rule"] == key), None)
    said = {name: edit[name] for name in ("conditions", "category") if name in edit}
    if act is RuleAct.ADD:
        return [*rules, {"rule": key, **said, "is_on": True, "changed_at": moved}]
    if here is None:
        return rules
    others = [rule for rule in rules if rule["rule"] != key]
    if act is RuleAct.DELETE:
        return others
    if act in (RuleAct.UP, RuleAct.DOWN):
        return _moved(rules, here, edit["beside"], act, moved)
    if act in (RuleAct.ON, RuleAct.OFF):
        said = {"is_on": act is RuleAct.ON}
    fresh = {**here, **said}
    return rules if fresh == here else [{**fresh, "changed_at": moved} if rule is here else rule for rule in rules]


def _moved(rules: list[State], here: State, beside: int | None, act: RuleAct, moved: str) -> list[State]:
    """With `here` right before the rule `beside`, or right after it, unless it is on that side of it already."""
    at = rules.index(here)
    to = next((place for place, rule in enumerate(rules) if rule["rule"] == beside), None)
    if to is None or (to < at) != (act is RuleAct.UP):
        return rules
    passed = {**rules[to], "changed_at": moved}
    own = {**here, "changed_at": moved}
    pair = [own, passed] if act is RuleAct.UP else [passed, own]
    left = [pair if place == to else [rule] for place, rule in enumerate(rules) if place != at]
    return [rule for part in left for rule in part]


def _neighbour(rules: list[State], rule: CategoryRule, act: RuleAct) -> int | None:
    keys = [each["rule"] for each in rules]
    to = keys.index(rule.pk) + (-1 if act is RuleAct.UP else 1)
    return keys[to] if 0 <= to < len(keys) else None


def _state(row: CategoryRule) -> State:
    columns = {"conditions": row.conditions, "category": row.category_id, "is_on": row.is_on}
    return {"rule": row.pk, **columns, "changed_at": row.changed_at.isoformat()}


def _row(state: State, number: int, category: Arm) -> CategoryRule:
    return CategoryRule(
        pk=state["rule"],
        position=number,
        conditions=state["conditions"],
        category=category,
        is_on=state["is_on"],
        changed_at=datetime.fromisoformat(state["changed_at"]),
    )
