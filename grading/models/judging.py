"""Rubrics (versioned by content), and the judge's jobs, attempts (one for each call), batches and runs."""

from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from bandit.packed import PackedJSONField
from grading.models.agents import ApiToken
from grading.models.fields import Literal, enum_field, hash_field, one_of, redacted_text
from grading.models.sessions import Session
from grading.vocabulary import LabelledEnum, Reason, WorkKind


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


class JudgeRole(StrEnum):
    """FALLBACK judges while FIRST is out of service. SECOND, of another model family, judges a share of sessions."""

    FIRST = "first"
    FALLBACK = "fallback"
    SECOND = "second"


class Purpose(LabelledEnum):
    """What a verdict is for.

    VERDICT and SAMPLE (a further reading) enter the reward chain. The others are parallel: REPEAT measures how
    repeatable the judge is, SECOND is another judge's opinion, and TRIAL tries out an inactive rubric.
    """

    VERDICT = "verdict"
    SAMPLE = "sample", "read again"
    REPEAT = "repeat", "asked twice"
    SECOND = "second", "second opinion"
    TRIAL = "trial", "trial of a rubric"


class JobState(StrEnum):
    """A SENT job is in a batch at the provider, for up to a day. A CANCELLED one was cancelled by a person.

    A PARKED job failed repeatedly while other jobs did not. As each attempt may be billed, it is retried once a day for
    a week, and after that only when a person retries it.
    """

    QUEUED = "queued"
    LEASED = "leased"
    SENT = "sent"
    PARKED = "parked"
    DONE = "done"
    ABANDONED = "abandoned"
    CANCELLED = "cancelled"


OPEN_STATES = (JobState.QUEUED, JobState.LEASED, JobState.SENT, JobState.PARKED)


class JudgeJobQuerySet(models.QuerySet["JudgeJob"]):
    def open(self) -> "JudgeJobQuerySet":
        """Jobs from which a verdict may still come."""
        return self.filter(state__in=[Literal(state) for state in OPEN_STATES])

    def queued(self) -> "JudgeJobQuerySet":
        """Jobs that wait for a worker."""
        return self.filter(state=Literal(JobState.QUEUED))

    def held_by(self, *tokens: UUID | str) -> "JudgeJobQuerySet":
        """Jobs leased under these tokens. A worker that comes back too late doesn't find its job here."""
        return self.filter(state=JobState.LEASED, lease_token__in=tokens)

    def sent_with(self, attempts: "models.QuerySet[JudgeAttempt]") -> "JudgeJobQuerySet":
        """Jobs that were sent in a batch with these attempts."""
        return self.filter(state=JobState.SENT, lease_token__in=attempts.values("lease_token"))

    def parked(self) -> "JudgeJobQuerySet":
        """Jobs that are retried once a day, or by a person."""
        return self.filter(state=JobState.PARKED)

    def queue_again(self, **columns: Any) -> int:
        """End the leases and put the jobs back into the queue. Returns how many."""
        return self.update(state=JobState.QUEUED, lease_token=None, leased_until=None, **columns)


class JudgeRun(models.Model):
    """A person's request to judge a selection of sessions again.

    The first `placed` sessions are done: each has a job, or is counted in `left_out`. After a crash, the run continues
    from there.
    """

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="runs")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT)
    why = models.CharField(max_length=300, blank=True)
    estimated_usd = models.FloatField(null=True, blank=True)
    sessions = models.JSONField(default=list, blank=True)  # keys, fixed at the start
    total = models.PositiveIntegerField(default=0)
    placed = models.PositiveIntegerField(default=0)
    left_out = models.JSONField(default=dict, blank=True)  # sessions without a new job, by reason
    created_at = models.DateTimeField(default=timezone.now)
    cancelled_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(placed__lte=models.F("total")), name="judge_run_placed_within_total")
        ]

    def __str__(self) -> str:
        return f"run {self.pk} under {self.rubric}"


