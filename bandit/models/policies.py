"""How a bandit's evidence is read and its arms are chosen: policies, calibrations, decisions on breaks."""

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from bandit.core.calibration import FallbackCalibration
from bandit.core.offsets import Stratum
from bandit.migrations._defaults import first_caps
from bandit.models.arms import Arm
from bandit.models.bandits import Bandit


class PolicyVersion(models.Model):
    """A version of a bandit's policy: how its evidence is read and its arms are chosen. Never changed, never deleted.

    The latest version counts; undoing a change appends another version with the earlier numbers. `weights` maps a
    source to [0, 1] if it differs from the site's own weight; `caps` maps a source to the most pseudo-observations that
    it may have in one arm.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="policies")
    version = models.PositiveIntegerField()
    half_life_days = models.FloatField(default=45, help_text="Evidence this old counts half.")
    long_run_half_life_days = models.FloatField(default=180, help_text="The same, for an arm's long-run mean.")
    prior_strength = models.FloatField(default=12, help_text="Pseudo-observations behind the long-run mean, from 5.")
    evidence_scale = models.FloatField(
        null=True, blank=True, help_text="Pseudo-observations a grade is worth, 1 to 8. Empty: estimated from grades."
    )
    exploration = models.FloatField(
        null=True,
        blank=True,
        default=0.005,
        help_text="The chance that all eligible arms share, whatever is known of them. Empty: each has the floor.",
    )
    floor = models.FloatField(
        default=0.01, help_text="The least chance of an eligible arm, where there is no exploration to share."
    )
    sharpness = models.FloatField(
        default=2, help_text="The power of P(best) that arms are chosen by: 1 is Thompson sampling, 2 tries less."
    )
    follows_change = models.BooleanField(
        default=True, help_text="What an arm was before it broke does not count, and what drifts is forgotten sooner."
    )
    varies_by_day = models.BooleanField(
        default=True, help_text="An arm's sessions of one day count less the more its days differ."
    )
    weights = models.JSONField(default=dict, blank=True)
    caps = models.JSONField(default=first_caps, blank=True)
    evidence_cap = models.FloatField(
        null=True, blank=True, help_text="The most pseudo-observations of one arm. Empty: no cap."
    )
    cost_weight = models.FloatField(default=0, help_text="Reward lost per dollar that a session cost.")
    consumption_per_agent = models.PositiveIntegerField(
        null=True, blank=True, default=2, help_text="Reading sessions of one agent a day, at most. Empty: any."
    )
    consumption_per_day = models.PositiveIntegerField(
        null=True, blank=True, help_text="Reading sessions of all agents a day, at most. Empty: any."
    )
    consumption_boost = models.FloatField(default=1.1, help_text="Factor on a reading arm's chance at .5 and more.")
    consumption_penalty = models.FloatField(default=0.8, help_text="Factor on a reading arm's chance below .3.")
    consumption_window_days = models.PositiveIntegerField(default=14)
    consumption_min_samples = models.PositiveIntegerField(default=5, help_text="Rewards before a penalty.")
    probation_sessions = models.PositiveIntegerField(default=3, help_text="Rewarded sessions that end a probation.")
    probation_per_agent = models.PositiveIntegerField(
        null=True, blank=True, default=1, help_text="Sessions of one agent a day with an arm on probation. Empty: any."
    )
    probation_per_day = models.PositiveIntegerField(
        null=True, blank=True, help_text="Sessions of all agents a day with an arm on probation. Empty: any."
    )
    salience_floor = models.FloatField(default=0.3, help_text="What a lesson that had no part in a session counts.")
    holdout = models.FloatField(default=0.4, help_text="Chance with which a matched lesson is held out.")
    holdout_decided = models.FloatField(
        null=True,
        blank=True,
        default=0.05,
        help_text="The same, of a lesson that has a verdict. Empty: as of any other.",
    )
    open_decisions = models.PositiveIntegerField(
        null=True, blank=True, default=8, help_text="Decisions of one agent that may wait for a session. Empty: any."
    )
    agent_cap = models.PositiveIntegerField(
        null=True,
        blank=True,
        default=3,
        help_text="Sessions of one agent on an arm and day that count in full, where others work too. Empty: all.",
    )
    agent_cap_alone = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The same on an arm that no other agent works on. Empty: as many as on any other.",
    )
    pooling = models.BooleanField(
        default=False, help_text="Arms of two parts, first/second, share what is known of them."
    )
    note = models.CharField(max_length=500, blank=True)
    by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "version"], name="bandit_policy_once"),
            models.CheckConstraint(
                condition=Q(half_life_days__gt=0),
                name="bandit_half_life_positive",
                violation_error_message="A half-life is a number of days above 0.",
            ),
            models.CheckConstraint(
                condition=Q(long_run_half_life_days__gte=F("half_life_days")),
                name="bandit_long_run_is_longer",
                violation_error_message="The long-run half-life is at least as long as the half-life.",
            ),
            models.CheckConstraint(
                condition=Q(prior_strength__gte=5),
                name="bandit_prior_from_5",
                violation_error_message="The prior needs a strength of at least 5 pseudo-observations.",
            ),
            models.CheckConstraint(
                condition=Q(evidence_scale__isnull=True) | Q(evidence_scale__gte=1, evidence_scale__lte=8),
                name="bandit_evidence_scale_1_to_8",
                violation_error_message="The evidence scale is from 1 to 8, or empty to estimate it.",
            ),
            models.CheckConstraint(
                condition=Q(floor__gte=0, floor__lte=1),
                name="bandit_floor_0_to_1",
                violation_error_message="The floor is a chance from 0 to 1.",
            ),
            models.CheckConstraint(
                condition=Q(exploration__isnull=True) | Q(exploration__gte=0, exploration__lte=0.5),
                name="bandit_exploration_0_to_half",
                violation_error_message="Exploration is a chance from 0 to .5, or empty for a floor of each arm.",
            ),
            models.CheckConstraint(
                condition=Q(sharpness__gte=1, sharpness__lte=4),
                name="bandit_sharpness_1_to_4",
                violation_error_message="The sharpness is a power from 1 to 4.",
            ),
            models.CheckConstraint(
                condition=Q(evidence_cap__isnull=True) | Q(evidence_cap__gt=0),
                name="bandit_evidence_cap_positive",
                violation_error_message="A cap on evidence is above 0, or empty for none.",
            ),
            models.CheckConstraint(
                condition=Q(cost_weight__gte=0),
                name="bandit_cost_weight_not_negative",
                violation_error_message="What a dollar costs in reward is a number from 0.",
            ),
            models.CheckConstraint(
                condition=Q(consumption_boost__gte=1, consumption_penalty__gt=0, consumption_penalty__lte=1),
                name="bandit_feedback_in_range",
                violation_error_message="The boost is a factor of at least 1, the penalty one above 0, up to 1.",
            ),
            models.CheckConstraint(
                condition=Q(consumption_window_days__gte=1, consumption_min_samples__gte=1),
                name="bandit_feedback_counts_from_1",
                violation_error_message="The window has days and a penalty needs rewards: at least 1 of each.",
            ),
            models.CheckConstraint(
                condition=Q(probation_sessions__gte=1),
                name="bandit_probation_from_1",
                violation_error_message="A probation ends with at least 1 rewarded session.",
            ),
            models.CheckConstraint(
                condition=Q(salience_floor__gte=0, salience_floor__lte=1, holdout__gte=0, holdout__lte=0.5),
                name="bandit_lesson_shares_in_range",
                violation_error_message="The salience floor is from 0 to 1, the holdout a chance from 0 to .5.",
            ),
            models.CheckConstraint(
                condition=Q(holdout_decided__isnull=True) | Q(holdout_decided__gte=0, holdout_decided__lte=0.5),
                name="bandit_decided_holdout_in_range",
                violation_error_message="The holdout of a decided lesson is a chance from 0 to .5, or empty.",
            ),
            models.CheckConstraint(
                condition=Q(open_decisions__isnull=True) | Q(open_decisions__gte=1),
                name="bandit_open_decisions_from_1",
                violation_error_message="At least 1 decision may wait for its session, or empty for any number.",
            ),
            models.CheckConstraint(
                condition=Q(agent_cap__isnull=True) | Q(agent_cap__gte=1),
                name="bandit_agent_cap_from_1",
                violation_error_message="At least 1 session of an agent counts, or empty for all.",
            ),
            models.CheckConstraint(
                condition=Q(agent_cap=None) | Q(agent_cap_alone=None) | Q(agent_cap_alone__gte=F("agent_cap")),
                name="bandit_agent_cap_alone_from_cap",
                violation_error_message="The cap of an agent alone on an arm is at least that of others, or empty.",
            ),
            models.CheckConstraint(condition=~Q(by=""), name="bandit_policy_says_who"),
        ]

    def __str__(self) -> str:
        return f"{self.bandit.name}/{self.version}"

    def chance_of_taking(self, *, is_decided: bool) -> float:
        """The chance that a matched lesson is taken, in [0.5, 1]. That of a decided lesson is never lower."""
        holdout = self.holdout
        if is_decided and self.holdout_decided is not None:
            holdout = min(self.holdout_decided, self.holdout)
        return 1 - holdout


class PolicyText(models.Model):
    """The caller's description of the policy behind a ledger entry, stored once for all entries that name it."""

    text = models.CharField(max_length=200, unique=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="bandit_policy_text_said")]

    def __str__(self) -> str:
        return self.text


