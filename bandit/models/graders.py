"""Graders: who or what gave a value."""

from django.db import models
from django.db.models import Q


class Grader(models.Model):
    """Who or what gave a value. For a judge: the model that answered, the route to it, and the rubric's hash.

    The other columns divide a grader's rewards further. `stratum` is the caller's own subdivision, such as values that
    look wrong. `context` is what the bandit's baseline corrects for, such as the category. `salience` in percent is the
    arm's share in the session's work. `version` names the program that computed the value, `view` what it could see of
    the session (for an abstention: why it abstained), `witness` who vouches for the evidence, `standing` whether
    something contests the value, and `agent` whose session it was. All are in the caller's words, empty if unknown.
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
        judge = (self.source, self.model, self.route, self.rubric[:8])
        division = (self.stratum, self.context, salience, self.version, self.view, self.witness, self.standing)
        return " ".join(part for part in (*judge, *division, self.agent) if part)
