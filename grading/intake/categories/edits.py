"""Edits of the list of category rules, each recorded in the history.

A rule acts on sessions that arrive after an edit; no edit changes the category of a session.
"""

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from grading.access.recording import record
from grading.evidence import ownership
from grading.models import CategoryRule
from grading.models.audit import AuditKind


@transaction.atomic
def save(rule: CategoryRule) -> None:
    """Add an unsaved rule at the end of the list, or save the conditions and the category of a changed one."""
    ownership.lock()
    before = CategoryRule.objects.filter(pk=rule.pk).first()
    rule.changed_at = timezone.now()
    if before is None:
        rule.position = CategoryRule.objects.count() + 1
        rule.save(force_insert=True)
        _record("added", rule)
    elif (before.conditions, before.category_id) != (rule.conditions, rule.category_id):
        rule.save(update_fields=["conditions", "category", "changed_at"])
        _record("changed", rule, detail=f"before: {before}")


@transaction.atomic
def switch(rule: CategoryRule, *, is_on: bool) -> None:
    """Switch a rule on or off."""
    ownership.lock()
    row = CategoryRule.objects.filter(pk=rule.pk, is_on=not is_on).first()
    if row is None:
        return
    row.is_on, row.changed_at = is_on, timezone.now()
    row.save(update_fields=["is_on", "changed_at"])
    _record("switched on" if is_on else "switched off", row)


@transaction.atomic
def move(rule: CategoryRule, *, up: bool) -> None:
    """Swap a rule with the one before or after it. The first rule can't be moved up, nor the last one down."""
    ownership.lock()
    row = CategoryRule.objects.filter(pk=rule.pk).first()
    if row is None:
        return
    if up:
        neighbour = CategoryRule.objects.filter(position__lt=row.position).last()
    else:
        neighbour = CategoryRule.objects.filter(position__gt=row.position).first()
    if neighbour is None:
        return
    _record("moved up" if up else "moved down", row)
    row.position, neighbour.position = neighbour.position, row.position
    row.changed_at = neighbour.changed_at = timezone.now()
    CategoryRule.objects.bulk_update([row, neighbour], ["position", "changed_at"])


@transaction.atomic
def delete(rule: CategoryRule) -> None:
    """Delete a rule. Sessions keep the category that it gave them."""
    ownership.lock()  # intakes take it too: no session is categorised while positions change
    row = CategoryRule.objects.filter(pk=rule.pk).first()
    if row is None:
        return
    _record("deleted", row)
    row.delete()
    CategoryRule.objects.filter(position__gt=row.position).update(position=F("position") - 1)


def _record(act: str, rule: CategoryRule, detail: str = "") -> None:
    record(AuditKind.CATEGORY, f"{act} rule {rule.position}: {rule}", detail=detail)
