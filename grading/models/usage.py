"""What each token has asked and sent, by day: what its daily quota is held against."""

from django.db import models

from grading.models.agents import ApiToken


class TokenUsage(models.Model):
    """One token's requests of the API on one day of the site, and the bytes that their bodies announced."""

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="usage")
    day = models.DateField()
    requests = models.PositiveIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "day"], name="token_usage_once_a_day")]

    def __str__(self) -> str:
        return f"{self.token} on {self.day}"
