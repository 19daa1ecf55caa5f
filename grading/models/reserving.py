"""What was drawn for a session, never changed: the shares of all sessions that it is in, and whether its silence is
judged first.
"""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.sessions import Session


class SessionShares(models.Model):
    """Which shares of all sessions one was drawn into, written when it arrived: the random slice that people answer,
    those whose judge is asked twice, and those of which another family is asked.

    Each is the chance in (0, 1] with which it came in, None where it did not. Append-only: whatever becomes of the
    shares and of the key, nothing is drawn again. `key_id` names the key (`bandit.chance`), "" for a draw from before
    there was one, by a public hash.
    """

    session = models.OneToOneField(Session, on_delete=models.PROTECT, related_name="shares")
    review_slice = models.FloatField(null=True, blank=True)
    repeat = models.FloatField(null=True, blank=True)
    second = models.FloatField(null=True, blank=True)
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
        """Those of the arm with that key, and of arms that were merged into it."""
        return self.filter(Q(arm=arm) | Q(arm__merged_into=arm))

    def drawn(self) -> "AbstentionDrawQuerySet":
        """Those that speak for the rest."""
        return self.filter(drawn=True)


class AbstentionDraw(models.Model):
    """Whether a session that nobody could grade was drawn to be judged first, written when it was first found so.

    Append-only: whatever evidence comes, nothing is drawn again. `chance` in [0, 1] is the one with which it was drawn
    or not, given the draws of its arm before; `key_id` names the key (`bandit.chance`). `arm` is the session's category
    as it was named then. A verdict on a drawn one is a random sample of the arm's abstentions, weighted by 1/`chance`.
    """

    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="abstention_draws")
    arm = models.ForeignKey("bandit.Arm", on_delete=models.PROTECT, related_name="+", db_index=False)
    drawn = models.BooleanField()
    chance = models.FloatField()
    key_id = models.CharField(max_length=8)
    created_at = models.DateTimeField(default=timezone.now)

    objects = AbstentionDrawQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["session", "arm"], name="abstention_draw_once"),
            models.CheckConstraint(condition=Q(chance__gte=0, chance__lte=1), name="abstention_draw_chance_0_to_1"),
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
