"""Edits of the list of category rules. Each is stored as a change; the list is the result of those not undone.

So an edit can be undone whatever came after it, and the list of any earlier moment can be derived.
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

# A rule as JSON: its key as "rule", and its columns.
State = dict[str, Any]


def make(by: User, act: RuleAct, rule: CategoryRule, *, beside: CategoryRule | None = None) -> CategoryChange | None:
    """Apply an edit to the list and record it. Returns None if it would change nothing. Changes no session.

    `rule` has the new columns; for ADD it is unsaved. UP moves it right before the rule `beside` and DOWN right after
    it; `beside` is its neighbour by default.
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
    """The list that results from the edits up to `until` that weren't undone; None if there are no edits. One query."""
    rows = _edits()
    if not rows:
        return None
    rules: list[State] = rows[0].edit["before"]
    for row in rows:
        if row.undone_at is None and (until is None or row.created_at <= until):
            rules = _after(rules, row.edit, row.created_at)
    return rules


def rules_at(moment: datetime) -> list[CategoryRule]:
    """The rules in order as of that moment, without the edits that were undone since. Two queries."""
    rules = states(moment)
    if rules is None:
        return list(CategoryRule.objects.select_related("category__merged_into"))
    arms = Arm.objects.select_related("merged_into").in_bulk({state["category"] for state in rules})
    return [_row(state, number, arms[state["category"]]) for number, state in enumerate(rules, 1)]


def restore() -> None:
    """Update the rows of the rules to the list that `states` returns. The caller has the lock."""
    rules, rows = states(), _edits()
    if rules is None:
        return
    all_keys = {row.edit["rule"] for row in rows} | {state["rule"] for state in rows[0].edit["before"]}
    CategoryRule.everything.filter(pk__in=all_keys - {state["rule"] for state in rules}).update(is_deleted=True)
    for number, state in enumerate(rules, 1):
        CategoryRule.everything.filter(pk=state["rule"]).update(
            conditions=state["conditions"],
            category=state["category"],
            is_on=state["is_on"],
            position=number,
            changed_at=datetime.fromisoformat(state["changed_at"]),
            is_deleted=False,
        )


def sessions_matched_since(moment: datetime) -> list[int]:
    """The keys of the sessions to which rules were, or could have been, applied on arrival since then."""
    rule_words = CategoryWord.objects.filter(origin=CategoryOrigin.RULE, change=None, said_at__gte=moment)
    since = Q(session__received_at__gte=moment) | Q(session__in=rule_words.values("session"))
    return list(SessionTraits.objects.filter(since).order_by("pk").values_list("pk", flat=True))


def _edits() -> list[CategoryChange]:
    return list(CategoryChange.objects.exclude(edit={}).order_by("pk"))


def _after(rules: list[State], edit: Mapping[str, Any], at: datetime) -> list[State]:
    """The rules after one more edit. Unchanged if the edited rule was deleted, or if the edit changes nothing."""
    act, key, changed_at = RuleAct(edit["act"]), edit["rule"], at.isoformat()
    changes = {name: edit[name] for name in ("conditions", "category") if name in edit}
    if act is RuleAct.ADD:
        return [*rules, {"rule": key, **changes, "is_on": True, "changed_at": changed_at}]
    edited = next((rule for rule in rules if rule["rule"] == key), None)
    if edited is None:
        return rules
    if act is RuleAct.DELETE:
        return [rule for rule in rules if rule["rule"] != key]
    if act in (RuleAct.UP, RuleAct.DOWN):
        return _move(rules, edited, edit["beside"], act, changed_at)
    if act in (RuleAct.ON, RuleAct.OFF):
        changes = {"is_on": act is RuleAct.ON}
    if {**edited, **changes} == edited:
        return rules
    changed_rule = {**edited, **changes, "changed_at": changed_at}
    return [changed_rule if rule is edited else rule for rule in rules]


def _move(rules: list[State], rule: State, beside: int | None, act: RuleAct, changed_at: str) -> list[State]:
    """The list with `rule` moved right before the rule `beside` (UP) or right after it (DOWN).

    Both get the new `changed_at`. Unchanged if `rule` is on that side of `beside` already.
    """
    source = rules.index(rule)
    target = next((index for index, other in enumerate(rules) if other["rule"] == beside), None)
    if target is None or (target < source) != (act is RuleAct.UP):
        return rules
    moved_rule = {**rule, "changed_at": changed_at}
    passed_rule = {**rules[target], "changed_at": changed_at}
    result: list[State] = []
    for index, other in enumerate(rules):
        if index == source:
            continue
        if index == target:
            result += [moved_rule, passed_rule] if act is RuleAct.UP else [passed_rule, moved_rule]
        else:
            result.append(other)
    return result


def _neighbour(rules: list[State], rule: CategoryRule, act: RuleAct) -> int | None:
    """The key of the rule before (UP) or after (DOWN) this one, or None if there is none."""
    keys = [each["rule"] for each in rules]
    index = keys.index(rule.pk) + (-1 if act is RuleAct.UP else 1)
    return keys[index] if 0 <= index < len(keys) else None


def _state(row: CategoryRule) -> State:
    """The rule as JSON."""
    columns = {"conditions": row.conditions, "category": row.category_id, "is_on": row.is_on}
    return {"rule": row.pk, **columns, "changed_at": row.changed_at.isoformat()}


def _row(state: State, number: int, category: Arm) -> CategoryRule:
    """The unsaved rule with this state, at place `number` of the list."""
    return CategoryRule(
        pk=state["rule"],
        position=number,
        conditions=state["conditions"],
        category=category,
        is_on=state["is_on"],
        changed_at=datetime.fromisoformat(state["changed_at"]),
    )
