"""One run of a site at a time: a lock in the state folder, with the address of the run that has it."""

import fcntl
import os
from typing import IO

from django.conf import settings

SITE_LOCK = "site.lock"


class AlreadyRunning(Exception):
    """Another run of the site has the lock. The message has its address."""


def alone(name: str, address: str) -> IO[str]:
    """Acquire the lock of this name until the file is closed. Raises AlreadyRunning."""
    settings.STATE_DIR.mkdir(parents=True, exist_ok=True)
    lock = (settings.STATE_DIR / name).open("a+")
    lock.seek(0)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with lock:
            raise AlreadyRunning(f"This site is running already: {lock.read() or 'it is just starting'}") from None
    lock.truncate(0)
    lock.write(f"{address} (process {os.getpid()})")
    lock.flush()
    return lock
