"""Arms, the ledger of rewards, the integer buckets folded from it, and the decisions made from those.

The ledger is the record; buckets are its sums and can be rebuilt from it; posteriors are never stored. This app knows
its callers only by opaque strings: an observation, a settlement, a grader's source.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Self

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from bandit.core.table import ABSTAINED, MOMENTS
from bandit.migrations._defaults import first_caps
from bandit.names import canonical, nearest
from bandit.packed import PackedJSONField

MICRO = 1_000_000
# A reward above it, in millionths, is one of work that came to something.
PRODUCTIVE = 500_000
# What a bucket adds up.
SUMS = (*MOMENTS, "productive")


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
        bandit = self.select_related("baseline").filter(name=name).first() if name.isprintable() else None
        if bandit is None:
            raise UnknownBandit(name)
        return bandit

    def fresh(self, pk: int) -> "Bandit":
        """The bandit of that key as the database has it now."""
        return self.get(pk=pk)

    def that_learn(self) -> Self:
        """Those that believe anything, in order: not those whose arms are only names."""
        return self.exclude(kind=BanditKind.NAMES).order_by("pk")

    def locked(self, name: str) -> "Bandit":
        """As `named`, and one writer at a time until the transaction ends. Rows that refer to it stay insertable."""
        return self.select_for_update(no_key=True, of=("self",)).named(name)

    def locked_each(self, names: Collection[str]) -> Self:
        """As `locked`, those of several names that there are, in the order of their keys."""
        return self.select_for_update(no_key=True).filter(name__in=names).order_by("pk")


class BanditKind(models.TextChoices):
    """What a bandit is asked. Of many arms at once each is taken or held out; names are only names."""

    CHOICE = "choice", "one of its arms is chosen"
    MANY = "many", "each of several arms is taken, or held out by chance"
    NAMES = "names", "its arms are only names: nothing is learnt or chosen"


class Bandit(models.Model):
    """One question ("what next?", "on which harness and model?"). How its evidence is read is its `PolicyVersion`.

    A bandit with a `baseline` reads its rewards as what is left once the mean of that bandit's arm is taken out, which
    the caller names as each credit's context. `revision` is another number whenever what may be read is: rewards, arms,
    policies. `history` and `latest` are not used any more.
    """

    name = models.SlugField(unique=True)
    title = models.CharField(max_length=100)
    kind = models.CharField(max_length=6, choices=BanditKind, default=BanditKind.CHOICE)
    baseline = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="+", help_text="Whose arms' means are taken out."
    )
    revision = models.PositiveBigIntegerField(default=0, editable=False)
    history = models.PositiveBigIntegerField(null=True, editable=False)
    latest = models.PositiveBigIntegerField(null=True, editable=False)

    objects = BanditQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=BanditKind.values), name="bandit_kind_known"),
            models.CheckConstraint(
                condition=Q(baseline__isnull=True) | ~Q(baseline=F("pk")),
                name="bandit_baseline_is_another",
                violation_error_message="A bandit is not freed of its own arms' means: nothing would be left to learn.",
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.name


class PolicyVersion(models.Model):
    """How a bandit's evidence is read and its arms are chosen: one version, never changed, never deleted.

    The latest version counts; taking a change back appends one more version with the earlier numbers. `weights` maps a
    source to [0, 1] and says only what differs from the site's own; `caps` maps a source to the most
    pseudo-observations that it may amount to in one arm; both are read by `bandit.core.posterior`.
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
            models.CheckConstraint(condition=~Q(by=""), name="bandit_policy_says_who"),
        ]

    def __str__(self) -> str:
        return f"{self.bandit.name}/{self.version}"

    def chance_of_taking(self, *, is_decided: bool) -> float:
        """With which a lesson that matches is given: one that is decided with no smaller chance than another."""
        decided = self.holdout if self.holdout_decided is None else min(self.holdout_decided, self.holdout)
        return 1 - (decided if is_decided else self.holdout)


