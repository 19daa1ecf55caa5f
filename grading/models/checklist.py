"""The first steps on the dashboard: who has put them away."""

from django.conf import settings
from django.db import models
from django.utils import timezone


class HiddenChecklist(models.Model):
    """A person who doesn't want to see the first steps; without a row they are shown until they are done."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.user} has hidden the first steps"
