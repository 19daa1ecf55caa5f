"""Random draws of sessions, never changed: for review, for repeated and second opinions, and for abstentions."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import unit_interval
from grading.models.sessions import Session


class SessionShares(models.Model):
    """The random samples that a session was drawn into when it arrived. Append-only: nothing is drawn again.

    Each column is the probability, in (0, 1], with which the session was drawn. None if it was not.
    """

    session = models.OneToOneField(Session, on_delete=models.PROTECT, related_name="shares")
    review_slice = models.FloatField(null=True, blank=True)  # reviewed by people
    repeat = models.FloatField(null=True, blank=True)  # judged twice
    second = models.FloatField(null=True, blank=True)  # judged by another model family, too
    # The key of the draw (`bandit.chance`). Empty in old rows, drawn by a public hash.
    key_id = models.CharField(max_length=8, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "session shares"
        constraints = [
            models.CheckConstraint(
                condition=Q(review_slice=None) | Q(review_slice__gt=0, review_slice__lte=1),
                name="session_shares_slice_is_a_chance",
            ),
            models.CheckConstraint(
                condition=Q(repeat=None) | Q(repeat__gt=0, repeat__lte=1), name="session_shares_repeat_is_a_chance"
            ),
            models.CheckConstraint(
                condition=Q(second=None) | Q(second__gt=0, second__lte=1), name="session_shares_second_is_a_chance"
            ),
        ]

    def __str__(self) -> str:
        drawn = {"slice": self.review_slice, "repeat": self.repeat, "second": self.second}
        return f"{self.session}: {', '.join(name for name, chance in drawn.items() if chance) or 'in no share'}"


class AbstentionDrawQuerySet(models.QuerySet["AbstentionDraw"]):
    def of_arm(self, arm: int) -> "AbstentionDrawQuerySet":
        """Draws of the arm with that key, and of arms merged into it."""
        return self.filter(Q(arm=arm) | Q(arm__merged_into=arm))

    def drawn(self) -> "AbstentionDrawQuerySet":
        """The sessions that were drawn."""
        return self.filter(drawn=True)


class AbstentionDraw(models.Model):
    """Whether a session that no source could grade was drawn to be judged first. Append-only: never drawn again.

    Verdicts on drawn sessions, weighted by 1/`chance`, are a random sample of the arm's abstentions.
    """

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="abstention_draws")
    # The session's category at that time.
    arm = models.ForeignKey("bandit.Arm", on_delete=models.PROTECT, related_name="+", db_index=False)
    drawn = models.BooleanField()
    chance = models.FloatField()  # the probability of being drawn, in [0, 1], given the arm's earlier draws
    key_id = models.CharField(max_length=8)  # the key of the draw (`bandit.chance`)
    created_at = models.DateTimeField(default=timezone.now)

    objects = AbstentionDrawQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["session", "arm"], name="abstention_draw_once"),
            unit_interval("chance", "abstention_draw_chance_0_to_1"),
            models.CheckConstraint(condition=Q(drawn=False) | Q(chance__gt=0), name="abstention_draw_was_possible"),
            models.CheckConstraint(condition=Q(drawn=True) | Q(chance__lt=1), name="abstention_draw_certain_is_drawn"),
            models.CheckConstraint(condition=~Q(key_id=""), name="abstention_draw_names_its_key"),
        ]
        indexes = [
            models.Index(fields=["arm", "-id"], name="abstention_draw_of_arm"),
            models.Index(fields=["arm", "-id"], condition=Q(drawn=True), name="abstention_draw_drawn"),
        ]

    def __str__(self) -> str:
        return f"{self.session} {'drawn' if self.drawn else 'not drawn'} with {self.chance:g}"