class ArmQuerySet(models.QuerySet["Arm"]):
    def of(self, bandit: str) -> Self:
        return self.filter(bandit__name=bandit)

    def resolve(self, bandit: str, text: str) -> "Arm":
        """The arm that `text` names, directly or by an alias, whatever its case, spaces and underscores.

        One that was merged into another stands for that. Raises UnknownArm; never makes one (L13).
        """
        name = canonical(text)
        arms = self.of(bandit).filter(Q(name=name) | Q(aliases__alias=name))
        found = arms.select_related("merged_into").distinct().first()
        if found is None:
            raise self.unknown(bandit, text)
        return found.current

    def resolve_all(
        self, names: Iterable[tuple[str, str]]
    ) -> "tuple[dict[tuple[str, str], Arm], list[tuple[str, str]]]":
        """As `resolve`, but of all arms there are, for several texts, each with its bandit, in one query: the arms by
        these; what names none.
        """
        keys = {(bandit, text): (bandit, canonical(text)) for bandit, text in names}
        if not keys:
            return {}, []
        spellings = {spelling for _bandit, spelling in keys.values()}
        rows = Arm.objects.filter(bandit__name__in={bandit for bandit, _spelling in keys.values()})
        rows = rows.filter(Q(name__in=spellings) | Q(aliases__alias__in=spellings))
        by_spelling: dict[tuple[str, str], Arm] = {}
        for arm in rows.select_related("bandit", "merged_into").order_by().annotate(alias=F("aliases__alias")):
            by_spelling[arm.bandit.name, arm.name] = arm
            by_spelling.setdefault((arm.bandit.name, arm.alias), arm)  # type: ignore[attr-defined]  # annotated
        arms = {key: by_spelling[spelling].current for key, spelling in keys.items() if spelling in by_spelling}
        return arms, [key for key in keys if key not in arms]

    def unknown(self, bandit: str, text: str) -> UnknownArm:
        """Why a text names no arm: what `resolve` raises."""
        return UnknownArm(bandit, text, list(self.of(bandit).values_list("name", flat=True)))


class Arm(models.Model):
    """One of a bandit's choices. It is retired, never deleted: what it earned stays on record."""

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="arms")
    name = models.CharField(max_length=100)
    title = models.CharField(max_length=100, blank=True)
    is_consumption = models.BooleanField(default=False, help_text="Its sessions read rather than produce.")
    is_looking = models.BooleanField(
        default=False, help_text="Its sessions look (triage, monitoring, review), and may rightly find nothing to do."
    )
    is_low_stakes = models.BooleanField(default=False, help_text="Arms of other bandits may be tried out here.")
    paused = models.BooleanField(default=False, help_text="Not chosen until this is cleared.")
    probation = models.BooleanField(default=False, help_text="New: few sessions a day until some earned a reward.")
    merged_into = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="merged")
    retired_at = models.DateTimeField(null=True, blank=True, help_text="Not chosen any more; its record stays.")

    objects = ArmQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "name"], name="bandit_arm_once"),
            models.CheckConstraint(condition=~Q(name=""), name="bandit_arm_named"),
            models.CheckConstraint(
                condition=~Q(is_looking=True, is_consumption=True), name="bandit_arm_looks_or_reads"
            ),
            models.CheckConstraint(
                condition=Q(merged_into__isnull=True) | ~Q(merged_into=F("pk")), name="bandit_arm_not_into_itself"
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.name = canonical(self.name)
        super().save(*args, **kwargs)

    def clean(self) -> None:
        self.name = canonical(self.name)
        if self.is_looking and self.is_consumption:
            raise ValidationError({"is_looking": "A category either reads or looks; choose one of the two."})
        other = ArmAlias.objects.filter(bandit_id=self.bandit_id, alias=self.name).first()
        if other:
            raise ValidationError({"name": f"{other.alias!r} is already an alias of {other.arm}; remove that first."})

    @property
    def current(self) -> "Arm":
        """The arm that this one's rewards go to: itself, or the one it was merged into."""
        return self if self.merged_into is None else self.merged_into

    @property
    def is_choosable(self) -> bool:
        """Whether it may be chosen at all, if there is work for it."""
        return not self.paused and self.retired_at is None and self.merged_into_id is None


class ArmEvent(models.Model):
    """What somebody did to an arm, appended by `bandit.arms` and never changed."""

    class Act(models.TextChoices):
        ADDED = "added"
        RENAMED = "renamed"
        PAUSED = "paused"
        RESUMED = "resumed"
        RETIRED = "retired"
        RETURNED = "returned"
        MERGED = "merged"
        PARTED = "parted"
        TRIED = "tried", "put on probation"
        PASSED = "passed", "probation ended"

    arm = models.ForeignKey(Arm, models.PROTECT, related_name="events")
    act = models.CharField(max_length=8, choices=Act)
    other = models.ForeignKey(Arm, models.PROTECT, null=True, blank=True, related_name="+")
    by = models.CharField(max_length=200)
    why = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(by=""), name="bandit_arm_event_says_who"),
            models.CheckConstraint(
                condition=Q(
                    act__in=["added", "renamed", "paused", "resumed", "retired", "returned", "merged", "parted",
                             "tried", "passed"]
                ),
                name="bandit_arm_act_known",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.arm} {self.act}"


