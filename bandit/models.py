"""Arms, the ledger of rewards, the integer buckets folded from it, and the decisions made from those.

The ledger is the record; buckets are its sums and can be rebuilt from it; posteriors are never stored. This app knows
its callers only by opaque strings: an observation, a settlement, a grader's source.
"""

from typing import Any, Self

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from bandit.core.names import canonical, nearest

MICRO = 1_000_000


class UnknownArm(LookupError):
    """No arm of that name. The message names the nearest one and what to do; nothing is ever made from free text."""

    def __init__(self, bandit: str, text: str, names: list[str]) -> None:
        near = nearest(text, names)
        hint = f" Did you mean {near!r}?" if near else ""
        super().__init__(
            f"bandit {bandit!r} has no arm {text!r}.{hint} Its arms are {', '.join(sorted(names)) or 'none yet'}. "
            "Add the arm, or an alias of an existing one, in the admin."
        )


class UnknownBandit(LookupError):
    """No bandit of that name."""

    def __init__(self, name: str) -> None:
        names = ", ".join(Bandit.objects.order_by("name").values_list("name", flat=True))
        super().__init__(f"there is no bandit {name!r}; there are: {names}")


class BanditQuerySet(models.QuerySet["Bandit"]):
    def named(self, name: str) -> "Bandit":
        """The bandit of that name. Raises UnknownBandit."""
        found = self.filter(name=name).first() if name.isprintable() else None
        if found is None:
            raise UnknownBandit(name)
        return found

    def locked(self, name: str) -> "Bandit":
        """As `named`, and one writer at a time until the transaction ends. Rows that refer to it stay insertable."""
        return self.select_for_update(no_key=True).named(name)


class Bandit(models.Model):
    """One question ("what next?", "on which harness?") and the policy by which its evidence is read."""

    name = models.SlugField(unique=True)
    title = models.CharField(max_length=100)
    half_life_days = models.FloatField(default=21, help_text="Evidence this old counts half.")
    long_run_half_life_days = models.FloatField(default=180, help_text="The same, for an arm's long-run mean.")
    prior_strength = models.FloatField(default=12, help_text="Pseudo-observations behind the long-run mean, from 5.")
    evidence_scale = models.FloatField(
        null=True, blank=True, help_text="Pseudo-observations a grade is worth, 1 to 8. Empty: estimated from grades."
    )
    floor = models.FloatField(default=0.01, help_text="The least chance of an eligible arm.")
    policy_version = models.PositiveIntegerField(default=1)

    objects = BanditQuerySet.as_manager()

    class Meta:
        constraints = [
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
        ]

    def __str__(self) -> str:
        return self.title or self.name


class ArmQuerySet(models.QuerySet["Arm"]):
    def of(self, bandit: str) -> Self:
        return self.filter(bandit__name=bandit)

    def resolve(self, bandit: str, text: str) -> "Arm":
        """The arm that `text` names, directly or by an alias, whatever its case, spaces and underscores.

        Raises UnknownArm; never makes one (L13).
        """
        name = canonical(text)
        arms = self.of(bandit)
        found = arms.filter(Q(name=name) | Q(aliases__alias=name)).distinct().first()
        if found is None:
            raise UnknownArm(bandit, text, list(arms.values_list("name", flat=True)))
        return found


class Arm(models.Model):
    """One of a bandit's choices. It is retired, never deleted: what it earned stays on record (I57)."""

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="arms")
    name = models.CharField(max_length=100)
    title = models.CharField(max_length=100, blank=True)
    is_consumption = models.BooleanField(default=False, help_text="Its sessions read rather than produce.")
    paused = models.BooleanField(default=False, help_text="Not chosen until this is cleared.")
    retired_at = models.DateTimeField(null=True, blank=True, help_text="Not chosen any more; its record stays.")

    objects = ArmQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "name"], name="bandit_arm_once"),
            models.CheckConstraint(condition=~Q(name=""), name="bandit_arm_named"),
        ]

    def __str__(self) -> str:
        return self.title or self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.name = canonical(self.name)
        super().save(*args, **kwargs)

    def clean(self) -> None:
        self.name = canonical(self.name)
        other = ArmAlias.objects.filter(bandit_id=self.bandit_id, alias=self.name).first()
        if other:
            raise ValidationError({"name": f"{other.alias!r} is already an alias of {other.arm}; remove that first."})


