"""In which zone each person reads times."""

from django.conf import settings
from django.db import models


class PersonZone(models.Model):
    """The zone that a person has chosen, by its name in the tz database; without a row they read the site's."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    zone = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"{self.user} reads times in {self.zone}"
