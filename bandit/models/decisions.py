"""Decisions: arms that were chosen, and arms that were taken or held out by chance."""

from django.db import models
from django.db.models import Q

from bandit.models.arms import Arm
from bandit.models.bandits import Bandit
from bandit.packed import PackedJSONField


class Selection(models.Model):
    """A decision: the chosen arm, the chances of all arms, and why. It earns a reward only by a finished session.

    `decision_id` is unique for each `agent`. `context` is the circumstance that the caller named, such as the category
    that a harness is chosen for. `eligible` maps every arm to its propensity, or to the reason why it was left out.
    With an override `propensity` is 1, as nothing was drawn, and `eligible` has the chances of the replaced draw.
    `key_id` names the key of the draw (`bandit.chance`), "" for old draws by a public hash.
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
    """A draw of a randomised holdout: whether a matching arm was `taken` or held out, and the chance of that.

    `observation` is the session that the decision led to, once known. `decision_id` and `key_id` are as in `Selection`.
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
