"""Whom to ask: the first judge, the one for when its service is in trouble, and another family's second opinion."""

import hashlib
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from grading.models import JudgeKey
from grading.models.judge_keys import JudgeAccess
from grading.models.judging import JudgeRole

DEFAULT_HOST = "api.anthropic.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A model behind a key and an address. Its quota, limiter and breaker are its own; its `role` is not."""

    role: JudgeRole
    model: str
    api_key: str
    base_url: str = ""

    @property
    def fingerprint(self) -> str:
        """Names the key and where it is sent, without giving it away."""
        return hashlib.sha256(f"{self.api_key}\n{self.base_url}".encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """What the limiter knows it by."""
        return f"{self.fingerprint}:{self.model}"

    @property
    def route(self) -> str:
        """Where the judge is reached: part of its identity (L14)."""
        host = urlsplit(self.base_url).netloc or DEFAULT_HOST
        return f"simulated {host}" if settings.SIMULATED else host

    @property
    def batch_route(self) -> str:
        """The same for what is sent in batches."""
        return f"{self.route} batches"


def first() -> Judge | None:
    """The judge whose verdicts decide; None where no key is set."""
    return _first(JudgeKey.objects.access())


def fallback() -> Judge | None:
    """Another model behind the same key."""
    return _fallback(JudgeKey.objects.access())


def second() -> Judge | None:
    """Another family, perhaps behind a gateway of its own."""
    return _second(JudgeKey.objects.access())


def configured() -> dict[JudgeRole, Judge]:
    """Every judge that can be asked, by role."""
    access = JudgeKey.objects.access()
    return {judge.role: judge for judge in (_first(access), _fallback(access), _second(access)) if judge is not None}


def with_key(api_key: str, base_url: str) -> Judge:
    """The first judge as it would be with this key, for a test of it."""
    return Judge(role=JudgeRole.FIRST, model=settings.JUDGE_MODEL, api_key=api_key, base_url=base_url)


def _first(access: JudgeAccess) -> Judge | None:
    return _judge(JudgeRole.FIRST, settings.JUDGE_MODEL, access.api_key, access.base_url)


def _fallback(access: JudgeAccess) -> Judge | None:
    return _judge(JudgeRole.FALLBACK, settings.JUDGE_FALLBACK_MODEL, access.api_key, access.base_url)


def _second(access: JudgeAccess) -> Judge | None:
    base_url = settings.JUDGE_SECOND_BASE_URL or access.base_url
    key = settings.JUDGE_SECOND_API_KEY or access.key_for(base_url)
    return _judge(JudgeRole.SECOND, settings.JUDGE_SECOND_MODEL, key, base_url)


def _judge(role: JudgeRole, model: str, api_key: str, base_url: str) -> Judge | None:
    return Judge(role=role, model=model, api_key=api_key, base_url=base_url) if model and api_key else None
