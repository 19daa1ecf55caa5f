"""Results of the canaries: two logs whose worth is known, judged once a day."""

from enum import StrEnum

from django.db import models

from grading.models.fields import enum_field, hash_field, one_of
from grading.models.judge_keys import JudgeKeyTest


class Canary(StrEnum):
    GOOD = "good"
    BAD = "bad"


class CanaryRun(models.Model):
    """What a canary's grades were on one day, and by what. Grades are in [0, 1], None if there was none.

    `day` is in the site's time zone. `version` and `trajectory_version` name the rules of the digest with the score,
    and of the trajectory grade. `call` is None while the judge has not been asked.
    """

    canary = enum_field(Canary)
    day = models.DateField()
    verdict = models.FloatField(null=True, blank=True)
    trajectory = models.FloatField(null=True, blank=True)
    model = models.CharField(max_length=120, blank=True)
    route = models.CharField(max_length=300, blank=True)
    rubric = hash_field()
    version = models.CharField(max_length=40)
    trajectory_version = models.CharField(max_length=40)
    call = models.OneToOneField(JudgeKeyTest, null=True, blank=True, on_delete=models.PROTECT, related_name="canary")

    class Meta:
        ordering = ["-day", "canary"]
        constraints = [
            one_of("canary_run", "canary", Canary),
            models.UniqueConstraint(fields=["canary", "day"], name="canary_once_a_day"),
        ]

    def __str__(self) -> str:
        return f"{self.canary} canary of {self.day}"