class ArmAlias(models.Model):
    """Another spelling of an arm (N10)."""

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="+")
    alias = models.CharField(max_length=100)
    arm = models.ForeignKey(Arm, models.CASCADE, related_name="aliases")

    class Meta:
        verbose_name_plural = "arm aliases"
        constraints = [
            models.UniqueConstraint(fields=["bandit", "alias"], name="bandit_alias_once"),
            models.CheckConstraint(condition=~Q(alias=""), name="bandit_alias_named"),
        ]

    def __str__(self) -> str:
        return self.alias

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.alias, self.bandit_id = canonical(self.alias), self.arm.bandit_id
        super().save(*args, **kwargs)

    def clean(self) -> None:
        self.alias, self.bandit_id = canonical(self.alias), self.arm.bandit_id
        if Arm.objects.filter(bandit_id=self.bandit_id, name=self.alias).exists():
            raise ValidationError({"alias": f"{self.alias!r} is an arm of its own; choose another alias."})
        others = ArmAlias.objects.filter(bandit_id=self.bandit_id, alias=self.alias).exclude(pk=self.pk)
        if other := others.select_related("arm").first():
            raise ValidationError(
                {"alias": f"{self.alias!r} is an alias of {other.arm} already; remove it there first."}
            )


class Grader(models.Model):
    """Who gave a value. For a judge: the model that answered, the route to it, and the rubric's hash (L14).

    `stratum` is the caller's own further division of its rewards, such as those that look wrong; opaque here.
    """

    source = models.CharField(max_length=20)
    model = models.CharField(max_length=100, blank=True, default="")
    route = models.CharField(max_length=100, blank=True, default="")
    rubric = models.CharField(max_length=64, blank=True, default="")
    stratum = models.CharField(max_length=40, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source", "model", "route", "rubric", "stratum"], name="bandit_grader_once"
            ),
            models.CheckConstraint(condition=~Q(source=""), name="bandit_grader_has_source"),
        ]

    def __str__(self) -> str:
        return " ".join(part for part in (self.source, self.model, self.route, self.rubric[:8], self.stratum) if part)


class LedgerEntryQuerySet(models.QuerySet["LedgerEntry"]):
    def live(self) -> Self:
        """Applied and not reversed: what counts today."""
        reverses = LedgerEntry.objects.filter(
            bandit=models.OuterRef("bandit"),
            arm=models.OuterRef("arm"),
            observation=models.OuterRef("observation"),
            revision=models.OuterRef("revision"),
            op=LedgerEntry.Op.REVERSE,
        )
        return self.filter(op=LedgerEntry.Op.APPLY).exclude(models.Exists(reverses))


