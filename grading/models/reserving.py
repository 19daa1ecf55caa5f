"""Which abstentions are judged first, so that silence is heard: one draw a session and arm, never changed."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.sessions import Session


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
