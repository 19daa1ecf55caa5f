"""Versioned rows, of which the latest counts. Appending one names its version, so that a stale page is refused."""

from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction

from bandit.models import Bandit, PolicyVersion, SwitchedVersion

Switched = TypeVar("Switched", bound=SwitchedVersion)
Version = TypeVar("Version", bound=SwitchedVersion | PolicyVersion)


class StaleVersion(ValueError):
    """Another version came in between; look at what holds now, then decide again."""


def require_next(version: int, current: int, what: str) -> None:
    """Raises StaleVersion where `version` of `what` is not the one after `current`, which is 0 where there is none."""
    if version != current + 1:
        raise StaleVersion(
            f"this was to be version {version} of {what}, but the next one is {current + 1}: somebody changed it "
            "meanwhile. Nothing was saved; look at what is in force now, then decide again."
        )


def latest(model: type[Version], bandit: Bandit, known_by: datetime | None = None) -> Version | None:
    """The bandit's latest version, or the latest made by `known_by`, enabled or not; None where there is none."""
    manager: Any = model._default_manager  # noqa: SLF001 - public API
    versions = manager.filter(bandit=bandit).order_by("-version")
    if known_by is not None:
        versions = versions.filter(created_at__lte=known_by)
    version: Version | None = versions.first()
    if version is not None:
        version.bandit = bandit
    return version


def in_force(model: type[Switched], bandit: Bandit, known_by: datetime | None = None) -> Switched | None:
    """The version that counts now, or did then; None where none does."""
    return on(latest(model, bandit, known_by))


def on(version: Switched | None) -> Switched | None:
    """The version if it is enabled; None for none, and for one that switches off."""
    return version if version is not None and version.enabled else None


def append(model: type[Switched], bandit: str, version: int, what: str, **fields: object) -> Switched:
    """Append this version of `what`, which has to be the next one. Raises UnknownBandit or StaleVersion."""
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        current = latest(model, row)
        require_next(version, 0 if current is None else current.version, f"{bandit}'s {what}")
        return model._default_manager.create(bandit=row, version=version, **fields)  # noqa: SLF001 - public API
