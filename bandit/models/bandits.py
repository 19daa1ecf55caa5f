"""The questions that are asked."""

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
