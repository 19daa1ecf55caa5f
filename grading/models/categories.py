"""How sessions get their category: statements about each session, rules, and what people changed."""

import uuid

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import enum_field, one_of, redacted_char, redacted_packed, redacted_text
from grading.models.sessions import CategoryOrigin, Session
from grading.plain import counted
from grading.signals import conditions


class CategoryRuleQuerySet(models.QuerySet["CategoryRule"]):
    def enabled(self) -> "CategoryRuleQuerySet":
        """Rules that are on, in their order, with their categories."""
        return self.filter(is_on=True).select_related("category")


class CategoryRule(models.Model):
    """Sessions whose log meets every condition get the category. The first matching rule that is on wins."""

    position = models.PositiveIntegerField(default=1)  # from 1
    # A list of {"field", "test", "values"}, which `grading.signals.conditions` reads.
    conditions = models.JSONField(default=list)
    category = models.ForeignKey("bandit.Arm", on_delete=models.PROTECT, related_name="+")
    is_on = models.BooleanField(default=True)
    # A rule isn't applied by itself to a session that was received before this time and has a category.
    changed_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = CategoryRuleQuerySet.as_manager()

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
    """Categories of sessions that a person set, by hand or by applying the rules.

    The first sessions are changed, or changed back, at once, the rest by a worker. While a change is being undone,
    `undone_at` is set and some words are still effective.
    """

    # An idempotency key: the same form sent twice is one change.
    name = models.UUIDField(default=uuid.uuid4, unique=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    origin = enum_field(CategoryOrigin)
    reason = redacted_text(blank=True)
    total = models.PositiveIntegerField(default=0)  # of `todo` at the start
    # What is still to be done: a list of [session, arm, rule or null, why].
    todo = models.JSONField(default=list, blank=True)
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
        return f"categories of {counted(self.total, 'session')}"

    @property
    def summary(self) -> str:
        """What the person did, to follow "somebody"."""
        return f"set the {self} {'by the rules' if self.origin == CategoryOrigin.RULE else 'by hand'}"


class CategoryWordQuerySet(models.QuerySet["CategoryWord"]):
    def not_undone(self) -> "CategoryWordQuerySet":
        return self.filter(undone_at=None)


class CategoryWord(models.Model):
    """A statement about a session's category, by a person, a runner, a rule, etc. Only `undone_at` is ever updated,
    and `rule` when that rule is deleted.

    Of the statements that aren't undone, the one whose origin comes first in CategoryOrigin gives the session its
    category; of several, the latest (`grading.intake.categories.provenance.effective_word`).
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="category_words")
    origin = enum_field(CategoryOrigin)
    category = models.ForeignKey("bandit.Arm", on_delete=models.PROTECT, related_name="+", db_index=False)
    why = redacted_char(max_length=400, blank=True)  # for a rule, what it matched
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    # Few rows have a rule or a change: partial indexes find them.
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
        constraints = [one_of("category_word", "origin", CategoryOrigin)]
        indexes = [
            models.Index(fields=["rule"], condition=Q(rule__isnull=False), name="category_word_rules"),
            models.Index(fields=["change"], condition=Q(change__isnull=False), name="category_word_changes"),
        ]

    def __str__(self) -> str:
        return f"{self.category} of {self.session_id}, {self.origin}"


class SessionTraits(models.Model):
    """Properties of a session's work that category rules match: a redacted `grading.signals.traits.Traits`.

    Derived from the log alone.
    """

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="traits")
    data = redacted_packed(default=dict)

    class Meta:
        verbose_name_plural = "session traits"

    def __str__(self) -> str:
        return f"traits of {self.session_id}"
