"""Rubrics, by which the judge grades. They are versioned by content."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import enum_field, one_of
from grading.vocabulary import WorkKind


class RubricQuerySet(models.QuerySet["Rubric"]):
    def active(self, kind: WorkKind = WorkKind.PRODUCTION) -> "Rubric | None":
        """The active rubric for work of that kind, or None."""
        return self.filter(is_active=True, kind=kind).first()

    def in_force(self) -> "dict[WorkKind, Rubric]":
        """The active rubrics by kind of work."""
        return {WorkKind(rubric.kind): rubric for rubric in self.filter(is_active=True)}


class Rubric(models.Model):
    """A rubric. Its content is never changed: an edit creates a new row of the same kind, with this one as `parent`."""

    sha256 = models.CharField(max_length=64, unique=True)  # of text, dimensions, bands and examples
    kind = enum_field(WorkKind, default=WorkKind.PRODUCTION)
    title = models.CharField(max_length=120)
    text = models.TextField()
    dimensions = models.JSONField(default=list)
    bands = models.JSONField(default=list)
    examples = models.JSONField(default=list, blank=True)  # sessions that people graded, as few-shot examples
    note = models.CharField(max_length=300, blank=True)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="children")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT)
    is_active = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    objects = RubricQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            one_of("rubric", "kind", WorkKind),
            models.UniqueConstraint(fields=["kind"], condition=Q(is_active=True), name="rubric_one_active"),
        ]

    def __str__(self) -> str:
        return f"{self.title} {self.sha256[:4]}"

    @property
    def work(self) -> str:
        """The label of its kind of work."""
        return WorkKind(self.kind).words


class RubricActivation(models.Model):
    """A person made a rubric the active one. Append-only: going back to an older rubric adds a row."""

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="activations")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.rubric} in force from {self.at:%F %H:%M}"
