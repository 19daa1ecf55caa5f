"""The judge's work: job rows (the queue, L7), attempt rows (nothing silent, L1), batches, runs of judging again."""

from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from bandit.packed import PackedJSONField
from grading.models.agents import ApiToken
from grading.models.fields import Literal, enum_field, hash_field, one_of
from grading.models.redacted import redacted_text
from grading.models.rubrics import Rubric
from grading.models.sessions import Session
from grading.vocabulary import Reason


class JudgeRole(StrEnum):
    """Which judge: the first; the one asked while the first's service is in trouble; another family's, for a share."""

    FIRST = "first"
    FALLBACK = "fallback"
    SECOND = "second"


class Purpose(StrEnum):
    """What a verdict is for: the chain, as the first or a further reading of a session; or, beside it, to see how
    repeatable the judge is, what another one says, or what the judge would say under a rubric that is not in force.
    """

    VERDICT = "verdict"
    SAMPLE = "sample"
    REPEAT = "repeat"
    SECOND = "second"
    TRIAL = "trial"

    @property
    def words(self) -> str:
        return PURPOSE_WORDS[self]


PURPOSE_WORDS = {
    Purpose.VERDICT: "verdict",
    Purpose.SAMPLE: "read again",
    Purpose.REPEAT: "asked twice",
    Purpose.SECOND: "second opinion",
    Purpose.TRIAL: "trial of a rubric",
}


class JobState(StrEnum):
    """`SENT` is in a batch at the provider, and stays there for up to a day. A person called a `CANCELLED` one off.

    `PARKED`: it failed again and again while others did not, and each try may be billed; it is tried once a day for a
    week, and then when a person says so.
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
        """Those from which a verdict may still come."""
        return self.filter(state__in=[Literal(state) for state in OPEN_STATES])

    def queued(self) -> "JudgeJobQuerySet":
        """Those that wait for a worker."""
        return self.filter(state=Literal(JobState.QUEUED))

    def held_by(self, *tokens: UUID | str) -> "JudgeJobQuerySet":
        """Those whose lease is one of these: a worker's own, unless it came back too late."""
        return self.filter(state=JobState.LEASED, lease_token__in=tokens)

    def sent_with(self, attempts: "models.QuerySet[JudgeAttempt]") -> "JudgeJobQuerySet":
        """Those that are in a batch with these attempts."""
        return self.filter(state=JobState.SENT, lease_token__in=attempts.values("lease_token"))

    def parked(self) -> "JudgeJobQuerySet":
        """Those that are not tried until a day, or a person, comes."""
        return self.filter(state=JobState.PARKED)

    def queue_again(self, **columns: Any) -> int:
        """End their leases and put them back into the queue; how many."""
        return self.update(state=JobState.QUEUED, lease_token=None, leased_until=None, **columns)


