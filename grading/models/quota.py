"""The quota that a judge's provider grants, each change of its state, and the operators' policy for spending it."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import enum_field, one_of, unit_interval
from grading.vocabulary import LabelledEnum, Reason


class QuotaState(LabelledEnum):
    """Whether a judge can be called. The labels are what every page, alarm and message calls the state."""

    OPEN = "open"
    PACING = "pacing", "paced"
    EXHAUSTED = "exhausted", "out"
    MISCONFIGURED = "misconfigured"
    PAUSED = "paused"


# In these states nothing is sent, except a probe while the quota is exhausted.
CLOSED_STATES = (QuotaState.EXHAUSTED, QuotaState.MISCONFIGURED, QuotaState.PAUSED)


def state_label(state: str, reason: str) -> str:
    """A state for people, in lower case. A spent budget of the site differs from a spent quota of the provider."""
    if state == QuotaState.EXHAUSTED and reason == Reason.BUDGET_SPENT:
        return "budget spent"
    return QuotaState(state).words


class QuotaQuerySet(models.QuerySet["Quota"]):
    def out(self) -> "QuotaQuerySet":
        """Quotas in a state in which nothing can be judged."""
        return self.filter(state__in=CLOSED_STATES)


class Quota(models.Model):
    """What the provider currently allows for one API key and model."""

    key = models.CharField(max_length=64)  # a fingerprint of the API key
    model = models.CharField(max_length=120)
    state = enum_field(QuotaState, default=QuotaState.OPEN)
    until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    detail = models.TextField(blank=True)
    changed_at = models.DateTimeField(default=timezone.now)
    # The limits per minute in the last reply's headers: {"requests" | "input_tokens" | "output_tokens": {"limit":
    # number, "remaining": number}}. `limits_at` is None until the first call was answered.
    limits = models.JSONField(default=dict, blank=True)
    limits_at = models.DateTimeField(null=True, blank=True)

    objects = QuotaQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["key", "model"], name="quota_once"),
            one_of("quota", "state", QuotaState),
            one_of("quota", "reason", Reason),
        ]

    def __str__(self) -> str:
        return f"{self.model}: {self.state}"

    @property
    def state_label(self) -> str:
        return state_label(self.state, self.reason)

    @property
    def is_out(self) -> bool:
        return self.state in CLOSED_STATES

    @property
    def has_answered(self) -> bool:
        """Whether the model has ever answered a call with this key."""
        return self.limits_at is not None

    @property
    def is_untested(self) -> bool:
        """Whether no call has been answered or refused yet."""
        return self.state == QuotaState.OPEN and not self.has_answered


class QuotaTransition(models.Model):
    """One change of a quota's state, by a person or by the site. The timeline of outages is drawn from these."""

    quota = models.ForeignKey(Quota, on_delete=models.PROTECT, related_name="transitions")
    state = enum_field(QuotaState)
    until = models.DateTimeField(null=True, blank=True)
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    detail = models.TextField(blank=True)
    at = models.DateTimeField(default=timezone.now)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT)

    class Meta:
        ordering = ["pk"]
        constraints = [one_of("quota_transition", "state", QuotaState), one_of("quota_transition", "reason", Reason)]

    def __str__(self) -> str:
        return f"{self.quota_id} {self.state} at {self.at:%F %T}"


def share(default: float) -> "models.FloatField[float, float]":
    """A column for a share from 0 to 1."""
    return models.FloatField(default=default, validators=[MinValueValidator(0), MaxValueValidator(1)])


class JudgePolicyManager(models.Manager["JudgePolicy"]):
    def current(self) -> "JudgePolicy":
        """The current policy: the latest row, or an unsaved one with the defaults if there is none."""
        return self.order_by("-pk").first() or JudgePolicy()


class JudgePolicy(models.Model):
    """How operators spend the quota. Append-only: the latest row is current, and an undo is a copy of an older row."""

    # Enforced before each call. None means no limit.
    daily_budget_usd = models.FloatField(null=True, blank=True, validators=[MinValueValidator(0)])
    # Of each minute's allowance, kept free for new sessions.
    reserved_share = share(0.2)
    # Of all sessions, drawn at random: judged twice, and judged by another model too.
    repeat_share = share(0.05)
    second_share = share(0.25)
    # Of each arm's abstentions, judged first, from the reserve.
    abstention_share = share(0.1)
    # Send the backlog in batches: at half price, within a day.
    use_batches = models.BooleanField(default=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    objects = JudgePolicyManager()

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "judge policies"
        constraints = [
            unit_interval("reserved_share", "judge_policy_reserved_share"),
            unit_interval("repeat_share", "judge_policy_repeat_share"),
            unit_interval("second_share", "judge_policy_second_share"),
            unit_interval("abstention_share", "judge_policy_abstention_share"),
            models.CheckConstraint(
                condition=Q(daily_budget_usd=None) | Q(daily_budget_usd__gte=0), name="judge_policy_budget"
            ),
        ]

    def __str__(self) -> str:
        return f"judge policy {self.pk}"
