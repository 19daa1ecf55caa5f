"""Which calibration is in force, and putting another in its place: always a new version, with a name."""

from datetime import datetime

from django.db import transaction

from bandit.core.calibration import Scale
from bandit.ledger import touch
from bandit.models import Bandit, CalibrationVersion
from bandit.versions import require_next


def latest(bandit: Bandit, known_by: datetime | None = None) -> CalibrationVersion | None:
    """The last version put here, or put here by then, on or off; None where there was none."""
    versions = bandit.calibrations.order_by("-version")
    return (versions if known_by is None else versions.filter(created_at__lte=known_by)).first()


def in_force(bandit: Bandit, known_by: datetime | None = None) -> CalibrationVersion | None:
    """The version by which fallbacks are read now, or were then; None where they are read as they stand."""
    held = latest(bandit, known_by)
    return held if held is not None and held.enabled else None


def accepted(bandit: Bandit) -> CalibrationVersion | None:
    """The last version that a person put in force or switched off, or the start; None where nobody ever did."""
    return bandit.calibrations.filter(accepted=True).order_by("-version").first()


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
    return _append(bandit, version, by=by, note=note, **said)


def switch_off(bandit: str, *, version: int, by: str, note: str = "") -> CalibrationVersion:
    """Append a version that reads every source as it stands. Raises as `put_in_force`."""
    return _append(bandit, version, by=by, note=note, enabled=False, accepted=True)


def _append(bandit: str, version: int, **fields: object) -> CalibrationVersion:
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        held = latest(row)
        require_next(version, 0 if held is None else held.version, f"{bandit}'s calibration")
        made = CalibrationVersion.objects.create(bandit=row, version=version, **fields)
        touch(row)
    return made
