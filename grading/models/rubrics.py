"""What the judge is asked: rubrics as rows, versioned by content."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone


class RubricQuerySet(models.QuerySet["Rubric"]):
    def active(self) -> "Rubric | None":
        """The rubric that is asked by now; None where an operator has put none in force."""
        return self.filter(is_active=True).first()


class Rubric(models.Model):
    """What the judge is asked, versioned by content: `sha256` is the hash of (text, dimensions, bands, examples).

    `examples` are sessions that people graded, shown to the judge as few-shot examples: empty where that is off.
    Never changed once made: an edit is a new row, `parent` the one it began from. At most one is active.
    """

    sha256 = models.CharField(max_length=64, unique=True)
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
            models.UniqueConstraint(fields=["is_active"], condition=Q(is_active=True), name="rubric_one_active")
        ]

    def __str__(self) -> str:
        return f"{self.title} {self.sha256[:4]}"


class RubricActivation(models.Model):
    """A rubric was put in force, by whom and when. Append-only: going back is a row like any other."""

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="activations")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.rubric} in force from {self.at:%F %H:%M}"