class ArmAlias(models.Model):
    """Another spelling of an arm."""

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

    The rest divides one grader's rewards further: `stratum` in the caller's own way, such as those that look wrong;
    `context` by what a baseline is taken from them for, such as the category; `salience` by how much of the session
    was the arm's doing, in percent. `version` names what computed the value, `view` what it could see of the session
    (of an abstention: why it abstained), `witness` who vouches for the evidence, `standing` whether something speaks
    against the value, `agent` whose session it was: all in the caller's words, empty where nobody has said.
    """

    source = models.CharField(max_length=20)
    model = models.CharField(max_length=120, blank=True, default="")
    route = models.CharField(max_length=120, blank=True, default="")
    rubric = models.CharField(max_length=64, blank=True, default="")
    stratum = models.CharField(max_length=40, blank=True, default="")
    context = models.CharField(max_length=100, blank=True, default="")
    salience = models.PositiveSmallIntegerField(default=100)
    version = models.CharField(max_length=80, blank=True, default="")
    view = models.CharField(max_length=40, blank=True, default="")
    witness = models.CharField(max_length=20, blank=True, default="")
    standing = models.CharField(max_length=20, blank=True, default="")
    agent = models.CharField(max_length=80, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "source",
                    "model",
                    "route",
                    "rubric",
                    "stratum",
                    "context",
                    "salience",
                    "version",
                    "view",
                    "witness",
                    "standing",
                    "agent",
                ],
                name="bandit_grader_once",
            ),
            models.CheckConstraint(condition=~Q(source=""), name="bandit_grader_has_source"),
            models.CheckConstraint(condition=Q(salience__gte=0, salience__lte=100), name="bandit_salience_in_percent"),
        ]

    def __str__(self) -> str:
        salience = "" if self.salience == 100 else f"{self.salience} %"  # noqa: PLR2004 - percent
        parts = (self.source, self.model, self.route, self.rubric[:8], self.stratum, self.context, salience)
        seen = (self.version, self.view, self.witness, self.standing, self.agent)
        return " ".join(part for part in (*parts, *seen) if part)


class PolicyText(models.Model):
    """What the caller said of the policy that it made a reward by: once for all rows that name it, never changed."""

    text = models.CharField(max_length=200, unique=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="bandit_policy_text_said")]

    def __str__(self) -> str:
        return self.text


class LedgerEntryQuerySet(models.QuerySet["LedgerEntry"]):
    def rewards(self) -> Self:
        """Without abstentions: what figures are made of."""
        return self.exclude(grader__source=ABSTAINED)

    def abstentions(self) -> Self:
        return self.filter(grader__source=ABSTAINED)

    def live(self) -> Self:
        """Applied and not reversed: what counts today."""
        reverses = LedgerEntry.objects.filter(
            arm=models.OuterRef("arm"),
            observation=models.OuterRef("observation"),
            revision=models.OuterRef("revision"),
            op=LedgerEntry.Op.REVERSE,
        )
        return self.filter(op=LedgerEntry.Op.APPLY).exclude(models.Exists(reverses))

    def columns(self) -> "tuple[Self, tuple[str, ...]]":
        """With `policy_version` as it was written, and the names of what a whole row says, to be read as values."""
        written = self.annotate(policy_version=Coalesce("policy__text", Value("")))
        names = (field.attname for field in self.model._meta.concrete_fields)  # noqa: SLF001 - Django's documented API
        return written, tuple("policy_version" if name == "policy_id" else name for name in names)


class LedgerEntry(models.Model):
    """One move of one reward, or of one abstention, appended by `bandit.ledger` and never changed.

    A reverse repeats the value, cost, day and grader of the apply that it undoes. Triggers refuse UPDATE, DELETE, an
    apply while the revision before it is live (in a bandit that chooses one arm: or another arm's is), a reverse that
    differs from its apply, and an arm of another bandit. Two clocks: `effective_day` is when the session ended,
    `recorded_at` when we learnt its reward.
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
        """Whether it says that the observation could not be graded: no reward, and none of 0."""
        return self.grader.source == ABSTAINED


class BucketQuerySet(models.QuerySet["Bucket"]):
    def rewards(self) -> Self:
        """Without abstentions: what figures are made of."""
        return self.exclude(grader__source=ABSTAINED)

    def abstentions(self) -> Self:
        return self.filter(grader__source=ABSTAINED)


class Bucket(models.Model):
    """What one grader gave one arm for one day, as integers: n rewards, their sum and their sum of squares.

    In micro-units: s ≤ n·10⁶ and q ≤ n·10¹², which fits 64 signed bits up to n = 9.2 million rewards a bucket. `cost`
    is Σ of the sessions' known costs in micro-dollars, and `costed` how many of the n are known. `productive` is how
    many of them are above PRODUCTIVE.
    Integer sums commute, so that any order of arrival gives the same bits (L5).
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


class SwitchedVersion(models.Model):
    """One version of something about a bandit that can be off, never changed, never deleted.

    The latest version counts: in force if `enabled`. `by` is whoever put it here, in the caller's words.
    """

    bandit: "models.ForeignKey[Bandit, Bandit]"
    version = models.PositiveIntegerField()
    enabled = models.BooleanField(default=True)
    note = models.CharField(max_length=500, blank=True)
    by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        abstract = True
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "version"], name="bandit_%(class)s_once"),
            models.CheckConstraint(condition=Q(version__gte=1), name="bandit_%(class)s_from_1"),
            models.CheckConstraint(condition=~Q(by=""), name="bandit_%(class)s_says_who"),
        ]

    def __str__(self) -> str:
        return f"{self.bandit}, version {self.version}" + ("" if self.enabled else " (off)")


class Rectifier(SwitchedVersion):
    """What a bandit's strata are moved by when its buckets are read; nothing, where it is off.

    `offsets` is a list of {arm, source, stratum, offset, pairs, low, high} (`bandit.core.recalibration.Offset`), empty
    where it switches off. Offsets of what a calibration reads hold under that one and those that came by themselves
    after it: they say how far people were from what it made of the grades.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="rectifiers")
    offsets = models.JSONField(default=list, blank=True)
    calibration = models.PositiveIntegerField(
        null=True, blank=True, help_text="The last calibration that a person had accepted when these were fitted."
    )


