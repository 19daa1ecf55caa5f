"""Arms, their aliases, and the record of people's changes to them."""

from collections.abc import Iterable
from typing import Any, Self

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from bandit.models.bandits import Bandit
from bandit.names import canonical, nearest, printable


class UnknownArm(LookupError):
    """No arm has that name. The message names the most similar one. Arms are never created from free text."""

    def __init__(self, bandit: str, text: str, names: list[str]) -> None:
        near = nearest(text, names)
        hint = f" Did you mean {near!r}?" if near else ""
        super().__init__(
            f"bandit {bandit!r} has no arm {text!r}.{hint} Its arms are {', '.join(sorted(names)) or 'none yet'}. "
            "Add the arm, or an alias of an existing one, in the admin."
        )


class ArmQuerySet(models.QuerySet["Arm"]):
    def in_bandit(self, bandit: str) -> Self:
        return self.filter(bandit__name=bandit)

    def resolve(self, bandit: str, text: str) -> "Arm":
        """The arm with this name or alias, regardless of case, spaces and underscores. Raises UnknownArm.

        If it was merged, the arm that it was merged into.
        """
        name = canonical(text)
        arms = self.in_bandit(bandit).filter(Q(name=name) | Q(aliases__alias=name))
        arm = arms.select_related("merged_into").distinct().first()
        if arm is None:
            raise self.unknown(bandit, text)
        return arm.current

    def resolve_all(
        self, names: Iterable[tuple[str, str]]
    ) -> "tuple[dict[tuple[str, str], Arm], list[tuple[str, str]]]":
        """The arms of these (bandit, text) pairs, as `resolve` returns them, and the pairs that name no arm.

        One query.
        """
        canonical_by_pair = {(bandit, text): (bandit, canonical(text)) for bandit, text in names}
        if not canonical_by_pair:
            return {}, []
        spellings = {spelling for _bandit, spelling in canonical_by_pair.values()}
        rows = Arm.objects.filter(bandit__name__in={bandit for bandit, _spelling in canonical_by_pair.values()})
        rows = rows.filter(Q(name__in=spellings) | Q(aliases__alias__in=spellings))
        # By the names of bandit and arm, and by each alias; a name has precedence over an alias.
        arm_by_name: dict[tuple[str, str], Arm] = {}
        for arm in rows.select_related("bandit", "merged_into").order_by().annotate(alias=F("aliases__alias")):
            arm_by_name[arm.bandit.name, arm.name] = arm
            arm_by_name.setdefault((arm.bandit.name, arm.alias), arm)  # type: ignore[attr-defined]  # annotated
        arms = {pair: arm_by_name[name].current for pair, name in canonical_by_pair.items() if name in arm_by_name}
        return arms, [pair for pair in canonical_by_pair if pair not in arms]

    def unknown(self, bandit: str, text: str) -> UnknownArm:
        """The exception for a text that names no arm of this bandit."""
        return UnknownArm(bandit, text, list(self.in_bandit(bandit).values_list("name", flat=True)))


def _require_printable(field: str, name: str) -> None:
    if not name.isprintable():
        raise ValidationError({field: f"{printable(name)} has characters that nobody sees; type it without them."})


class Arm(models.Model):
    """One of a bandit's choices. It is retired, never deleted, so that its rewards stay on record."""

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
        """Raise ValidationError if the name is an alias already, or the arm both looks and reads."""
        self.name = canonical(self.name)
        _require_printable("name", self.name)
        if self.is_looking and self.is_consumption:
            raise ValidationError({"is_looking": "A category either reads or looks; choose one of the two."})
        other = ArmAlias.objects.filter(bandit_id=self.bandit_id, alias=self.name).first()
        if other:
            raise ValidationError({"name": f"{other.alias!r} is already an alias of {other.arm}; remove that first."})

    @property
    def current(self) -> "Arm":
        """The arm itself, or the one it was merged into, which gets its rewards."""
        return self if self.merged_into is None else self.merged_into

    @property
    def is_choosable(self) -> bool:
        """Whether it may be chosen at all, if there is work for it."""
        return not self.paused and self.retired_at is None and self.merged_into_id is None


class ArmEvent(models.Model):
    """A person's change of an arm, appended by `bandit.arms` and never changed."""

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
        """Raise ValidationError if another arm of the bandit has this name or alias."""
        self.alias, self.bandit_id = canonical(self.alias), self.arm.bandit_id
        _require_printable("alias", self.alias)
        if Arm.objects.filter(bandit_id=self.bandit_id, name=self.alias).exists():
            raise ValidationError({"alias": f"{self.alias!r} is an arm of its own; choose another alias."})
        others = ArmAlias.objects.filter(bandit_id=self.bandit_id, alias=self.alias).exclude(pk=self.pk)
        if other := others.select_related("arm").first():
            raise ValidationError(
                {"alias": f"{self.alias!r} is an alias of {other.arm} already; remove it there first."}
            )
