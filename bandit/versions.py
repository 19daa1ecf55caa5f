"""Versioned rows (policies and calibrations), of which the latest counts. A change appends a new version.

The caller names the version that it appends, so that a form filled in on an outdated page is refused.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet

from bandit.core.calibration import FallbackCalibration
from bandit.core.machine_human import Offset
from bandit.core.offsets import check_offsets
from bandit.models import Bandit, CalibrationVersion, PolicyVersion

Version = TypeVar("Version", CalibrationVersion, PolicyVersion)


class StaleVersion(ValueError):
    """Somebody else appended a version meanwhile: look at the current one, then decide again."""


def require_next(version: int, current: int, what: str) -> None:
    """Raise StaleVersion unless `version` of `what` follows the current one, which is 0 if there is none."""
    if version != current + 1:
        raise StaleVersion(
            f"Nothing was saved, because somebody else changed {what} in the meantime: the next version is "
            f"{current + 1}, not {version}. Check what is in force now, then decide again."
        )


def latest(versions: QuerySet[Version], known_by: datetime | None = None) -> Version | None:
    """The latest of these versions, or the latest created until `known_by`; enabled or not, None if there is none."""
    if known_by is not None:
        versions = versions.filter(created_at__lte=known_by)
    return versions.order_by("-version").first()


def current_calibration(bandit: Bandit) -> CalibrationVersion | None:
    """The calibration that is in effect; None if there is none, or the latest is off."""
    return if_enabled(latest(bandit.calibrations.all()))


def if_enabled(version: CalibrationVersion | None) -> CalibrationVersion | None:
    """The version; None if there is none, or it is off."""
    return version if version is not None and version.enabled else None


def set_calibration(
    bandit: str,
    fallbacks: FallbackCalibration | None,
    offsets: Sequence[Offset] = (),
    *,
    version: int,
    by: str,
    target: str = "",
    accepted: bool = True,
    note: str = "",
) -> CalibrationVersion:
    """Store this calibration as `version`, the next one, which takes effect at once.

    `fallbacks` None: they are read like any other grade. `offsets` must have been fitted to grades as `fallbacks` reads
    them. `accepted`: a person accepted it; otherwise it was fitted automatically. `target` is the caller's name for the
    judge whose verdicts it was fitted to. Raises UnknownBandit, StaleVersion if `version` is not the next, or
    ValueError for an offset that is out of range or of human grades.
    """
    check_offsets({each.key: each.offset for each in offsets})
    return _append(
        bandit,
        version,
        fallbacks=None if fallbacks is None else fallbacks.as_json(),
        offsets=[each.as_json() for each in offsets],
        target=target,
        accepted=accepted,
        by=by,
        note=note,
    )


def switch_off_calibration(bandit: str, *, version: int, by: str, note: str = "") -> CalibrationVersion:
    """Store a version under which every reward is read as given. Raises as `set_calibration`."""
    return _append(bandit, version, enabled=False, accepted=True, by=by, note=note)


def accepted_calibration(bandit: Bandit) -> CalibrationVersion | None:
    """The last version that a person accepted, which may be one that switches calibration off; None without any."""
    return latest(bandit.calibrations.filter(accepted=True))


def _append(bandit: str, version: int, **fields: object) -> CalibrationVersion:
    """Store the next calibration. Raises UnknownBandit, or StaleVersion if `version` is not the next one."""
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        last = latest(row.calibrations.all())
        require_next(version, 0 if last is None else last.version, f"{bandit}'s calibration")
        return CalibrationVersion.objects.create(bandit=row, version=version, **fields)
