"""Versioned rows (policies, calibrations, rectifiers), of which the latest counts. A change appends a new version.

The caller names the version that it appends, so that a form filled in on an outdated page is refused.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction

from bandit.core.calibration import Scale
from bandit.core.recalibration import Offset
from bandit.core.rectify import Stratum, check_offsets
from bandit.models import Bandit, CalibrationVersion, PolicyVersion, Rectifier, SwitchedVersion

Switched = TypeVar("Switched", bound=SwitchedVersion)
Version = TypeVar("Version", bound=SwitchedVersion | PolicyVersion)


class StaleVersion(ValueError):
    """Somebody else appended a version meanwhile: look at the current one, then decide again."""


def require_next(version: int, current: int, what: str) -> None:
    """Raise StaleVersion unless `version` of `what` follows the current one, which is 0 if there is none."""
    if version != current + 1:
        raise StaleVersion(
            f"this was to be version {version} of {what}, but the next one is {current + 1}: somebody changed it "
            "meanwhile. Nothing was saved; look at what is in force now, then decide again."
        )


def latest(model: type[Version], bandit: Bandit, known_by: datetime | None = None) -> Version | None:
    """The bandit's latest version, or the latest created until `known_by`; enabled or not, None if there is none."""
    manager: Any = model._default_manager  # noqa: SLF001 - public API
    versions = manager.filter(bandit=bandit).order_by("-version")
    if known_by is not None:
        versions = versions.filter(created_at__lte=known_by)
    version: Version | None = versions.first()
    if version is not None:
        version.bandit = bandit  # so that reading it takes no query
    return version


def current(model: type[Switched], bandit: Bandit, known_by: datetime | None = None) -> Switched | None:
    """The version that is in effect now, or was at `known_by`; None if there is none, or the latest is off."""
    return if_enabled(latest(model, bandit, known_by))


def if_enabled(version: Switched | None) -> Switched | None:
    """The version; None if there is none, or it is off."""
    return version if version is not None and version.enabled else None


def _append(model: type[Switched], bandit: str, version: int, what: str, **fields: object) -> Switched:
    """Store the next version. Raises UnknownBandit, or StaleVersion if `version` is not the next one of `what`."""
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        last = latest(model, row)
        require_next(version, 0 if last is None else last.version, f"{bandit}'s {what}")
        return model._default_manager.create(bandit=row, version=version, **fields)  # noqa: SLF001 - public API


# --- calibrations ----------------------------------------------------------------------------------------------------


def set_calibration(
    bandit: str, scale: Scale, *, version: int, by: str, target: str = "", accepted: bool = True, note: str = ""
) -> CalibrationVersion:
    """Store this scale as `version`, the next one, which takes effect at once.

    `accepted`: a person accepted it; otherwise it was fitted automatically. `target` is the caller's name for the judge
    to whose grades it maps. Raises UnknownBandit, or StaleVersion if `version` is not the next.
    """
    fields = {"scale": scale.as_json(), "target": target, "accepted": accepted, "by": by, "note": note}
    return _append(CalibrationVersion, bandit, version, "calibration", **fields)


def switch_off_calibration(bandit: str, *, version: int, by: str, note: str = "") -> CalibrationVersion:
    """Store a version that maps no source. Raises as `set_calibration`."""
    fields = {"enabled": False, "accepted": True, "by": by, "note": note}
    return _append(CalibrationVersion, bandit, version, "calibration", **fields)


def scale_of(version: CalibrationVersion | None) -> Scale | None:
    """The version's scale; None if there is no version, or it is off."""
    return None if version is None or not version.enabled else Scale.from_json(version.scale)


def accepted_calibration(bandit: Bandit) -> CalibrationVersion | None:
    """The last version that a person accepted, which may be one that switches calibration off; None without any."""
    version = CalibrationVersion.objects.filter(bandit=bandit, accepted=True).order_by("-version").first()
    if version is not None:
        version.bandit = bandit
    return version


def accepted_base(version: CalibrationVersion | None) -> int | None:
    """The number of the last version up to this one that a person accepted; None if there is none.

    Versions that were fitted automatically since then stay close to it.
    """
    if version is None:
        return None
    if version.accepted:
        return version.version
    earlier = version.bandit.calibrations.filter(accepted=True, version__lt=version.version)
    return earlier.order_by("-version").values_list("version", flat=True).first()


# --- rectifiers ------------------------------------------------------------------------------------------------------


def set_rectifier(bandit: str, offsets: Sequence[Offset], *, version: int, by: str, note: str = "") -> Rectifier:
    """Store these offsets as `version`, the next one, which takes effect at once.

    The offsets must have been fitted under the current calibration. The last calibration that a person accepted is
    stored with them (`effective_offsets` says why). Raises UnknownBandit, StaleVersion if `version` is not the next, or
    ValueError for no offsets, one out of range or one of human grades.
    """
    if not offsets:
        raise ValueError("a rectifier has at least one offset; got none. To move nothing, switch it off")
    check_offsets({each.key: each.offset for each in offsets})
    calibration = accepted_base(current(CalibrationVersion, Bandit.objects.named(bandit)))
    fields = {"offsets": [each.as_json() for each in offsets], "calibration": calibration, "by": by, "note": note}
    return _append(Rectifier, bandit, version, "recalibration", **fields)


def switch_off_rectifier(bandit: str, *, version: int, by: str, note: str = "") -> Rectifier:
    """Store a version that moves no reward. Raises as `set_rectifier`."""
    return _append(Rectifier, bandit, version, "recalibration", by=by, note=note, enabled=False)


def effective_offsets(rectifier: Rectifier, calibration: CalibrationVersion | None) -> dict[Stratum, float]:
    """The rectifier's offsets that apply under this calibration; None means that no calibration is in effect.

    An offset is how far people's grades were from the source's grades, as the calibration of that time mapped them. If
    a person has accepted another calibration since, or switched it off, offsets of sources that either of the two maps
    are left out.
    """
    offsets = rectifier.offset_by_stratum
    if rectifier.calibration == accepted_base(calibration):
        return offsets
    calibrations = [] if calibration is None else [calibration]
    calibrations += rectifier.bandit.calibrations.filter(version=rectifier.calibration or 0)
    mapped_sources: set[str] = set()
    for each in calibrations:
        if each.enabled:
            mapped_sources.update(each.scale["sources"])
    return {
        (arm, source, name): offset for (arm, source, name), offset in offsets.items() if source not in mapped_sources
    }
