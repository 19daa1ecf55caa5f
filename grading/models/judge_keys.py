"""The judge's API key, from the environment or entered in the browser and encrypted, and calls that tested it."""

import re
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone

from grading.models.fields import enum_field, one_of, redacted_text
from grading.vocabulary import Reason
from gradingsite import sealing

PURPOSE = "judge key"
MAX_KEY_LENGTH = 500
HINT_LENGTH = 4
# Visible ASCII: what a header can carry.
KEY = re.compile(rf"[!-~]{{8,{MAX_KEY_LENGTH}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAccess:
    """The first judge's API key (empty if there is none) and address. `trouble` says why a stored key is unusable."""

    api_key: str = ""
    base_url: str = ""
    from_environment: bool = False
    trouble: str = ""

    def key_for(self, base_url: str) -> str:
        """The key, if it may be sent to that address. A stored key is only for the address it was entered with."""
        return self.api_key if self.from_environment or base_url == self.base_url else ""


class JudgeKeyManager(models.Manager["JudgeKey"]):
    def access(self) -> JudgeAccess:
        """The current key: the environment's (without a query), otherwise the stored one."""
        if settings.ANTHROPIC_API_KEY:
            return JudgeAccess(
                api_key=settings.ANTHROPIC_API_KEY, base_url=settings.ANTHROPIC_BASE_URL, from_environment=True
            )
        row = self.first()
        if row is None:
            return JudgeAccess(base_url=settings.ANTHROPIC_BASE_URL)
        return row.unseal()

    def put(self, api_key: str, base_url: str, by: User) -> "JudgeKey":
        """Replace the stored key. Raises ValueError if it isn't a valid key, or is for another address."""
        if not KEY.fullmatch(api_key):
            raise ValueError(f"Expected 8 to {MAX_KEY_LENGTH} letters, digits and signs without spaces.")
        if settings.ANTHROPIC_BASE_URL and base_url != settings.ANTHROPIC_BASE_URL:
            raise ValueError("ANTHROPIC_BASE_URL names another address.")
        # The key is encrypted together with its address, so that nobody can send it elsewhere by changing the row.
        columns = {
            "sealed": sealing.seal(f"{base_url}\n{api_key}", purpose=PURPOSE),
            "base_url": base_url,
            "hint": api_key[-HINT_LENGTH:],
            "by": by,
            "at": timezone.now(),
        }
        return self.update_or_create(only=True, defaults=columns)[0]


class JudgeKey(models.Model):
    """The key that was entered in the browser, encrypted together with its address. At most one row."""

    only = models.BooleanField(default=True, unique=True, editable=False)
    sealed = models.TextField()
    base_url = models.CharField(max_length=500, blank=True)
    hint = models.CharField(max_length=HINT_LENGTH)  # the key's last characters, which pages show
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    objects = JudgeKeyManager()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(only=True), name="judge_key_only")]

    def __str__(self) -> str:
        return f"judge key …{self.hint}"

    def unseal(self) -> JudgeAccess:
        """The decrypted key, or why it can't be used."""
        if settings.ANTHROPIC_BASE_URL not in {"", self.base_url}:
            return JudgeAccess(
                base_url=settings.ANTHROPIC_BASE_URL,
                trouble="The stored key was entered for a different address than ANTHROPIC_BASE_URL.",
            )
        try:
            base_url, _, api_key = sealing.unseal(self.sealed, purpose=PURPOSE).partition("\n")
        except sealing.CannotBeRead:
            base_url, api_key = "", ""
        if not api_key or base_url != self.base_url:
            return JudgeAccess(
                base_url=self.base_url,
                trouble=(
                    "The stored key can’t be read any more, because the site’s secret has changed since the key was "
                    "entered."
                ),
            )
        return JudgeAccess(api_key=api_key, base_url=base_url)


class JudgeKeyTest(models.Model):
    """One call that tested a key. Written before the call, which counts against the daily budget."""

    hint = models.CharField(max_length=HINT_LENGTH)
    model = models.CharField(max_length=120)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)  # None if the result is unknown
    reason = enum_field(Reason, blank=True, default=Reason.NONE)
    detail = redacted_text(blank=True)
    input_tokens = models.PositiveIntegerField(null=True, blank=True)
    output_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost_usd = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [one_of("judge_key_test", "reason", Reason)]
        indexes = [models.Index(fields=["started_at"], name="judge_key_test_recent")]

    def __str__(self) -> str:
        return f"test of judge key …{self.hint}"

    @property
    def answered(self) -> bool:
        return self.finished_at is not None and not self.reason

    @property
    def seconds(self) -> float | None:
        """How long the answer took, in seconds. None if the result is unknown."""
        return None if self.finished_at is None else (self.finished_at - self.started_at).total_seconds()
