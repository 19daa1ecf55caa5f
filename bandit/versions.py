"""Numbers that hold as versioned rows: whoever appends one names the version it is to be, so a stale page is told."""

from datetime import datetime
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet

from bandit.models import Bandit, SwitchedVersion

Version = TypeVar("Version", bound=SwitchedVersion)


class StaleVersion(ValueError):
    """Another version came in between; look at what holds now, then decide again."""


def require_next(version: int, held: int, what: str) -> None:
    """Raises StaleVersion where `version` of `what` is not the one after `held`, which is 0 where there is none."""
    if version != held + 1:
        raise StaleVersion(
            f"this was to be version {version} of {what}, but the next one is {held + 1}: somebody changed it "
            "meanwhile. Nothing was saved; look at what is in force now, then decide again."
        )


def latest(versions: QuerySet[Version], known_by: datetime | None = None) -> Version | None:
    """The last of a bandit's versions, or the last that was put there by then, on or off; None where there was none."""
    held = versions if known_by is None else versions.filter(created_at__lte=known_by)
    return held.order_by("-version").first()


def in_force(versions: QuerySet[Version], known_by: datetime | None = None) -> Version | None:
    """The version that counts now, or did then; None where none does."""
    held = latest(versions, known_by)
    return held if held is not None and held.enabled else None


def append(model: type[Version], bandit: str, version: int, what: str, **fields: object) -> Version:
    """Put this version of `what` there, the next one. Raises UnknownBandit or StaleVersion."""
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        versions = model._default_manager  # noqa: SLF001 - public API
        held = latest(versions.filter(bandit=row))
        require_next(version, 0 if held is None else held.version, f"{bandit}'s {what}")
        return versions.create(bandit=row, version=version, **fields)