class LedgerEntry(models.Model):
    """One move of one reward, appended by `bandit.ledger` and never changed (N2, N3).

    A reverse repeats the value, day and grader of the apply that it undoes. Triggers refuse UPDATE, DELETE, an apply
    while the revision before it is live, a reverse that differs from its apply, and an arm of another bandit. Two
    clocks (N13): `effective_day` is when the session ended, `recorded_at` when we learnt its reward.
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
    effective_day = models.DateField()
    recorded_at = models.DateTimeField(default=timezone.now)
    settlement = models.CharField(max_length=100, blank=True)
    policy_version = models.CharField(max_length=200, blank=True)
    provisional = models.BooleanField(default=False, help_text="What was known when this row was written.")

    objects = LedgerEntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "ledger entries"
        constraints = [
            # In this order its index serves every look-up by observation too, and is never passed over for a worse one.
            models.UniqueConstraint(
                fields=["observation", "bandit", "arm", "revision", "op"], name="bandit_ledger_once"
            ),
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


class Bucket(models.Model):
    """What one grader gave one arm for one day, as integers: n rewards, their sum and their sum of squares.

    In micro-units: s ≤ n·10⁶ and q ≤ n·10¹², which fits 64 signed bits up to n = 9.2 million rewards a bucket.
    Integer sums commute, so that any order of arrival gives the same bits (L5).
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="+", db_index=False)
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="buckets")
    grader = models.ForeignKey(Grader, models.PROTECT, related_name="+", db_index=False)
    effective_day = models.DateField()
    n = models.BigIntegerField(default=0)
    s = models.BigIntegerField(default=0)
    q = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["bandit", "arm", "grader", "effective_day"], name="bandit_bucket_once"),
            models.CheckConstraint(condition=Q(n__gte=0, s__gte=0, q__gte=0), name="bandit_bucket_not_negative"),
            models.CheckConstraint(condition=Q(s__lte=F("n") * MICRO), name="bandit_bucket_sum_in_range"),
            models.CheckConstraint(condition=Q(q__lte=F("s") * MICRO), name="bandit_bucket_squares_in_range"),
        ]
        indexes = [models.Index(fields=["bandit", "effective_day"], name="bandit_bucket_day")]

    def __str__(self) -> str:
        return f"{self.arm}, {self.grader}, {self.effective_day}: n={self.n} s={self.s} q={self.q}"


class Rectifier(models.Model):
    """What a bandit's strata are moved by when its buckets are read: one version, never changed, never deleted.

    The latest version counts: in force if `enabled`, else nothing is moved. `offsets` is a list of {arm, source,
    stratum, offset, pairs, low, high} (`bandit.core.recalibration.Offset`), empty where it switches off; `by` is
    whoever put it here, in the caller's words.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="rectifiers")
    version = models.PositiveIntegerField()
    offsets = models.JSONField(default=list, blank=True)
    enabled = models.BooleanField(default=True)
    note = models.CharField(max_length=500, blank=True)
    by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "version"], name="bandit_rectifier_once"),
            models.CheckConstraint(condition=Q(version__gte=1), name="bandit_rectifier_from_1"),
            models.CheckConstraint(condition=~Q(by=""), name="bandit_rectifier_says_who"),
        ]

    def __str__(self) -> str:
        return f"{self.bandit}, version {self.version}" + ("" if self.enabled else " (off)")


class Selection(models.Model):
    """A decision: what was chosen, from what, with which chances and why. Only a finished session earns (N7).

    `eligible` maps every arm to its propensity, or to the reason it was left out. With an override `propensity` is 1
    (nothing was drawn) and `eligible` still holds what the draw's chances were.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="selections")
    decision_id = models.CharField(max_length=200)
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="selections", help_text="The arm chosen.")
    agent = models.CharField(max_length=100, blank=True)
    requested = models.JSONField(default=dict)
    eligible = models.JSONField(default=dict)
    propensity = models.FloatField()
    posterior_version = models.CharField(max_length=64)
    explanation = models.JSONField(default=dict)
    override = models.JSONField(null=True, blank=True)
    created = models.DateTimeField()
    observation = models.CharField(max_length=200, blank=True, default="")
    executed_arm = models.ForeignKey(Arm, models.PROTECT, null=True, blank=True, related_name="executions")
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "decision_id"], name="bandit_decision_once"),
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
        indexes = [models.Index(fields=["bandit", "created"], name="bandit_selection_created")]

    def __str__(self) -> str:
        return f"{self.decision_id}: {self.arm}"


class Erasure(models.Model):
    """Who deleted append-only rows, when, why and how many of what. Written by `bandit.erasure.permit` alone."""

    who = models.CharField(max_length=200)
    why = models.TextField()
    opened_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)
    counts = models.JSONField(default=dict)

    class Meta:
        ordering = ["-opened_at"]
        constraints = [
            models.CheckConstraint(condition=~Q(who="") & ~Q(why=""), name="bandit_erasure_says_who_and_why")
        ]

    def __str__(self) -> str:
        return f"{self.opened_at:%Y-%m-%d %H:%M} {self.who}: {self.why}"