class JudgeRun(models.Model):
    """Judging a selection of sessions again, as somebody asked for: its jobs point here, so that it shows progress.

    `sessions` are the ids of the selection and `total` their number, fixed at the start. The first `placed` of them are
    dealt with: each has a job, or is counted in `left_out` under the reason why none was made. So the row alone says
    where to go on after a crash.
    """

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="runs")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT)
    why = models.CharField(max_length=300, blank=True)
    estimated_usd = models.FloatField(null=True, blank=True)
    sessions = models.JSONField(default=list, blank=True)
    total = models.PositiveIntegerField(default=0)
    placed = models.PositiveIntegerField(default=0)
    left_out = models.JSONField(default=dict, blank=True)
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
    """One verdict to be had. Claimed by a conditional UPDATE; `lease_token` fences a worker that comes back late.

    `reason` says why it is (still) waiting, or why it was abandoned. At most one open job a session and purpose. Those
    whose verdict is `stale` go first, and `unread` is the fingerprint of the evidence that it has not read, so that
    nothing is asked again twice for the same. Then come `reserved` ones, whose sessions were drawn to speak for their
    arm's abstentions (no more of them than `judging.lanes` lets), and new sessions before `backlog`; of these the
    agents take turns, each with what is of more `worth` (what the verdict should move in the bandit, in reward) first.
    A further reading is the `sample`-th of the session whose first verdict is `sample_of`; such jobs are the last of
    the backlog.
    `input_tokens` is the prompt's size as estimated, once it was built; `losses` counts workers that never came back.
    Of its `attempts` that failed, `own_failures` are those during which the judge answered other sessions:
    `others_graded` of them in all. `parked_at` is when it was first parked.
    """

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="judge_jobs")
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT)
    state = enum_field(JobState, default=JobState.QUEUED)
    reason = enum_field(Reason, blank=True, default=Reason.AWAITING_JUDGE)
    purpose = enum_field(Purpose, default=Purpose.VERDICT)
    judge = enum_field(JudgeRole, default=JudgeRole.FIRST)
    run = models.ForeignKey(
        JudgeRun, null=True, blank=True, on_delete=models.PROTECT, related_name="jobs", db_index=False
    )
    stale = models.BooleanField(default=False)
    unread = models.CharField(max_length=16, blank=True, default="")
    reserved = models.BooleanField(default=False)
    sample = models.PositiveSmallIntegerField(default=1)
    sample_of = models.ForeignKey(
        "grading.Grade", null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    backlog = models.BooleanField(default=False)
    worth = models.FloatField(default=0)
    input_tokens = models.PositiveIntegerField(null=True, blank=True)
    losses = models.PositiveIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    own_failures = models.PositiveIntegerField(default=0)
    others_graded = models.PositiveIntegerField(default=0)
    parked_at = models.DateTimeField(null=True, blank=True)
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
        """Whether its answer stands beside the chain."""
        return self.purpose not in (Purpose.VERDICT, Purpose.SAMPLE)

    @property
    def is_first(self) -> bool:
        """Whether it asks for the verdict itself, and not for one more reading or an opinion beside it."""
        return self.purpose == Purpose.VERDICT


class BatchState(StrEnum):
    """`SENDING` until the provider has named it; `LOST` where that never happened."""

    SENDING = "sending"
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"


OPEN_BATCH_STATES = (BatchState.SENDING, BatchState.RUNNING)


class JudgeBatchQuerySet(models.QuerySet["JudgeBatch"]):
    def open(self) -> "JudgeBatchQuerySet":
        """Those from which results may still come."""
        return self.filter(state__in=OPEN_BATCH_STATES)


class JudgeBatch(models.Model):
    """Many calls sent as one through the provider's batch API; its attempts point here.

    `ENDED` without a `provider_id`: the provider took nothing in. `polled_at` is when it was last asked after.
    """

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
    """How one call ended. `RUNNING` until it does; `LOST` where the worker died or its lease moved on."""

    RUNNING = "running"
    GRADED = "graded"
    DEFERRED = "deferred"
    REFUSED = "refused"
    INVALID = "invalid"
    LOST = "lost"


class JudgeAttempt(models.Model):
    """One call to the judge. The row is written before the call, so that nothing is ever sent unrecorded.

    `payer` is the token on whose daily quota its cost counts; None where that is nobody's.
    `estimated_usd` is what it was expected to cost, and stays where the cost may have been incurred but was not told
    (a lost worker, a timeout); None where nothing was charged.
    """

    job = models.ForeignKey(JudgeJob, on_delete=models.PROTECT, related_name="attempt_rows")
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
    estimated_usd = models.FloatField(null=True, blank=True)
    cost_usd = models.FloatField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)
    prompt_sha256 = hash_field(blank=True)
    # What the evidence showed when the prompt was made (`grading.reward.freshness.Shown`), until the verdict says so;
    # empty where unknown.
    read = PackedJSONField(default=dict, blank=True)
    # What was judged; and the event numbers that a reply may cite that comes long after (of a batch), as [first, last]
    # pairs.
    inputs_sha256 = hash_field(blank=True)
    citable = models.JSONField(default=list, blank=True)
    # What came of the call (`judging.answers`), from when it is known until grade and job say so too; None else.
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
