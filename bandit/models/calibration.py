"""What moves rewards where they are read: rectifiers, calibrations, and what people said of breaks."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.utils import timezone

from bandit.models.arms import Arm
from bandit.models.bandits import Bandit


class SwitchedVersion(models.Model):
    """One version of something about a bandit that can be off, never changed, never deleted.

    The latest version counts: in force if `enabled`. `by` is whoever put it here, in the caller's words.
    """

    bandit: "models.ForeignKey[Bandit, Bandit]"
    version = models.PositiveIntegerField()
    enabled = models.BooleanField(default=True)
    note = models.CharField(max_length=500, blank=True)
    by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        abstract = True
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "version"], name="bandit_%(class)s_once"),
            models.CheckConstraint(condition=Q(version__gte=1), name="bandit_%(class)s_from_1"),
            models.CheckConstraint(condition=~Q(by=""), name="bandit_%(class)s_says_who"),
        ]

    def __str__(self) -> str:
        return f"{self.bandit}, version {self.version}" + ("" if self.enabled else " (off)")


class Rectifier(SwitchedVersion):
    """What a bandit's strata are moved by when its buckets are read; nothing, where it is off.

    `offsets` is a list of {arm, source, stratum, offset, pairs, low, high} (`bandit.core.recalibration.Offset`), empty
    where it switches off. Offsets of what a calibration reads hold under that one and those that came by themselves
    after it: they say how far people were from what it made of the grades.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="rectifiers")
    offsets = models.JSONField(default=list, blank=True)
    calibration = models.PositiveIntegerField(
        null=True, blank=True, help_text="The last calibration that a person had accepted when these were fitted."
    )


class CalibrationVersion(SwitchedVersion):
    """How a bandit's fallbacks are read on the judge's scale; where it is off, every source is read as it stands.

    `scale` is a `bandit.core.calibration.Scale` as JSON; `target` names the judge whose scale it is, in the caller's
    words, empty at the start. `accepted`: a person put it in force, or it is the start; the others came by themselves.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="calibrations")
    scale = models.JSONField(default=dict, blank=True)
    target = models.CharField(max_length=300, blank=True)
    accepted = models.BooleanField(default=False)


class BreakDecisionQuerySet(models.QuerySet["BreakDecision"]):
    def told(self, known_by: datetime | None = None) -> Self:
        """In the order in which they were made, with their arms; or those of them that were made by then."""
        made = self if known_by is None else self.filter(created_at__lte=known_by)
        return made.select_related("arm").order_by("created_at", "pk")


class BreakDecision(models.Model):
    """What a person said of a break: it stands, or it is taken back. Never changed; of an arm's day the latest counts.

    `day` is the first that counts after the break. One that is `kept` stands whatever later rewards say; one that is
    taken back is none, and up to the day of the decision the arm has no other.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="break_decisions")
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="break_decisions")
    day = models.DateField()
    kept = models.BooleanField()
    by = models.CharField(max_length=200)
    note = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = BreakDecisionQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [models.CheckConstraint(condition=~Q(by=""), name="bandit_break_decision_says_who")]

    def __str__(self) -> str:
        return f"{self.arm}, {self.day}: {'kept' if self.kept else 'taken back'}"
