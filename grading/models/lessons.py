"""The lessons that a session was given, from which bandits learn what each is worth."""

from django.db import models
from django.db.models import Q


class SessionLessonManager(models.Manager["SessionLesson"]):
    def get_queryset(self) -> "models.QuerySet[SessionLesson]":
        """With the arms that they are, in the order of these, also where sessions' lessons are prefetched."""
        return super().get_queryset().select_related("arm__merged_into").order_by("arm")


class SessionLesson(models.Model):
    """One lesson that matched a session, by its arm of the lesson bandit: given to it, or held out by chance.

    `salience` in [0, 1] is how much the lesson had to do with what happened, in the caller's words; None where it did
    not say. `assignment` is the draw that took the lesson or held it out; None where nothing was drawn.
    """

    # The index of `session_lesson_once` begins with it.
    session = models.ForeignKey("grading.Session", on_delete=models.CASCADE, related_name="lessons", db_index=False)
    arm = models.ForeignKey("bandit.Arm", on_delete=models.PROTECT, related_name="+")
    taken = models.BooleanField(default=True)
    salience = models.FloatField(null=True, blank=True)
    assignment = models.ForeignKey(
        "bandit.Assignment", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    objects = SessionLessonManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "arm"], name="session_lesson_once"),
            models.CheckConstraint(
                condition=Q(salience__isnull=True) | Q(salience__gte=0, salience__lte=1), name="lesson_salience_0_to_1"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.arm} {'given to' if self.taken else 'held out from'} {self.session}"
