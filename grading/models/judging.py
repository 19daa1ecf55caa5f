"""The judge's work: job rows (the queue, L7), attempt rows (nothing silent, L1), quota as an object, rubrics."""

from enum import StrEnum

from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.core.vocabulary import Reason
from grading.models.fields import enum_field, one_of
from grading.models.sessions import Session


class RubricQuerySet(models.QuerySet["Rubric"]):
    def active(self) -> "Rubric | None":
        """The rubric that is asked by now; None where an operator has put none in force."""
        return self.filter(is_active=True).first()


class Rubric(models.Model):
    """What the judge is asked, versioned by content: `sha256` is the hash of (text, dimensions, bands)."""

    sha256 = models.CharField(max_length=64, unique=True)
    title = models.CharField(max_length=120)
    text = models.TextField()
    dimensions = models.JSONField(default=list)
    bands = models.JSONField(default=list)
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


class JobState(StrEnum):
    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"
    ABANDONED = "abandoned"


OPEN_STATES = (JobState.QUEUED, JobState.LEASED)


class JudgeJobQuerySet(models.QuerySet["JudgeJob"]):
    def open(self) -> "JudgeJobQuerySet":
        """Those from which a verdict may still come."""
        return self.filter(state__in=OPEN_STATES)


class JudgeJob(models.Model):
    """One verdict to be had. Claimed by a conditional UPDATE; `lease_token` fences a worker that comes back late.

    `reason` says why it is (still) waiting, or why it was abandoned. At most one open job a session.
    """

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="judge_jobs")
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT)
    state = enum_field(JobState, default=JobState.QUEUED)
    reason = enum_field(Reason, blank=True, default=Reason.AWAITING_JUDGE)
    priority = models.IntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=timezone.now)
    lease_token = models.UUIDField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = JudgeJobQuerySet.as_manager()

    class Meta:
        ordering = ["-priority", "next_attempt_at", "pk"]
        constraints = [
            one_of("judge_job", "state", JobState),
            one_of("judge_job", "reason", Reason),
            models.UniqueConstraint(
                fields=["session"],
                condition=Q(state__in=OPEN_STATES),
                name="judge_job_one_open",
            ),
            models.CheckConstraint(
                condition=~Q(state=JobState.LEASED) | Q(lease_token__isnull=False, leased_until__isnull=False),
                name="judge_job_leased_has_lease",
            ),
        ]
        indexes = [models.Index(fields=["state", "next_attempt_at"], name="judge_job_due")]

    def __str__(self) -> str:
        return f"judge {self.session} ({self.state})"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES


class AttemptOutcome(StrEnum):
    """How one call ended. `RUNNING` until it does; `LOST` where the worker died or its lease moved on."""

    RUNNING = "running"
    GRADED = "graded"
    DEFERRED = "deferred"
    REFUSED = "refused"
    INVALID = "invalid"
    LOST = "lost"


class JudgeAttempt(models.Model):
    """One call to the judge. The row is written before the call, so that nothing is ever sent unrecorded."""

    job = models.ForeignKey(JudgeJob, on_delete=models.PROTECT, related_name="attempt_rows")
    lease_token = models.UUIDField()
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = enum_field(AttemptOutcome, default=AttemptOutcome.RUNNING)
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    error_type = models.CharField(max_length=80, blank=True)
    request_id = models.CharField(max_length=120, blank=True)
    model = models.CharField(max_length=120, blank=True)
    input_tokens = models.PositiveIntegerField(null=True, blank=True)
    output_tokens = models.PositiveIntegerField(null=True, blank=True)
    cache_read_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost_usd = models.FloatField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)
    prompt_sha256 = models.CharField(max_length=64, blank=True)
    detail = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            one_of("judge_attempt", "outcome", AttemptOutcome),
            one_of("judge_attempt", "reason", Reason),
            models.CheckConstraint(
                condition=Q(outcome=AttemptOutcome.RUNNING) | Q(finished_at__isnull=False),
                name="judge_attempt_ended_has_time",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.pk} {self.outcome}"


class QuotaState(StrEnum):
    OPEN = "open"
    PACING = "pacing"
    EXHAUSTED = "exhausted"
    MISCONFIGURED = "misconfigured"


# Nothing is sent in these states, except a probe.
CLOSED_STATES = (QuotaState.EXHAUSTED, QuotaState.MISCONFIGURED)


class QuotaQuerySet(models.QuerySet["Quota"]):
    def out(self) -> "QuotaQuerySet":
        """Those under which nobody can be judged at present."""
        return self.filter(state__in=CLOSED_STATES)


class Quota(models.Model):
    """What the provider lets us do now, per (key, model). `key` is a fingerprint of the API key, never the key."""

    key = models.CharField(max_length=64)
    model = models.CharField(max_length=120)
    state = enum_field(QuotaState, default=QuotaState.OPEN)
    until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    detail = models.TextField(blank=True)
    changed_at = models.DateTimeField(default=timezone.now)

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


class QuotaTransition(models.Model):
    """One change of a quota's state; together they draw the outage timeline."""

    quota = models.ForeignKey(Quota, on_delete=models.PROTECT, related_name="transitions")
    state = enum_field(QuotaState)
    until = models.DateTimeField(null=True, blank=True)
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    detail = models.TextField(blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        constraints = [one_of("quota_transition", "state", QuotaState), one_of("quota_transition", "reason", Reason)]

    def __str__(self) -> str:
        return f"{self.quota_id} {self.state} at {self.at:%F %T}"
