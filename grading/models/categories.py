"""How sessions get their category: what was said of each and by whom, the rules that say it, and what people did."""

import uuid
from enum import StrEnum

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import enum_field, one_of
from grading.models.redacted import redacted_char, redacted_packed, redacted_text
from grading.models.sessions import CategoryOrigin, Session
from grading.signals import conditions


class RuleAct(StrEnum):
    """What somebody does to one rule of the list."""

    ADD = "add"
    CHANGE = "change"
    UP = "up"
    DOWN = "down"
    ON = "on"
    OFF = "off"
    DELETE = "delete"

    @property
    def done(self) -> str:
        return {
            RuleAct.ADD: "added",
            RuleAct.CHANGE: "changed",
            RuleAct.UP: "moved up",
            RuleAct.DOWN: "moved down",
            RuleAct.ON: "switched on",
            RuleAct.OFF: "switched off",
            RuleAct.DELETE: "deleted",
        }[self]


class ListedRules(models.Manager["CategoryRule"]):
    """The rules that were not deleted."""

    def get_queryset(self) -> "models.QuerySet[CategoryRule]":
        return super().get_queryset().filter(is_deleted=False)

    def enabled(self) -> "models.QuerySet[CategoryRule]":
        """The rules that are on, in their order, with their categories."""
        return self.filter(is_on=True).select_related("category__merged_into")


class CategoryRule(models.Model):
    """Sessions whose log meets every condition get the category. The first of the rules that are on wins.

    `conditions` is a list of {"field", "test", "values"}, as `grading.signals.conditions` reads them. `position` counts
    from 1. Since `changed_at` it is as it is: it says nothing by itself of a session from before that has a category.
    One that was deleted is kept, as words of it and an undo refer to it.
    """

    position = models.PositiveIntegerField(default=1)
    conditions = models.JSONField(default=list)
    category = models.ForeignKey("bandit.Arm", on_delete=models.PROTECT, related_name="+")
    is_on = models.BooleanField(default=True)
    changed_at = models.DateTimeField(default=timezone.now, editable=False)
    is_deleted = models.BooleanField(default=False, editable=False)

    everything = models.Manager["CategoryRule"]()
    objects = ListedRules()

    class Meta:
        ordering = ["position", "pk"]

    def __str__(self) -> str:
        return f"{conditions.describe(self.conditions)} → {self.category.name}"

    def clean(self) -> None:
        try:
            conditions.parse(self.conditions)
        except conditions.InvalidCondition as error:
            raise ValidationError(str(error)) from error


class CategoryChange(models.Model):
    """What a person did to the categories of one session or many: set by hand, or by the rules that were on; or to the
    list of rules, which is its `edit` (else empty) and changes no session.

    `name` tells a form sent twice from two. `todo` are [session, arm, rule or null, why] that a worker has not done
    yet; `total` were there at the start. Undone by `undone_by`; until all of it is, `undone_at` is set and words of it
    still hold. Of an edit that was undone `todo` are the sessions of which the rules are still to be asked again.
    `edit` has the act, the rule's key, number and words, what it is to be, and the list `before`.
    """

    name = models.UUIDField(default=uuid.uuid4, unique=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    origin = enum_field(CategoryOrigin)
    reason = redacted_text(blank=True)
    total = models.PositiveIntegerField(default=0)
    todo = models.JSONField(default=list, blank=True)
    edit = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    undone_at = models.DateTimeField(null=True, blank=True)
    undone_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    undone_why = redacted_text(blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            one_of("category_change", "origin", CategoryOrigin),
            models.CheckConstraint(
                condition=Q(undone_at=None, undone_by=None) | Q(undone_at__isnull=False, undone_by__isnull=False),
                name="category_change_undone_by_somebody",
            ),
        ]
        indexes = [models.Index(fields=["-created_at", "-id"], name="category_change_recent")]

    def __str__(self) -> str:
        return f"categories of {self.total} session{'' if self.total == 1 else 's'}"

    @property
    def is_edit(self) -> bool:
        """Whether it was done to the list of rules."""
        return bool(self.edit)

    @property
    def did(self) -> str:
        """What was done, as of "somebody did"."""
        if self.is_edit:
            return f"{RuleAct(self.edit['act']).done} rule {self.edit['number']}: {self.edit['words']}"
        return f"set the {self} {'by the rules' if self.origin == CategoryOrigin.RULE else 'by hand'}"


class CategoryWordQuerySet(models.QuerySet["CategoryWord"]):
    def standing(self) -> "CategoryWordQuerySet":
        """Those that were not taken back."""
        return self.filter(undone_at=None)


class CategoryWord(models.Model):
    """That somebody said of which category a session is. The strongest that stands holds; of equals, the latest.

    `why` is in words; of a rule, what it matched. `by` is the person, `change` what they did. Never changed but for
    `undone_at`.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="category_words")
    origin = enum_field(CategoryOrigin)
    category = models.ForeignKey("bandit.Arm", on_delete=models.PROTECT, related_name="+", db_index=False)
    why = redacted_char(max_length=400, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    # Few words have either, and an index of their own.
    rule = models.ForeignKey(
        CategoryRule, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    change = models.ForeignKey(
        CategoryChange, null=True, blank=True, on_delete=models.PROTECT, related_name="words", db_index=False
    )
    said_at = models.DateTimeField(default=timezone.now)
    undone_at = models.DateTimeField(null=True, blank=True)

    objects = CategoryWordQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            one_of("category_word", "origin", CategoryOrigin),
        ]
        indexes = [
            models.Index(fields=["rule"], condition=Q(rule__isnull=False), name="category_word_rules"),
            models.Index(fields=["change"], condition=Q(change__isnull=False), name="category_word_changes"),
        ]

    def __str__(self) -> str:
        return f"{self.category} of {self.session_id}, {self.origin}"


class SessionTraits(models.Model):
    """What a session's log shows of its work, for rules to go by: a `grading.signals.traits.Traits`, without secrets.

    Derived from the log and from nothing that anybody said besides.
    """

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="traits")
    data = redacted_packed(default=dict)

    class Meta:
        verbose_name_plural = "session traits"

    def __str__(self) -> str:
        return f"traits of {self.session_id}"