class CalibrationVersion(SwitchedVersion):
    """How a bandit's fallbacks are read on the judge's scale; where it is off, every source is read as it stands.

    `scale` is a `bandit.core.calibration.Scale` as JSON; `target` names the judge whose scale it is, in the caller's
    words, empty at the start. `accepted`: a person put it in force, or it is the start; the others came by themselves.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="calibrations")
    scale = models.JSONField(default=dict, blank=True)
    target = models.CharField(max_length=300, blank=True)
    accepted = models.BooleanField(default=False)


class BreakDecisionQuerySet(models.QuerySet["BreakDecision"]):
    def told(self, known_by: datetime | None = None) -> Self:
        """In the order in which they were made, with their arms; or those of them that were made by then."""
        made = self if known_by is None else self.filter(created_at__lte=known_by)
        return made.select_related("arm").order_by("created_at", "pk")


class BreakDecision(models.Model):
    """What a person said of a break: it stands, or it is taken back. Never changed; of an arm's day the latest counts.

    `day` is the first that counts after the break. One that is `kept` stands whatever later rewards say; one that is
    taken back is none, and up to the day of the decision the arm has no other.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="break_decisions")
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="break_decisions")
    day = models.DateField()
    kept = models.BooleanField()
    by = models.CharField(max_length=200)
    note = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = BreakDecisionQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [models.CheckConstraint(condition=~Q(by=""), name="bandit_break_decision_says_who")]

    def __str__(self) -> str:
        return f"{self.arm}, {self.day}: {'kept' if self.kept else 'taken back'}"


