"""Grades (what each source said) and settlements (what the chain made of it): append-only, in the database too."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import CopiedNumberField, CopiedTextField, enum_field, hash_field, one_of, short_hash
from grading.models.judging import Purpose
from grading.models.redacted import redacted_packed, redacted_packed_text
from grading.models.sessions import Session
from grading.vocabulary import Reason, Source, Status


def question_of(rubric: str, version: str) -> int:
    """A hash of the rubric and the digest version under which a verdict was given: the same question, the same hash."""
    return short_hash(rubric, version)


class GradeQuerySet(models.QuerySet["Grade"]):
    def chain(self) -> "GradeQuerySet":
        """Those that the chain reads: all but parallel verdicts."""
        return self.filter(parallel=False)

    def first_readings(self) -> "GradeQuerySet":
        """All but the further readings of a session that the judge had read already."""
        return self.filter(sample=1)

    def verdicts(self) -> "GradeQuerySet":
        """The scored grades of judges, parallel ones too."""
        return self.filter(source=Source.JUDGE, status=Status.SCORED)

    def without_judge(self) -> "GradeQuerySet":
        """What is written on sessions that come in while there is no judge; on those that have a job it is FAILED."""
        return self.filter(source=Source.JUDGE, reason=Reason.NOT_CONFIGURED).exclude(status=Status.FAILED)

    def answering(self, *, inputs_sha256: str, rubric: str, version: str, model: str) -> "GradeQuerySet":
        """The verdicts on the same question: evidence, rubric, digest, and a model whose dated names count too."""
        same = {"inputs_sha256": inputs_sha256, "rubric": rubric, "version": version}
        return self.verdicts().filter(**same, model__startswith=model)


# What makes a scored grade of a machine the same as another of its session.
IDENTITY = ("source", "inputs_sha256", "version", "model", "route", "rubric", "sample", "replicate")


class IdentityField(models.BigIntegerField):  # type: ignore[type-arg]  # generic in the stubs only
    """The `short_hash` of a grade's IDENTITY; None where there may be any number of the same."""

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.BigIntegerField", args, kwargs

    def pre_save(self, instance: Any, add: bool) -> int | None:  # noqa: ARG002, FBT001 - Django's signature
        is_once = instance.status == Status.SCORED and instance.source != Source.HUMAN
        value = short_hash(*(getattr(instance, name) for name in IDENTITY)) if is_once else None
        setattr(instance, self.attname, value)
        return value


class Grade(models.Model):
    """What one source said of one session, once. Never updated, never deleted (L3).

    `value` in [0, 1] iff scored. `evidence` is the JSON of the sum; what queries read of it is in columns too. L8 and
    L14: `version` names the rule set, `model`, `route` and `rubric` who answered, `inputs_sha256` what was read. A
    person's undo is a row that `withdraws` another. `parallel` verdicts (a repeat, a second judge's opinion) stand
    beside the chain and never enter it. `sample` numbers the readings of one session by one judge from 1; a further one
    names the first as `sample_of`, and the chain takes the median of three. `identity` is what no two grades of a
    session have in common: the same source asked the same says it once, or counts as another `replicate`.
    """

    # Indexes: `grade_once` begins with the session, and few rows have a sample or an author.
    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="grades", db_index=False)
    source = enum_field(Source)
    status = enum_field(Status)
    value = models.FloatField(null=True, blank=True)
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    detail = redacted_packed_text(blank=True)
    evidence = redacted_packed(default=dict, blank=True)
    view = CopiedTextField(packed="evidence", max_length=16, blank=True, editable=False)
    mean = CopiedNumberField(packed="evidence", null=True, editable=False)
    purpose = CopiedTextField(packed="evidence", max_length=16, blank=True, editable=False)
    version = models.CharField(max_length=80, blank=True)
    model = models.CharField(max_length=120, blank=True)
    route = models.CharField(max_length=120, blank=True)
    rubric = models.CharField(max_length=64, blank=True)
    inputs_sha256 = hash_field(blank=True)
    replicate = models.PositiveSmallIntegerField(default=0)
    parallel = models.BooleanField(default=False)
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
    identity = IdentityField(null=True, editable=False)

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
            models.CheckConstraint(condition=Q(value=None) | Q(value__gte=0, value__lte=1), name="grade_value_range"),
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
            # Of hashes: what they are of would take ten times the room. In one session no two are alike by chance.
            models.UniqueConstraint(fields=["session", "identity"], name="grade_once"),
            # Of the few that withdraw one: SQLite takes the NULLs of a unique column for as many equal values, and
            # would rather read the whole table.
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
            # Those of which nobody could be asked.
            models.Index(
                fields=["session"],
                condition=Q(source=Source.JUDGE, reason=Reason.NOT_CONFIGURED, parallel=False),
                name="grade_not_configured",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.status}" + ("" if self.value is None else f" {self.value:.2f}")

    def answers(self, *, inputs_sha256: str, rubric: str, version: str, model: str) -> bool:
        """Whether it is of those that `GradeQuerySet.answering` finds."""
        said = (self.source, self.status, self.inputs_sha256, self.rubric, self.version)
        return said == (Source.JUDGE, Status.SCORED, inputs_sha256, rubric, version) and self.model.startswith(model)

    @property
    def beside(self) -> str:
        """What a parallel opinion was asked for, in words; empty for what the chain reads."""
        if not self.parallel:
            return ""
        purpose = self.evidence.get("purpose")
        return Purpose(purpose).words if purpose in set(Purpose) else "beside the chain"


class Settlement(models.Model):
    """One resolution of the chain for one session; the highest revision is what holds. Never updated (L3).

    `value` is None for "no reward". `steps` is the whole explanation; `sentence` sums it up. `reason` is set where the
    reward is provisional, excluded or not graded, and says why. `policy` is the chain's policy. `basis` is
    `Resolution.basis`, None in rows of earlier versions.
    """

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="settlements", db_index=False)
    revision = models.PositiveIntegerField()
    value = models.FloatField(null=True)
    source = models.CharField(max_length=32, blank=True)
    final = models.BooleanField()
    weight = models.FloatField()
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    sentence = redacted_packed_text(blank=True)
    steps = redacted_packed()
    # Without an index or a constraint: nobody looks a settlement up by it, and an erasure takes both.
    grade = models.ForeignKey(
        Grade, null=True, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    policy = models.ForeignKey(
        "bandit.PolicyText", null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    basis = models.CharField(max_length=16, null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["session", "revision"]
        constraints = [
            models.UniqueConstraint(fields=["session", "revision"], name="settlement_revision_once"),
            models.CheckConstraint(condition=Q(value=None) | Q(value__gte=0, value__lte=1), name="settlement_range"),
            models.CheckConstraint(condition=Q(weight__gte=0, weight__lte=1), name="settlement_weight_range"),
            models.CheckConstraint(condition=Q(revision__gte=1), name="settlement_revision_from_one"),
            models.CheckConstraint(
                condition=Q(value__isnull=False) | Q(weight=0), name="settlement_no_reward_no_weight"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.session} settled {self.revision}"
