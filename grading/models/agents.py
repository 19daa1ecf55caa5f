"""Agents (the programs that submit sessions) and their bearer tokens."""

import hashlib
import secrets

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.urls import reverse
from django.utils import timezone

TOKEN_PREFIX = "gs_"  # noqa: S105 - a prefix, so that a leaked token is recognisable


class Agent(models.Model):
    """A program that runs sessions and submits them. Session ids are unique within an agent."""

    name = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=120, blank=True)
    is_sample = models.BooleanField(default=False, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("admin:grading_agent_change", args=[self.pk])


def token_digest(token: str) -> str:
    """SHA-256 of a token. Tokens are 256 bits of randomness, so a slow hash would add nothing."""
    return hashlib.sha256(token.encode()).hexdigest()


class ApiTokenManager(models.Manager["ApiToken"]):
    def issue(self, agent: Agent, *, note: str = "", created_by: User | None = None) -> tuple["ApiToken", str]:
        """A new token for `agent`: the row, and the secret, which is shown once and kept nowhere."""
        secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
        row = self.create(agent=agent, digest=token_digest(secret), hint=secret[-4:], note=note, created_by=created_by)
        return row, secret

    def authenticate(self, secret: str) -> "ApiToken | None":
        """The live token with this secret, or None."""
        if not secret.startswith(TOKEN_PREFIX):
            return None
        return self.select_related("agent").filter(digest=token_digest(secret), revoked_at=None).first()


class ApiToken(models.Model):
    """A bearer token of one agent. Only its hash is stored; `hint` is its last four characters."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="tokens")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=4, editable=False)
    note = models.CharField(max_length=120, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, editable=False
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiTokenManager()

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.agent.name} …{self.hint}"
