"""What a judge's provider lets us do: its state, every change of it, and the policy by which operators spend it."""

from enum import StrEnum

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import enum_field, one_of
from grading.vocabulary import Reason


class QuotaState(StrEnum):
    OPEN = "open"
    PACING = "pacing"
    EXHAUSTED = "exhausted"
    MISCONFIGURED = "misconfigured"
    PAUSED = "paused"


# Nothing is sent in these states, except a probe where the quota is exhausted.
CLOSED_STATES = (QuotaState.EXHAUSTED, QuotaState.MISCONFIGURED, QuotaState.PAUSED)


class QuotaQuerySet(models.QuerySet["Quota"]):
    def out(self) -> "QuotaQuerySet":
        """Those under which nobody can be judged at present."""
        return self.filter(state__in=CLOSED_STATES)


class Quota(models.Model):
    """What the provider lets us do now, per (key, model). `key` is a fingerprint of the API key, never the key.

    `limits` is what its last headers said, a minute: {"requests" | "input_tokens" | "output_tokens": {"limit": number,
    "remaining": number}}, at `limits_at`: None until a call was answered for the first time.
    """

    key = models.CharField(max_length=64)
    model = models.CharField(max_length=120)
    state = enum_field(QuotaState, default=QuotaState.OPEN)
    until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    detail = models.TextField(blank=True)
    changed_at = models.DateTimeField(default=timezone.now)
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
    def is_out(self) -> bool:
        return self.state in CLOSED_STATES

    @property
    def has_answered(self) -> bool:
        """Whether the model has ever answered a call with this key at this address."""
        return self.limits_at is not None

    @property
    def is_unheard(self) -> bool:
        """Whether nothing is known against the judge, and nothing for it either."""
        return self.state == QuotaState.OPEN and not self.has_answered


class QuotaTransition(models.Model):
    """One change of a quota's state; together they draw the outage timeline. `by` where a person did it."""

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
    """A column that holds a share in [0, 1]."""
    return models.FloatField(default=default, validators=[MinValueValidator(0), MaxValueValidator(1)])


def is_share(field: str) -> models.CheckConstraint:
    """The database's half of `share`."""
    condition = Q(**{f"{field}__gte": 0, f"{field}__lte": 1})
    return models.CheckConstraint(condition=condition, name=f"judge_policy_{field}")


class JudgePolicyManager(models.Manager["JudgePolicy"]):
    def current(self) -> "JudgePolicy":
        """The policy in force: the latest row, or the defaults, unsaved, where nobody has set any."""
        return self.order_by("-pk").first() or JudgePolicy()


class JudgePolicy(models.Model):
    """How operators spend the quota, append-only: the latest row holds, and undoing is a row like an earlier one.

    `daily_budget_usd` is enforced before each call (None: no limit). `reserved_share` of a minute's allowance is kept
    free for new sessions. `repeat_share` of sessions is judged twice, `second_share` by another model too: shares of
    all sessions, chosen by a hash of the session. Of each arm's abstentions at least `abstention_share` are judged
    first, from the reserve. `use_batches` sends the backlog at half price, within a day.
    """

    daily_budget_usd = models.FloatField(null=True, blank=True, validators=[MinValueValidator(0)])
    reserved_share = share(0.2)
    repeat_share = share(0.05)
    second_share = share(0.25)
    abstention_share = share(0.1)
    use_batches = models.BooleanField(default=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    objects = JudgePolicyManager()

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "judge policies"
        constraints = [
            is_share("reserved_share"),
            is_share("repeat_share"),
            is_share("second_share"),
            is_share("abstention_share"),
            models.CheckConstraint(
                condition=Q(daily_budget_usd=None) | Q(daily_budget_usd__gte=0), name="judge_policy_budget"
            ),
        ]

    def __str__(self) -> str:
        return f"judge policy {self.pk}"