class JudgeJob(models.Model):
    """One verdict to be obtained. A worker claims a job by a conditional UPDATE that sets `lease_token`. The token
    fences off a worker whose lease has ended.

    The order: stale verdicts, reserved jobs (as many as `judging.ordering` allows), new sessions, backlog. Within the
    last two the agents take turns, each with the job of the highest `worth` first; further readings come last.
    """

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="judge_jobs")
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT)
    state = enum_field(JobState, default=JobState.QUEUED)
    # Why it is waiting, or was abandoned.
    reason = enum_field(Reason, blank=True, default=Reason.AWAITING_JUDGE)
    purpose = enum_field(Purpose, default=Purpose.VERDICT)
    judge = enum_field(JudgeRole, default=JudgeRole.FIRST)
    run = models.ForeignKey(
        JudgeRun, null=True, blank=True, on_delete=models.PROTECT, related_name="jobs", db_index=False
    )
    # The session's verdict has not read all of its evidence. `unread` is a fingerprint of the unread part, so that the
    # same evidence is submitted to the judge once.
    stale = models.BooleanField(default=False)
    unread = models.CharField(max_length=16, blank=True, default="")
    # Its session was drawn at random to represent its arm's abstentions.
    reserved = models.BooleanField(default=False)
    # For a further reading: its number, and the session's first verdict.
    sample = models.PositiveSmallIntegerField(default=1)
    sample_of = models.ForeignKey(
        "grading.Grade", null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    backlog = models.BooleanField(default=False)
    worth = models.FloatField(default=0)  # how far the verdict is expected to move the bandit, in reward
    input_tokens = models.PositiveIntegerField(null=True, blank=True)  # estimated from the prompt
    losses = models.PositiveIntegerField(default=0)  # workers that never came back
    attempts = models.PositiveIntegerField(default=0)
    # Failed attempts during which the judge graded other sessions, and how many of these it graded in all.
    own_failures = models.PositiveIntegerField(default=0)
    others_graded = models.PositiveIntegerField(default=0)
    parked_at = models.DateTimeField(null=True, blank=True)  # for the first time
    next_attempt_at = models.DateTimeField(default=timezone.now)
    lease_token = models.UUIDField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = JudgeJobQuerySet.as_manager()

    class Meta:
        ordering = ["-stale", "-reserved", "backlog", "-worth", "pk"]
        constraints = [
            one_of("judge_job", "state", JobState),
            one_of("judge_job", "purpose", Purpose),
            one_of("judge_job", "judge", JudgeRole),
            one_of("judge_job", "reason", Reason),
            models.UniqueConstraint(
                fields=["session", "purpose"],
                condition=Q(state__in=OPEN_STATES),
                name="judge_job_one_open",
            ),
            models.CheckConstraint(
                condition=~Q(state=JobState.LEASED) | Q(lease_token__isnull=False, leased_until__isnull=False),
                name="judge_job_leased_has_lease",
            ),
            models.CheckConstraint(
                condition=Q(purpose=Purpose.SAMPLE, sample__gt=1, sample_of__isnull=False)
                | (~Q(purpose=Purpose.SAMPLE) & Q(sample=1, sample_of=None)),
                name="judge_job_sample_is_of_a_verdict",
            ),
        ]
        indexes = [
            models.Index(fields=["state", "next_attempt_at"], name="judge_job_due"),
            models.Index(
                fields=["-stale", "-reserved", "backlog", "-worth", "id"],
                condition=Q(state=JobState.QUEUED),
                name="judge_job_promised",
            ),
            models.Index(fields=["created_at"], name="judge_job_came"),
            models.Index(fields=["finished_at", "created_at"], name="judge_job_went"),
            models.Index(fields=["run"], condition=Q(run__isnull=False), name="judge_job_runs"),
            models.Index(fields=["sample_of"], condition=Q(sample_of__isnull=False), name="judge_job_samples"),
        ]

    def __str__(self) -> str:
        return f"judge {self.session} ({self.state})"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES

    @property
    def is_parallel(self) -> bool:
        """Whether the reward chain ignores its verdict."""
        return self.purpose not in (Purpose.VERDICT, Purpose.SAMPLE)

    @property
    def is_first(self) -> bool:
        """Whether it is for the session's first reading, not a further one or a parallel opinion."""
        return self.purpose == Purpose.VERDICT


class BatchState(StrEnum):
    """SENDING until the provider has assigned an id, LOST if it never did."""

    SENDING = "sending"
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"


OPEN_BATCH_STATES = (BatchState.SENDING, BatchState.RUNNING)


class JudgeBatchQuerySet(models.QuerySet["JudgeBatch"]):
    def open(self) -> "JudgeBatchQuerySet":
        """Batches from which results may still come."""
        return self.filter(state__in=OPEN_BATCH_STATES)


class JudgeBatch(models.Model):
    """Many calls sent together through the provider's batch API."""

    # Empty in an ENDED batch if the provider accepted none of the calls.
    provider_id = models.CharField(max_length=120, blank=True)
    judge = enum_field(JudgeRole, default=JudgeRole.FIRST)
    model = models.CharField(max_length=120, blank=True)
    state = enum_field(BatchState, default=BatchState.SENDING)
    created_at = models.DateTimeField(default=timezone.now)
    polled_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    detail = models.TextField(blank=True)

    objects = JudgeBatchQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "judge batches"
        constraints = [one_of("judge_batch", "state", BatchState), one_of("judge_batch", "judge", JudgeRole)]

    def __str__(self) -> str:
        return f"batch {self.pk} {self.state}"


class AttemptOutcome(StrEnum):
    """How a call ended. RUNNING until it does, LOST if the worker died or lost its lease."""

    RUNNING = "running"
    GRADED = "graded"
    DEFERRED = "deferred"
    REFUSED = "refused"
    INVALID = "invalid"
    LOST = "lost"


class JudgeAttempt(models.Model):
    """One call to the judge. The row is written before the call, so that nothing is sent unrecorded."""

    job = models.ForeignKey(JudgeJob, on_delete=models.PROTECT, related_name="attempt_rows")
    # The token whose daily quota pays for it, if any.
    payer = models.ForeignKey(
        ApiToken, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    lease_token = models.UUIDField()
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = enum_field(AttemptOutcome, default=AttemptOutcome.RUNNING)
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    error_type = models.CharField(max_length=80, blank=True)
    request_id = models.CharField(max_length=120, blank=True)
    judge = enum_field(JudgeRole, default=JudgeRole.FIRST)
    model = models.CharField(max_length=120, blank=True)
    batch = models.ForeignKey(
        JudgeBatch, null=True, blank=True, on_delete=models.PROTECT, related_name="attempt_rows", db_index=False
    )
    input_tokens = models.PositiveIntegerField(null=True, blank=True)
    output_tokens = models.PositiveIntegerField(null=True, blank=True)
    cache_read_tokens = models.PositiveIntegerField(null=True, blank=True)
    cache_write_tokens = models.PositiveIntegerField(null=True, blank=True)
    # The expected cost. It counts if the actual one is unknown (a lost worker, a timeout). None if nothing was charged.
    estimated_usd = models.FloatField(null=True, blank=True)
    cost_usd = models.FloatField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)
    prompt_sha256 = hash_field(blank=True)
    # The evidence that the prompt was built from (`grading.reward.freshness`), until the verdict records it.
    read = PackedJSONField(default=dict, blank=True)
    # What was judged, and the event numbers that a late reply (of a batch) may cite, as [first, last] pairs.
    inputs_sha256 = hash_field(blank=True)
    citable = models.JSONField(default=list, blank=True)
    # The result of the call (`judging.answers`), until the grade and the job are updated. Otherwise None.
    answer = models.JSONField(null=True, blank=True)
    detail = redacted_text(blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            one_of("judge_attempt", "outcome", AttemptOutcome),
            one_of("judge_attempt", "reason", Reason),
            one_of("judge_attempt", "judge", JudgeRole),
            models.CheckConstraint(
                condition=Q(outcome=AttemptOutcome.RUNNING) | Q(finished_at__isnull=False),
                name="judge_attempt_ended_has_time",
            ),
        ]
        indexes = [
            models.Index(fields=["started_at"], name="judge_attempt_recent"),
            models.Index(fields=["outcome", "finished_at"], name="judge_attempt_by_outcome"),
            models.Index(fields=["model", "started_at"], condition=Q(reason__gt=""), name="judge_attempt_troubled"),
            models.Index(fields=["payer"], condition=Q(payer__isnull=False), name="judge_attempt_payers"),
            models.Index(fields=["batch"], condition=Q(batch__isnull=False), name="judge_attempt_batches"),
            models.Index(fields=["id"], condition=Q(answer__isnull=False), name="judge_attempt_answered"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.pk} {self.outcome}"
