"""What holds of a session now, in one row: what lists, filters and counts read instead of looking for the latest of
everything. Derived from the other rows, and nothing but: see `grading.reward.state`.
"""

from django.db import models
from django.db.models import Q

from bandit.packed import PackedJSONField
from grading.models.fields import short_hash
from grading.models.grades import Grade, Settlement
from grading.models.sessions import Session


def question_of(rubric: str, version: str) -> int:
    """What tells verdicts apart by the rubric they were given under and the version that gave them."""
    return short_hash(rubric, version)


class SessionState(models.Model):
    """A session's current settlement (`settlement` and its columns), its verdict and how many flags are open.

    Written in the transaction that moves the reward; audited at night; `manage.py rebuild` writes it anew.
    Nothing here depends on a clock or on settings: of the verdict it says to which `question` it was given, a
    `question_of` its rubric and version, and whether that is stale is found out where it is read. `verdict` is the
    first judge's latest first reading; `category` the id of the session's.
    """

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="state")
    ended_at = models.DateTimeField()
    category = models.BigIntegerField(null=True)
    # Without an index or a constraint: nobody looks a state up by them, and they are audited.
    settlement = models.ForeignKey(
        Settlement, null=True, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    value = models.FloatField(null=True)
    source = models.CharField(max_length=32, blank=True)
    final = models.BooleanField(null=True)
    weight = models.FloatField(null=True)
    reason = models.CharField(max_length=32, blank=True)
    flags = models.PositiveSmallIntegerField(default=0)
    verdict = models.ForeignKey(
        Grade, null=True, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    question = models.BigIntegerField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["-ended_at", "-session"], name="state_recent"),
            models.Index(fields=["source", "-ended_at", "-session"], name="state_by_source"),
            models.Index(
                fields=["question", "category", "-ended_at"],
                condition=Q(verdict__isnull=False),
                name="state_by_question",
            ),
            models.Index(fields=["-ended_at", "-session"], condition=Q(final=False), name="state_provisional"),
            models.Index(fields=["-ended_at", "-session"], condition=Q(value=None), name="state_without_reward"),
            models.Index(fields=["-ended_at", "-session"], condition=Q(flags__gt=0), name="state_flagged"),
        ]

    def __str__(self) -> str:
        return f"state of {self.session_id}"


class SessionSignals(models.Model):
    """What a session's log says happened, as extracted by `version`: a row of its own, because it is long and few
    look at it. `data` is None where no log could be read.
    """

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="extracted")
    version = models.CharField(max_length=40, blank=True)
    data = PackedJSONField(null=True)

    class Meta:
        verbose_name_plural = "session signals"

    def __str__(self) -> str:
        return f"signals of {self.session_id}"
