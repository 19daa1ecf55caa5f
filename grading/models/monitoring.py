"""Flags (a session that a rule found implausible) and alarms (a rule that fired too often), acknowledged by name."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import redacted_text
from grading.models.sessions import Session


class FlagQuerySet(models.QuerySet["Flag"]):
    def open(self) -> "FlagQuerySet":
        """Flags that await review."""
        return self.filter(cleared_at=None)

    def of_arm(self, arm: str) -> "FlagQuerySet":
        """Flags of sessions in the category, and in categories merged into it."""
        return self.filter(Q(session__category__name=arm) | Q(session__category__merged_into__name=arm))


class Flag(models.Model):
    """A rule's or a person's (BY_A_PERSON) reason to review a session. One for each session and rule.

    A rule doesn't raise a dismissed flag again.
    """

    BY_A_PERSON = "person"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="flags")
    rule = models.CharField(max_length=16)
    detail = redacted_text()
    raised_at = models.DateTimeField(default=timezone.now)
    raised_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    cleared_at = models.DateTimeField(null=True, blank=True)
    cleared_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    cleared_why = models.CharField(max_length=300, blank=True)

    objects = FlagQuerySet.as_manager()

    class Meta:
        ordering = ["-raised_at"]
        constraints = [models.UniqueConstraint(fields=["session", "rule"], name="flag_once")]
        indexes = [models.Index(fields=["rule", "raised_at"], name="flag_recent")]

    def __str__(self) -> str:
        return f"{self.rule} {self.session}"


class Alarm(models.Model):
    """A problem that an alarm rule detected. Open until it is resolved."""

    rule = models.CharField(max_length=16)
    # What it concerns (a judge, an error), for rules with an alarm for each. May be empty.
    about = models.CharField(max_length=300, blank=True)
    detail = redacted_text()
    opened_at = models.DateTimeField(default=timezone.now)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT)
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at"]
        constraints = [
            models.UniqueConstraint(fields=["rule", "about"], condition=Q(resolved_at=None), name="alarm_one_open"),
            models.CheckConstraint(
                condition=Q(acknowledged_at=None) | Q(acknowledged_by__isnull=False), name="alarm_acknowledged_by_name"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule} since {self.opened_at:%F %H:%M}"


class RuleRun(models.Model):
    """When a rule that looks now and then did so last; one that has been silent for too long is an alarm itself."""

    rule = models.CharField(max_length=16, unique=True)
    ran_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.rule} at {self.ran_at:%F %T}"
