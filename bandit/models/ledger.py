"""The ledger of rewards, and its integer sums."""

from typing import Self

from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from bandit.core.table import ABSTAINED, MOMENTS
from bandit.models.arms import Arm
from bandit.models.bandits import Bandit
from bandit.models.graders import Grader
from bandit.models.policies import PolicyText

MICRO = 1_000_000
# A reward above this, in millionths, counts as productive.
PRODUCTIVE = 500_000
# The columns of a bucket that are sums.
SUMS = (*MOMENTS, "productive")


class LedgerEntryQuerySet(models.QuerySet["LedgerEntry"]):
    def rewards(self) -> Self:
        """Without abstentions."""
        return self.exclude(grader__source=ABSTAINED)

    def abstentions(self) -> Self:
        return self.filter(grader__source=ABSTAINED)

    def live(self) -> Self:
        """Applied and not reversed: the entries that count today."""
        reverses = LedgerEntry.objects.filter(
            arm=models.OuterRef("arm"),
            observation=models.OuterRef("observation"),
            revision=models.OuterRef("revision"),
            op=LedgerEntry.Op.REVERSE,
        )
        return self.filter(op=LedgerEntry.Op.APPLY).exclude(models.Exists(reverses))

    def columns(self) -> "tuple[Self, tuple[str, ...]]":
        """The rows with the text of their policy as `policy_version`, and the names of all columns."""
        rows = self.annotate(policy_version=Coalesce("policy__text", Value("")))
        names = (field.attname for field in self.model._meta.concrete_fields)  # noqa: SLF001 - Django's documented API
        return rows, tuple("policy_version" if name == "policy_id" else name for name in names)


class LedgerEntry(models.Model):
    """One reward or abstention that was applied or reversed; appended by `bandit.ledger` and never changed.

    A reverse repeats the value, cost, day and grader of the apply that it undoes. Triggers refuse UPDATE, DELETE, an
    apply while the arm's previous revision is live (or any other arm's entry, if the bandit chooses one arm), a reverse
    that differs from its apply, and an arm of another bandit. `effective_day` is the day on which the session ended
    (valid time), `recorded_at` when its reward was recorded (transaction time).
    """

    class Op(models.TextChoices):
        APPLY = "apply"
        REVERSE = "reverse"

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="+", db_index=False)
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="entries")
    observation = models.CharField(max_length=200)
    revision = models.PositiveIntegerField()
    op = models.CharField(max_length=7, choices=Op)
    grader = models.ForeignKey(Grader, models.PROTECT, related_name="+", db_index=False)
    value_micro = models.PositiveIntegerField(help_text="The reward in millionths.")
    cost_micro = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="The session's cost in millionths of a dollar; empty where it is not known."
    )
    effective_day = models.DateField()
    recorded_at = models.DateTimeField(default=timezone.now)
    settlement = models.CharField(max_length=100, blank=True)
    policy = models.ForeignKey(
        PolicyText,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        verbose_name="policy version",
    )
    provisional = models.BooleanField(default=False, help_text="What was known when this row was written.")

    objects = LedgerEntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "ledger entries"
        constraints = [
            # The arm is of one bandit. In this order its index serves every look-up by observation too, is never passed
            # over for a worse one, and has no gaps between its columns.
            models.UniqueConstraint(fields=["observation", "op", "arm", "revision"], name="bandit_ledger_once"),
            models.CheckConstraint(condition=Q(value_micro__gte=0, value_micro__lte=MICRO), name="bandit_value_0_to_1"),
            models.CheckConstraint(condition=Q(revision__gte=1), name="bandit_revision_from_1"),
            models.CheckConstraint(condition=Q(op__in=["apply", "reverse"]), name="bandit_op_known"),
            models.CheckConstraint(condition=~Q(observation=""), name="bandit_observation_named"),
        ]

    def __str__(self) -> str:
        return f"{self.op} {self.value:.6f} to {self.arm} for {self.observation}, revision {self.revision}"

    @property
    def value(self) -> float:
        return self.value_micro / MICRO

    @property
    def is_abstention(self) -> bool:
        """Whether the observation could not be graded, which is no reward, not one of 0."""
        return self.grader.source == ABSTAINED


class BucketQuerySet(models.QuerySet["Bucket"]):
    def rewards(self) -> Self:
        return self.exclude(grader__source=ABSTAINED)


class Bucket(models.Model):
    """The sums of one grader's live rewards of one arm on one day: `n` rewards, Σr as `s` and Σr² as `q`.

    In micro-units: s ≤ n·10⁶ and q ≤ n·10¹², which fits 64 signed bits up to n = 9.2 million. `cost` is the sum of the
    sessions' known costs in micro-dollars, `costed` the number of known ones, and `productive` the number of rewards
    above PRODUCTIVE. Integers, so that any order of arrival gives the same bits.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="+", db_index=False)
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="buckets")
    grader = models.ForeignKey(Grader, models.PROTECT, related_name="+", db_index=False)
    effective_day = models.DateField()
    n = models.BigIntegerField(default=0)
    s = models.BigIntegerField(default=0)
    q = models.BigIntegerField(default=0)
    cost = models.BigIntegerField(default=0)
    costed = models.BigIntegerField(default=0)
    productive = models.BigIntegerField(default=0)

    objects = BucketQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["bandit", "arm", "grader", "effective_day"], name="bandit_bucket_once"),
            models.CheckConstraint(
                condition=Q(cost__gte=0, costed__gte=0, costed__lte=F("n")), name="bandit_bucket_cost_in_range"
            ),
            models.CheckConstraint(condition=Q(n__gte=0, s__gte=0, q__gte=0), name="bandit_bucket_not_negative"),
            models.CheckConstraint(condition=Q(s__lte=F("n") * MICRO), name="bandit_bucket_sum_in_range"),
            models.CheckConstraint(condition=Q(q__lte=F("s") * MICRO), name="bandit_bucket_squares_in_range"),
        ]
        indexes = [models.Index(fields=["bandit", "effective_day"], name="bandit_bucket_day")]

    def __str__(self) -> str:
        return f"{self.arm}, {self.grader}, {self.effective_day}: n={self.n} s={self.s} q={self.q}"