class Selection(models.Model):
    """A decision: what was chosen, from what, with which chances and why. Only a finished session earns. Its id is the
    own one of the `agent` that asked.

    `context` is the circumstance that the caller named, such as the category that a harness is chosen for. `eligible`
    maps every arm to its propensity, or to the reason it was left out. With an override `propensity` is 1
    (nothing was drawn) and `eligible` still holds what the draw's chances were. `key_id` names the key that it was
    drawn with (`bandit.chance`), "" where that was a public hash.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="selections", db_index=False)
    decision_id = models.CharField(max_length=200)
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="selections", help_text="The arm chosen.")
    agent = models.CharField(max_length=100, blank=True)
    context = models.CharField(max_length=100, blank=True, default="")
    requested = models.JSONField(default=dict)
    eligible = PackedJSONField(default=dict)
    propensity = models.FloatField()
    posterior_version = models.CharField(max_length=64)
    explanation = PackedJSONField(default=dict)
    override = models.JSONField(null=True, blank=True)
    key_id = models.CharField(max_length=8, blank=True, default="")
    created = models.DateTimeField()
    observation = models.CharField(max_length=200, blank=True, default="")
    executed_arm = models.ForeignKey(Arm, models.PROTECT, null=True, blank=True, related_name="executions")
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "agent", "decision_id"], name="bandit_decision_once"),
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
        indexes = [
            models.Index(fields=["bandit", "created"], name="bandit_selection_created"),
            models.Index(fields=["-created", "-id"], name="bandit_selection_recent"),
            models.Index(
                fields=["bandit", "agent", "created"], condition=Q(completed_at=None), name="bandit_selection_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.decision_id}: {self.arm}"


class Assignment(models.Model):
    """A randomised holdout: whether an arm that matched was taken, by a draw whose chance is on record.

    What is taken or held out by chance, and by nothing else, tells what an arm causes. `observation` is the session
    that it was for, once that is known. `key_id` is as in a `Selection`, and so is whose the id is.
    """

    bandit = models.ForeignKey(Bandit, models.PROTECT, related_name="assignments", db_index=False)
    decision_id = models.CharField(max_length=200)
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="assignments")
    agent = models.CharField(max_length=100, blank=True)
    context = models.CharField(max_length=100, blank=True, default="")
    taken = models.BooleanField()
    chance = models.FloatField(help_text="Of being taken.")
    key_id = models.CharField(max_length=8, blank=True, default="")
    created = models.DateTimeField()
    observation = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        ordering = ["-created", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["bandit", "agent", "decision_id", "arm"], name="bandit_assigned_once"),
            models.CheckConstraint(condition=Q(chance__gt=0, chance__lte=1), name="bandit_chance_0_to_1"),
            models.CheckConstraint(condition=Q(taken=True) | Q(chance__lt=1), name="bandit_certain_is_taken"),
            models.CheckConstraint(condition=~Q(decision_id=""), name="bandit_assignment_named"),
        ]
        indexes = [
            models.Index(fields=["bandit", "arm", "created"], name="bandit_assignment_arm"),
            models.Index(fields=["observation"], name="bandit_assignment_of"),
            models.Index(
                fields=["bandit", "agent", "created"], condition=Q(observation=""), name="bandit_assignment_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.decision_id}: {self.arm} {'taken' if self.taken else 'held out'}"


class Erasure(models.Model):
    """Who deleted append-only rows, when, why and how many of what. Written by `bandit.erasure.permit` alone.

    `digests` say what it was, as hashes that the caller makes, so that what is restored from a backup can be erased
    again; None where a version erased that kept none.
    """

    who = models.CharField(max_length=200)
    why = models.TextField()
    opened_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)
    counts = models.JSONField(default=dict)
    digests = models.JSONField(null=True)

    class Meta:
        ordering = ["-opened_at"]
        constraints = [
            models.CheckConstraint(condition=~Q(who="") & ~Q(why=""), name="bandit_erasure_says_who_and_why")
        ]

    def __str__(self) -> str:
        return f"{self.opened_at:%Y-%m-%d %H:%M} {self.who}: {self.why}"
