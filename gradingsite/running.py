"""Which programs of the site run, so that nothing replaces the database under one of them.

A program has the old database's file open, and remembers rows that another database may not have.
"""

import fcntl
import os
import sys

from django.conf import settings

from gradingsite import schema

# In the state folder: web servers, workers and schedulers share its lock, whoever started them.
PROGRAMS_LOCK = "programs.lock"


def begin_program() -> None:
    """Share the programs' lock until this process and its forks have ended. Ends the program with a line that says why
    while the site is being restored or moved, and where code and database do not belong together. Logs a warning where
    SECRET_KEY is short.
    """
    # Never closed: the lock ends with the processes that have the file open.
    lock = os.open(settings.STATE_DIR / PROGRAMS_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("This site is being restored or moved: start this program again once that is done.")
    schema.require_or_exit(schema.require_current)
    schema.warn_of_short_key()
