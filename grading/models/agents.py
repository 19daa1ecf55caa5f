"""Agents (the programs that submit sessions), their bearer tokens, and what each token used per day."""

import datetime as dt
import hashlib
import secrets

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from grading.models.fields import enum_field, one_of
from grading.vocabulary import LabelledEnum
from grading.witness import Witness

# How long the old token stays valid after a rotation.
ROTATION_OVERLAP = dt.timedelta(days=1)
TOKEN_PREFIX = "gs_"  # noqa: S105 - no secret, but what makes a leaked token recognisable


class Agent(models.Model):
    """A program that submits sessions. Session ids are unique within an agent."""

    name = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=120, blank=True)
    is_sample = models.BooleanField(default=False, editable=False)
    # Its models are paid by a subscription: pages say what its sessions would have cost.
    has_subscription = models.BooleanField(default=False, editable=False)
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


class TokenScope(LabelledEnum):
    """Who has a token, and therefore who vouches for what is sent with it."""

    UNSCOPED = "", "made before scopes"
    AGENT = "agent", "the agent itself"
    HOOK = "hook", "a hook on the agent’s machine"
    RUNNER = "runner", "a runner that the agent cannot read"
    READ = "read", "reading only"
    OUTCOMES = "outcomes", "CI that reports outcomes"

    @property
    def witness(self) -> Witness:
        """Who vouches for what is sent with such a token."""
        return {
            TokenScope.UNSCOPED: Witness.UNKNOWN,
            TokenScope.HOOK: Witness.HOOK,
            TokenScope.RUNNER: Witness.OBSERVED,
            TokenScope.OUTCOMES: Witness.OBSERVED,
        }.get(self, Witness.CLAIMED)

    @property
    def may_report_outcomes(self) -> bool:
        """Whether such a token may report what became of the work. The graded agent and its hook may not."""
        return self in {TokenScope.RUNNER, TokenScope.OUTCOMES}

    @property
    def narrower(self) -> "tuple[TokenScope, ...]":
        """The scopes that a token of this scope may be changed to, the widest first. A token is never widened."""
        order = (TokenScope.RUNNER, TokenScope.HOOK, TokenScope.AGENT, TokenScope.READ)
        if self is TokenScope.OUTCOMES:
            return ()
        return order if self is TokenScope.UNSCOPED else order[order.index(self) + 1 :]


class ApiTokenManager(models.Manager["ApiToken"]):
    def issue(
        self, agent: Agent, *, scope: TokenScope = TokenScope.HOOK, note: str = "", created_by: User | None = None
    ) -> tuple["ApiToken", str]:
        """Create a token for `agent`. Returns the row and the secret, which is stored nowhere: show it once."""
        secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
        row = self.create(
            agent=agent,
            digest=token_digest(secret),
            hint=secret[-4:],
            scope=scope,
            note=note,
            created_by=created_by,
        )
        return row, secret

    def authenticate(self, secret: str, now: dt.datetime | None = None) -> "ApiToken | None":
        """The valid token with this secret, or None."""
        if not secret.startswith(TOKEN_PREFIX):
            return None
        unexpired = Q(expires_at=None) | Q(expires_at__gt=now or timezone.now())
        tokens = self.select_related("agent").filter(unexpired, digest=token_digest(secret), revoked_at=None)
        return tokens.first()


class ApiToken(models.Model):
    """A bearer token of one agent. Only its hash is stored."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="tokens")
    scope = enum_field(TokenScope, blank=True, default=TokenScope.UNSCOPED)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=4, editable=False)  # the secret's last four characters
    note = models.CharField(max_length=120, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, editable=False
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ApiTokenManager()

    class Meta:
        ordering = ["-created_at"]
        constraints = [one_of("apitoken", "scope", TokenScope)]

    def __str__(self) -> str:
        return f"{self.agent.name} …{self.hint}"

    @property
    def witness(self) -> Witness:
        return TokenScope(self.scope).witness

    @property
    def may_write(self) -> bool:
        return self.scope not in {TokenScope.READ, TokenScope.OUTCOMES}

    def narrow(self, scope: TokenScope) -> None:
        """Change the scope to a narrower one. Raises ValueError if `scope` isn't narrower."""
        if scope not in TokenScope(self.scope).narrower:
            raise ValueError(f"a token is never widened: {self.get_scope_display()} to {scope.words}; make a new one")
        self.scope = scope
        self.save(update_fields=["scope"])

    def rotate(self, by: User | None) -> tuple["ApiToken", str]:
        """Issue a replacement with the same scope and note; this token stays valid for at most ROTATION_OVERLAP more.

        Returns the new row and its secret.
        """
        ends = timezone.now() + ROTATION_OVERLAP
        if self.expires_at is None or self.expires_at > ends:
            self.expires_at = ends
            self.save(update_fields=["expires_at"])
        return ApiToken.objects.issue(self.agent, scope=TokenScope(self.scope), note=self.note, created_by=by)

    def revoke(self) -> None:
        """Make the token invalid, for good."""
        ApiToken.objects.filter(pk=self.pk, revoked_at=None).update(revoked_at=timezone.now())


class TokenUsage(models.Model):
    """How many requests a token made on one day of the site, and how many bytes their bodies announced.

    The daily quotas limit both.
    """

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="usage")
    day = models.DateField()
    requests = models.PositiveIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "day"], name="token_usage_once_a_day")]

    def __str__(self) -> str:
        return f"{self.token} on {self.day}"
