"""Grades (what each source found) and settlements (the reward that follows). Both are append-only in the database."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import (
    enum_field,
    hash_field,
    one_of,
    redacted_packed,
    redacted_packed_text,
    short_hash,
    unit_interval,
)
from grading.models.judging import Purpose
from grading.models.sessions import Session
from grading.vocabulary import Reason, Source, Status


def question_of(rubric: str, version: str) -> int:
    """A hash of the rubric and the digest version of a verdict. Verdicts with equal hashes answer the same question."""
    return short_hash(rubric, version)


# Two scored grades of a session by machines must differ in one of these columns.
IDENTITY = ("source", "inputs_sha256", "version", "model", "route", "rubric", "sample", "replicate")


class GradeQuerySet(models.QuerySet["Grade"]):
    def bulk_create(self, objs: Iterable["Grade"], *args: Any, **kwargs: Any) -> "list[Grade]":
        grades = list(objs)
        for grade in grades:
            grade.set_derived_columns()
        return super().bulk_create(grades, *args, **kwargs)

    def chain(self) -> "GradeQuerySet":
        """Grades that the reward chain reads: all but parallel verdicts."""
        return self.filter(parallel=False)

    def first_readings(self) -> "GradeQuerySet":
        """Grades that aren't a judge's second or third reading of a session."""
        return self.filter(sample=1)

    def verdicts(self) -> "GradeQuerySet":
        """Scored grades by judges, including parallel ones."""
        return self.filter(source=Source.JUDGE, status=Status.SCORED)

    def without_judge(self) -> "GradeQuerySet":
        """The judge's grades that are missing because no judge was configured when the session came in.

        FAILED ones are left out: their sessions have a job for the judge.
        """
        return self.filter(source=Source.JUDGE, reason=Reason.NOT_CONFIGURED).exclude(status=Status.FAILED)

    def answering(self, *, inputs_sha256: str, rubric: str, version: str, model: str) -> "GradeQuerySet":
        """Verdicts on the same inputs, rubric and digest version, by `model` or a dated release of it."""
        question = {"inputs_sha256": inputs_sha256, "rubric": rubric, "version": version}
        return self.verdicts().filter(**question, model__startswith=model)


class Grade(models.Model):
    """What one source found about one session. Never updated or deleted; an undo is a row that `withdraws` another."""

    # The index of grade_once begins with the session.
    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="grades", db_index=False)
    source = enum_field(Source)
    status = enum_field(Status)
    value = models.FloatField(null=True, blank=True)  # in [0, 1] if scored, otherwise None
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    detail = redacted_packed_text(blank=True)
    # How the value was computed. `view`, `mean` and `purpose` repeat some of its keys for queries.
    evidence = redacted_packed(default=dict, blank=True)
    view = models.CharField(max_length=16, blank=True, editable=False)
    mean = models.FloatField(null=True, editable=False)
    purpose = models.CharField(max_length=16, blank=True, editable=False)
    # Of the source's rules; for a judge, of its digest and prompt.
    version = models.CharField(max_length=80, blank=True)
    # Which judge answered, how it was reached, and the rubric's hash.
    model = models.CharField(max_length=120, blank=True)
    route = models.CharField(max_length=120, blank=True)
    rubric = models.CharField(max_length=64, blank=True)
    inputs_sha256 = hash_field(blank=True)
    # Tells repeated grades of the same inputs apart.
    replicate = models.PositiveSmallIntegerField(default=0)
    # A repeat or a second judge's opinion. The reward chain ignores it.
    parallel = models.BooleanField(default=False)
    # Numbers a judge's readings of a session from 1. Later readings refer to the first; the chain takes the median of
    # three.
    sample = models.PositiveSmallIntegerField(default=1)
    sample_of = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="read_again", db_index=False
    )
    cost_usd = models.FloatField(null=True, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, db_index=False
    )
    withdraws = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="withdrawn_by", db_index=False
    )
    created_at = models.DateTimeField(default=timezone.now)
    # A hash of the columns in IDENTITY. None for a person's grade and one without a value, which may be repeated.
    identity = models.BigIntegerField(null=True, editable=False)

    objects = GradeQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            one_of("grade", "source", Source),
            one_of("grade", "status", Status),
            one_of("grade", "reason", Reason),
            models.CheckConstraint(
                condition=Q(status=Status.SCORED, value__isnull=False) | (~Q(status=Status.SCORED) & Q(value=None)),
                name="grade_value_iff_scored",
            ),
            unit_interval("value", "grade_value_range", null=True),
            models.CheckConstraint(
                condition=Q(status=Status.SCORED) | ~Q(reason=Reason.NONE), name="grade_unscored_has_reason"
            ),
            models.CheckConstraint(
                condition=~Q(source=Source.HUMAN) | Q(author__isnull=False), name="grade_human_has_author"
            ),
            models.CheckConstraint(
                condition=Q(parallel=False) | Q(source=Source.JUDGE), name="grade_parallel_is_judge"
            ),
            models.CheckConstraint(
                condition=Q(sample=1, sample_of=None)
                | Q(sample__gt=1, sample_of__isnull=False, source=Source.JUDGE, status=Status.SCORED, parallel=False),
                name="grade_further_readings_are_verdicts",
            ),
            # An index on the hash takes a tenth of the room of one on the columns.
            models.UniqueConstraint(fields=["session", "identity"], name="grade_once"),
            # With a condition, because SQLite counts the NULLs of a unique column as equal values and would then
            # rather read the whole table.
            models.UniqueConstraint(
                fields=["withdraws"], condition=Q(withdraws__isnull=False), name="grade_withdrawals"
            ),
        ]
        indexes = [
            models.Index(fields=["sample_of"], condition=Q(sample_of__isnull=False), name="grade_samples"),
            models.Index(fields=["author"], condition=Q(author__isnull=False), name="grade_authors"),
            models.Index(
                fields=["-id"],
                condition=Q(source=Source.JUDGE, status=Status.SCORED, parallel=False),
                name="grade_verdicts",
            ),
            models.Index(
                fields=["session"],
                condition=Q(source=Source.JUDGE, reason=Reason.NOT_CONFIGURED, parallel=False),
                name="grade_not_configured",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.status}" + ("" if self.value is None else f" {self.value:.2f}")

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.set_derived_columns()
        super().save(*args, **kwargs)

    def set_derived_columns(self) -> None:
        """Set the columns that are computed from others: `view`, `mean`, `purpose` and `identity`."""
        view, mean, purpose = (self.evidence.get(name) for name in ("view", "mean", "purpose"))
        self.view = view if isinstance(view, str) else ""
        self.mean = mean if isinstance(mean, int | float) else None
        self.purpose = purpose if isinstance(purpose, str) else ""
        self.identity = None
        if self.status == Status.SCORED and self.source != Source.HUMAN:
            self.identity = short_hash(*(getattr(self, name) for name in IDENTITY))

    def answers(self, *, inputs_sha256: str, rubric: str, version: str, model: str) -> bool:
        """Whether `GradeQuerySet.answering` would find this grade."""
        question = (self.source, self.status, self.inputs_sha256, self.rubric, self.version)
        expected = (Source.JUDGE, Status.SCORED, inputs_sha256, rubric, version)
        return question == expected and self.model.startswith(model)

    @property
    def beside(self) -> str:
        """What a parallel verdict was requested for, as text. Empty for a grade of the reward chain."""
        if not self.parallel:
            return ""
        purpose = self.evidence.get("purpose")
        return Purpose(purpose).words if purpose in set(Purpose) else "beside the chain"


class Settlement(models.Model):
    """A reward of one session, computed from its grades. Never updated: the highest revision is the current one."""

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="settlements", db_index=False)
    revision = models.PositiveIntegerField()
    value = models.FloatField(null=True)  # None: no reward
    source = models.CharField(max_length=32, blank=True)
    final = models.BooleanField()
    weight = models.FloatField()
    # Why the reward is provisional, excluded or missing. Empty for a final one.
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    # The whole explanation, and its summary.
    sentence = redacted_packed_text(blank=True)
    steps = redacted_packed()
    # Without index and constraint: no query filters by it, and an erasure deletes both rows.
    grade = models.ForeignKey(
        Grade, null=True, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    # The policy of the reward chain that was applied.
    policy = models.ForeignKey(
        "bandit.PolicyText", null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    # `Resolution.basis`. None in rows of earlier versions.
    basis = models.CharField(max_length=16, null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["session", "revision"]
        constraints = [
            models.UniqueConstraint(fields=["session", "revision"], name="settlement_revision_once"),
            unit_interval("value", "settlement_range", null=True),
            unit_interval("weight", "settlement_weight_range"),
            models.CheckConstraint(condition=Q(revision__gte=1), name="settlement_revision_from_one"),
            models.CheckConstraint(
                condition=Q(value__isnull=False) | Q(weight=0), name="settlement_no_reward_no_weight"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.session} settled {self.revision}"
