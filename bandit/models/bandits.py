"""Bandits: the questions whose answers are learnt from rewards."""

from collections.abc import Collection
from typing import Self

from django.db import models
from django.db.models import F, Q


class UnknownBandit(LookupError):
    """No bandit of that name."""

    def __init__(self, name: str) -> None:
        names = ", ".join(Bandit.objects.order_by("name").values_list("name", flat=True))
        super().__init__(f"there is no bandit {name!r}; there are: {names}")


class BanditQuerySet(models.QuerySet["Bandit"]):
    def named(self, name: str) -> "Bandit":
        """The bandit of that name. Raises UnknownBandit."""
        is_queryable = name.isprintable()  # PostgreSQL refuses a query for a NUL
        bandit = self.select_related("baseline").filter(name=name).first() if is_queryable else None
        if bandit is None:
            raise UnknownBandit(name)
        return bandit

    def that_learn(self) -> Self:
        """Bandits with posteriors, oldest first: all but those whose arms are only names."""
        return self.exclude(kind=BanditKind.NAMES).order_by("pk")

    def locked(self, name: str) -> "Bandit":
        """The bandit of that name, locked until the transaction ends. Others may insert rows that refer to it.

        Raises UnknownBandit.
        """
        return self.select_for_update(no_key=True, of=("self",)).named(name)

    def locked_each(self, names: Collection[str]) -> Self:
        """Those of these names that exist, locked as by `locked` in the order of their keys."""
        return self.select_for_update(no_key=True).filter(name__in=names).order_by("pk")


class BanditKind(models.TextChoices):
    """What a bandit decides: one arm to choose, each of many arms to take or hold out, or nothing."""

    CHOICE = "choice", "one of its arms is chosen"
    MANY = "many", "each of several arms is taken, or held out by chance"
    NAMES = "names", "its arms are only names: nothing is learnt or chosen"


class Bandit(models.Model):
    """One question ("what next?", "on which harness and model?"). Its `PolicyVersion` says how its evidence is read.

    If a bandit has a `baseline`, another bandit, the mean of an arm of that bandit is subtracted from its rewards; the
    caller names the arm as each credit's context. `revision` changes whenever a posterior may: with rewards, arms and
    policies.
    """

    name = models.SlugField(unique=True)
    title = models.CharField(max_length=100)
    kind = models.CharField(max_length=6, choices=BanditKind, default=BanditKind.CHOICE)
    baseline = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="+", help_text="Whose arms' means are taken out."
    )
    revision = models.PositiveBigIntegerField(default=0, editable=False)

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
