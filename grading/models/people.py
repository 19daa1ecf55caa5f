"""What people have chosen for themselves: their time zone."""

from django.conf import settings
from django.db import models


class PersonZone(models.Model):
    """The time zone that a person reads times in, by its name in the tz database. Without a row it is the site's."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    zone = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"{self.user} reads times in {self.zone}"
