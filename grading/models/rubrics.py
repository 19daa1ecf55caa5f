"""What the judge is asked: rubrics as rows, versioned by content."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import enum_field, one_of
from grading.vocabulary import WorkKind


class RubricQuerySet(models.QuerySet["Rubric"]):
    def active(self, kind: WorkKind = WorkKind.PRODUCTION) -> "Rubric | None":
        """The rubric by which work of that kind is judged now; None where there is none in force."""
        return self.filter(is_active=True, kind=kind).first()

    def in_force(self) -> "dict[WorkKind, Rubric]":
        """The rubrics that are asked by now, each by its kind of work."""
        return {WorkKind(rubric.kind): rubric for rubric in self.filter(is_active=True)}


class Rubric(models.Model):
    """What the judge is asked, versioned by content: `sha256` is the hash of (text, dimensions, bands, examples).

    `examples` are sessions that people graded, shown to the judge as few-shot examples: empty where that is off.
    Never changed once made: an edit is a new row, `parent` the one it began from, whose `kind` of work it keeps. At
    most one of a kind is active.
    """

    sha256 = models.CharField(max_length=64, unique=True)
    kind = enum_field(WorkKind, default=WorkKind.PRODUCTION)
    title = models.CharField(max_length=120)
    text = models.TextField()
    dimensions = models.JSONField(default=list)
    bands = models.JSONField(default=list)
    examples = models.JSONField(default=list, blank=True)
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
        """Its kind of work, in words."""
        return WorkKind(self.kind).words


class RubricActivation(models.Model):
    """A rubric was put in force, by whom and when. Append-only: going back is a row like any other."""

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="activations")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.rubric} in force from {self.at:%F %H:%M}"
