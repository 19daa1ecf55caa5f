"""Numbers that hold as versioned rows: whoever appends one names the version it is to be, so a stale page is told."""

from datetime import datetime
from functools import cache
from typing import Any, TypeVar, cast

from django.db import transaction

from bandit.models import Bandit, PolicyVersion, SwitchedVersion
from bandit.prepared import Prepared

Switched = TypeVar("Switched", bound=SwitchedVersion)
Version = TypeVar("Version", bound=SwitchedVersion | PolicyVersion)


class StaleVersion(ValueError):
    """Another version came in between; look at what holds now, then decide again."""


def require_next(version: int, held: int, what: str) -> None:
    """Raises StaleVersion where `version` of `what` is not the one after `held`, which is 0 where there is none."""
    if version != held + 1:
        raise StaleVersion(
            f"this was to be version {version} of {what}, but the next one is {held + 1}: somebody changed it "
            "meanwhile. Nothing was saved; look at what is in force now, then decide again."
        )


def latest(model: type[Version], bandit: Bandit, known_by: datetime | None = None) -> Version | None:
    """The last of a bandit's versions, or the last that was put there by then, on or off; None where there was none."""
    asked: tuple[int | datetime, ...] = (bandit.pk,) if known_by is None else (bandit.pk, known_by)
    held: Version | None = _last(cast("Any", model), is_past=known_by is not None).first(*asked)
    if held is not None:
        held.bandit = bandit
    return held


@cache
def _last(model: Any, *, is_past: bool) -> Prepared[Any]:
    made = model._default_manager.order_by("-version")  # noqa: SLF001 - public API
    if is_past:
        return Prepared(lambda key, by: made.filter(bandit=key, created_at__lte=by)[:1], int, datetime)
    return Prepared(lambda key: made.filter(bandit=key)[:1], int)


def in_force(model: type[Switched], bandit: Bandit, known_by: datetime | None = None) -> Switched | None:
    """The version that counts now, or did then; None where none does."""
    return on(latest(model, bandit, known_by))


def on(held: Switched | None) -> Switched | None:
    """The last version where it counts; None where there is none, and where it switches off."""
    return held if held is not None and held.enabled else None


def append(model: type[Switched], bandit: str, version: int, what: str, **fields: object) -> Switched:
    """Put this version of `what` there, the next one. Raises UnknownBandit or StaleVersion."""
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        held = latest(model, row)
        require_next(version, 0 if held is None else held.version, f"{bandit}'s {what}")
        return model._default_manager.create(bandit=row, version=version, **fields)  # noqa: SLF001 - public API
