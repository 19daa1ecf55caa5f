"""How much room the state folder has left. Below the floor no session is taken in: a full disk stops all else."""

import shutil

from django.conf import settings

GIB = 2**30


class NoRoom(Exception):
    """Too little would be free once the request is stored."""


def free() -> int:
    """Bytes that the site may still write."""
    return shutil.disk_usage(settings.STATE_DIR).free


def floor() -> int:
    """Bytes that are to stay free: FREE_SPACE_FLOOR, else 1 GiB or 5 % of the disk, whichever is less."""
    if settings.FREE_SPACE_FLOOR is not None:
        return int(settings.FREE_SPACE_FLOOR)
    return min(GIB, shutil.disk_usage(settings.STATE_DIR).total // 20)


def is_short(coming: int = 0) -> bool:
    """Whether less than the floor would be free once so many bytes more have come."""
    return free() - coming < floor()
