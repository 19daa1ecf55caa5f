"""Free space in the state folder. Below a minimum the site accepts no sessions: a full disk stops everything."""

import shutil

from django.conf import settings

GIB = 2**30


class NoRoom(Exception):
    """The request would leave too little free space."""


def free() -> int:
    """The free bytes."""
    return shutil.disk_usage(settings.STATE_DIR).free


def floor() -> int:
    """The minimum of free bytes: FREE_SPACE_FLOOR, or else 1 GiB or 5 % of the disk, whichever is less."""
    if settings.FREE_SPACE_FLOOR is not None:
        return int(settings.FREE_SPACE_FLOOR)
    return min(GIB, shutil.disk_usage(settings.STATE_DIR).total // 20)


def is_short(coming: int = 0) -> bool:
    """Whether fewer bytes than the minimum would be free after `coming` more bytes were stored."""
    return free() - coming < floor()