class CalibrationVersion(models.Model):
    """How a bandit's rewards are read: fallbacks beside verdicts, and machines' grades beside people's.

    Never changed, never deleted. The latest version counts; if it is not `enabled`, rewards are read as given. `by`
    names who made it, in the caller's words.

    `fallbacks` is a `bandit.core.calibration.FallbackCalibration` as JSON; null: fallbacks are read like any other
    grade. `offsets` is a list of `bandit.core.machine_human.Offset` as JSON, fitted to grades as `fallbacks` reads
    them. `target` names the judge whose verdicts `fallbacks` was fitted to, in the caller's words, empty at the start.
    `accepted`: a person accepted it, or it is the first; others were fitted automatically.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="calibrations")
    version = models.PositiveIntegerField()
    enabled = models.BooleanField(default=True)
    fallbacks = models.JSONField(null=True, blank=True)
    offsets = models.JSONField(default=list, blank=True)
    target = models.CharField(max_length=300, blank=True)
    accepted = models.BooleanField(default=False)
    note = models.CharField(max_length=500, blank=True)
    by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "version"], name="bandit_calibrationversion_once"),
            models.CheckConstraint(condition=Q(version__gte=1), name="bandit_calibrationversion_from_1"),
            models.CheckConstraint(condition=~Q(by=""), name="bandit_calibrationversion_says_who"),
        ]

    def __str__(self) -> str:
        return f"{self.bandit}, version {self.version}" + ("" if self.enabled else " (off)")

    @property
    def fallback_calibration(self) -> FallbackCalibration | None:
        """How fallbacks are read; None if they are read like any other grade."""
        return None if self.fallbacks is None or not self.enabled else FallbackCalibration.from_json(self.fallbacks)

    @property
    def offset_by_stratum(self) -> dict[Stratum, float]:
        """The offsets by (arm, source, stratum); empty if it is off."""
        if not self.enabled:
            return {}
        return {(row["arm"], row["source"], row["stratum"]): row["offset"] for row in self.offsets}


class BreakDecision(models.Model):
    """A person's decision on a break of an arm: confirmed, or rejected. Never changed; the latest for a day counts.

    `day` is the first day after the break. A break that is `kept` is confirmed, whatever later rewards say. After a
    rejection the arm has no break up to the day of the decision.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="break_decisions")
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="break_decisions")
    day = models.DateField()
    kept = models.BooleanField()
    by = models.CharField(max_length=200)
    note = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [models.CheckConstraint(condition=~Q(by=""), name="bandit_break_decision_says_who")]

    def __str__(self) -> str:
        return f"{self.arm}, {self.day}: {'kept' if self.kept else 'taken back'}"
