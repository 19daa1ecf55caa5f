"""Which rectifier is in force, and putting another in its place: always a new version, with a name."""

from collections.abc import Sequence
from datetime import datetime

from bandit import calibrating, versions
from bandit.core.recalibration import Offset
from bandit.core.rectify import Stratum, check_offsets
from bandit.models import Bandit, CalibrationVersion, Rectifier

WHAT = "recalibration"


def latest(bandit: Bandit, known_by: datetime | None = None) -> Rectifier | None:
    """The last version put here, or put here by then, on or off; None where there was none."""
    return versions.latest(Rectifier, bandit, known_by)


def in_force(bandit: Bandit, known_by: datetime | None = None) -> Rectifier | None:
    """The version that moves rewards now, or did then; None where none does."""
    return versions.in_force(Rectifier, bandit, known_by)


def offsets_of(rectifier: Rectifier) -> dict[Stratum, float]:
    """Its offsets by (arm, source, stratum)."""
    return {(row["arm"], row["source"], row["stratum"]): row["offset"] for row in rectifier.offsets}


def offsets_under(rectifier: Rectifier, calibration: CalibrationVersion | None) -> dict[Stratum, float]:
    """Its offsets while this calibration, or none, is in force.

    One of a source that a calibration reads says how far people were from what that made of its grades: it is suspended
    where it is off, and under another version that a person put in force. One that came by itself is near the last of
    those.
    """
    offsets = offsets_of(rectifier)
    if rectifier.calibration == calibrating.base_of(calibration):
        return offsets
    held = [calibration] if calibration is not None else []
    held += rectifier.bandit.calibrations.filter(version=rectifier.calibration or 0)
    read = {source for each in held if each.enabled for source in each.scale["sources"]}
    return {key: offset for key, offset in offsets.items() if key[1] not in read}


def put_in_force(bandit: str, offsets: Sequence[Offset], *, version: int, by: str, note: str = "") -> Rectifier:
    """Append these offsets as `version`, the next one, fitted under the calibration in force, of which the last version
    that a person accepted is noted; from now on they count.

    Raises UnknownBandit, StaleVersion where `version` is not the next, or ValueError for no offsets, one out of
    range or one of human grades.
    """
    if not offsets:
        raise ValueError("a rectifier has at least one offset; got none. To move nothing, switch it off")
    check_offsets({each.key: each.offset for each in offsets})
    held = calibrating.in_force(Bandit.objects.named(bandit))
    said = {"offsets": [each.as_json() for each in offsets], "calibration": calibrating.base_of(held)}
    return versions.append(Rectifier, bandit, version, WHAT, by=by, note=note, **said)


def switch_off(bandit: str, *, version: int, by: str, note: str = "") -> Rectifier:
    """Append a version that moves nothing: every posterior is the ledger's own again. Raises as `put_in_force`."""
    return versions.append(Rectifier, bandit, version, WHAT, by=by, note=note, enabled=False)
