"""What was chosen, and what was held out by chance."""

from django.db import models
from django.db.models import Q

from bandit.models.arms import Arm
from bandit.models.bandits import Bandit
from bandit.packed import PackedJSONField


class Selection(models.Model):
    """A decision: what was chosen, from what, with which chances and why. Only a finished session earns. Its id is the
    own one of the `agent` that asked.

    `context` is the circumstance that the caller named, such as the category that a harness is chosen for. `eligible`
    maps every arm to its propensity, or to the reason it was left out. With an override `propensity` is 1
    (nothing was drawn) and `eligible` still holds what the draw's chances were. `key_id` names the key that it was
    drawn with (`bandit.chance`), "" where that was a public hash.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="selections", db_index=False)
    decision_id = models.CharField(max_length=200)
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="selections", help_text="The arm chosen.")
    agent = models.CharField(max_length=100, blank=True)
    context = models.CharField(max_length=100, blank=True, default="")
    requested = models.JSONField(default=dict)
    eligible = PackedJSONField(default=dict)
    propensity = models.FloatField()
    posterior_version = models.CharField(max_length=64)
    explanation = PackedJSONField(default=dict)
    override = models.JSONField(null=True, blank=True)
    key_id = models.CharField(max_length=8, blank=True, default="")
    created = models.DateTimeField()
    observation = models.CharField(max_length=200, blank=True, default="")
    executed_arm = models.ForeignKey(Arm, models.PROTECT, null=True, blank=True, related_name="executions")
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "agent", "decision_id"], name="bandit_decision_once"),
            models.UniqueConstraint(
                fields=["bandit", "observation"], condition=~Q(observation=""), name="bandit_session_closes_one"
            ),
            models.CheckConstraint(condition=Q(propensity__gt=0, propensity__lte=1), name="bandit_propensity_0_to_1"),
            models.CheckConstraint(condition=~Q(decision_id=""), name="bandit_decision_named"),
            models.CheckConstraint(
                condition=Q(completed_at__isnull=True, executed_arm__isnull=True, observation="")
                | Q(completed_at__isnull=False, executed_arm__isnull=False),
                name="bandit_completed_names_its_arm",
            ),
        ]
        indexes = [
            models.Index(fields=["bandit", "created"], name="bandit_selection_created"),
            models.Index(fields=["-created", "-id"], name="bandit_selection_recent"),
            models.Index(
                fields=["bandit", "agent", "created"], condition=Q(completed_at=None), name="bandit_selection_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.decision_id}: {self.arm}"


class Assignment(models.Model):
    """A randomised holdout: whether an arm that matched was taken, by a draw whose chance is on record.

    What is taken or held out by chance, and by nothing else, tells what an arm causes. `observation` is the session
    that it was for, once that is known. `key_id` is as in a `Selection`, and so is whose the id is.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="assignments", db_index=False)
    decision_id = models.CharField(max_length=200)
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="assignments")
    agent = models.CharField(max_length=100, blank=True)
    context = models.CharField(max_length=100, blank=True, default="")
    taken = models.BooleanField()
    chance = models.FloatField(help_text="Of being taken.")
    key_id = models.CharField(max_length=8, blank=True, default="")
    created = models.DateTimeField()
    observation = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        ordering = ["-created", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "agent", "decision_id", "arm"], name="bandit_assigned_once"),
            models.CheckConstraint(condition=Q(chance__gt=0, chance__lte=1), name="bandit_chance_0_to_1"),
            models.CheckConstraint(condition=Q(taken=True) | Q(chance__lt=1), name="bandit_certain_is_taken"),
            models.CheckConstraint(condition=~Q(decision_id=""), name="bandit_assignment_named"),
        ]
        indexes = [
            models.Index(fields=["bandit", "arm", "created"], name="bandit_assignment_arm"),
            models.Index(fields=["observation"], name="bandit_assignment_of"),
            models.Index(
                fields=["bandit", "agent", "created"], condition=Q(observation=""), name="bandit_assignment_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.decision_id}: {self.arm} {'taken' if self.taken else 'held out'}"
