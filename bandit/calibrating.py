"""Which calibration is in force, and putting another in its place: always a new version, with a name."""

from datetime import datetime

from bandit import versions
from bandit.core.calibration import Scale
from bandit.models import Bandit, CalibrationVersion

WHAT = "calibration"


def latest(bandit: Bandit, known_by: datetime | None = None) -> CalibrationVersion | None:
    """The last version put here, or put here by then, on or off; None where there was none."""
    return versions.latest(CalibrationVersion, bandit, known_by)


def in_force(bandit: Bandit, known_by: datetime | None = None) -> CalibrationVersion | None:
    """The version by which fallbacks are read now, or were then; None where they are read as they stand."""
    return versions.in_force(CalibrationVersion, bandit, known_by)


def accepted(bandit: Bandit) -> CalibrationVersion | None:
    """The last version that a person put in force or switched off, or the start; None where nobody ever did."""
    version = CalibrationVersion.objects.filter(bandit=bandit, accepted=True).order_by("-version").first()
    if version is not None:
        version.bandit = bandit
    return version


def base_of(version: CalibrationVersion | None) -> int | None:
    """The number of the last version that a person accepted, at this one or before it; None for none.

    Those that came by themselves since moved no arm far from it. One query, and none where it is this one.
    """
    if version is None or version.accepted:
        return None if version is None else version.version
    before = version.bandit.calibrations.filter(accepted=True, version__lt=version.version)
    return before.order_by("-version").values_list("version", flat=True).first()


def scale_of(version: CalibrationVersion | None) -> Scale | None:
    """What a version says; None for none, and for one that switches off."""
    return None if version is None or not version.enabled else Scale.from_json(version.scale)


def put_in_force(
    bandit: str, scale: Scale, *, version: int, by: str, target: str = "", accepted: bool = True, note: str = ""
) -> CalibrationVersion:
    """Append this scale as `version`, the next one; from now on it counts. `accepted`: a person asked for it.

    Raises UnknownBandit, or StaleVersion where `version` is not the next.
    """
    said = {"scale": scale.as_json(), "target": target, "accepted": accepted}
    return versions.append(CalibrationVersion, bandit, version, WHAT, by=by, note=note, **said)


def switch_off(bandit: str, *, version: int, by: str, note: str = "") -> CalibrationVersion:
    """Append a version that reads every source as it stands. Raises as `put_in_force`."""
    off = {"enabled": False, "accepted": True}
    return versions.append(CalibrationVersion, bandit, version, WHAT, by=by, note=note, **off)
