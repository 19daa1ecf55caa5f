"""Temporary errors: the database or the storage is busy or away, or the disk is full. The same request works later."""

import errno
import logging
import random
import sqlite3
import time
from collections.abc import Callable, Mapping
from enum import Enum
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, connection

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class StorageAway(OSError):
    """The storage of evidence does not answer, or refuses. The same request works later."""


class Upgrading(OperationalError):
    """Another host is upgrading the database. The same request works later."""


class Outdated(OperationalError):
    """The database was upgraded while this program ran. It must be started again with the new code."""


class OtherKeys(OperationalError):
    """The secret keys of this host are not the site's. It must be started again with the right ones."""


class Unavailable(Enum):
    """Why the site can't write now: a title, and the seconds to wait before trying again."""

    BUSY = "The site is busy writing", 5
    AWAY = "The database is away", 10
    FULL = "Nothing can be stored", 60
    NO_STORAGE = "The storage of evidence is away", 30
    UPGRADING = "The site is being upgraded", 10
    OUTDATED = "This web server is older than the database", 30
    OTHER_KEYS = "This web server has other keys than the site", 30

    def __init__(self, title: str, seconds: int) -> None:
        self.title, self.seconds = title, seconds

    @property
    def words(self) -> str:
        if self is Unavailable.BUSY:
            return (
                "Others are writing to the database, and this took too long to wait for. If it happens again and "
                "again, see whether one of the site’s programs hangs."
            )
        if self is Unavailable.AWAY:
            return (
                "The database does not answer, or its connection was lost. See whether it runs, and what its log says."
            )
        if self is Unavailable.UPGRADING:
            return "Another host is upgrading the database. Nothing is written until it has finished."
        if self is Unavailable.OUTDATED:
            return (
                "The database was upgraded by another host. This host writes nothing until it runs the new version: "
                "install it, then restart its programs."
            )
        if self is Unavailable.OTHER_KEYS:
            return (
                "The SECRET_KEY or CHANCE_KEY of this host differs from that of the others, which could not read what "
                "it writes. Set both as on the other hosts, then restart its programs."
            )
        if self is Unavailable.NO_STORAGE:
            return "The S3 server with the evidence does not answer, or refuses. See whether it runs, and its log."
        return "The disk is full, or cannot be written to. See how much room is left for the site and its database."


OWN_ERRORS: Mapping[type[Exception], Unavailable] = {
    StorageAway: Unavailable.NO_STORAGE,
    Upgrading: Unavailable.UPGRADING,
    Outdated: Unavailable.OUTDATED,
    OtherKeys: Unavailable.OTHER_KEYS,
}
MAX_PAUSE = 5  # seconds between two attempts
SQLITE = {
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL), Unavailable.BUSY),
    sqlite3.SQLITE_CANTOPEN: Unavailable.AWAY,
    **dict.fromkeys((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY), Unavailable.FULL),
}
# Classes of SQLSTATE: connection lost, transaction rolled back (a deadlock), out of resources, lock not available,
# operator intervention, system error. https://www.postgresql.org/docs/current/errcodes-appendix.html
POSTGRESQL = {
    "08": Unavailable.AWAY,
    "40": Unavailable.BUSY,
    "53": Unavailable.BUSY,
    "55": Unavailable.BUSY,
    "57": Unavailable.AWAY,
    "58": Unavailable.FULL,
}
DISK_FULL = "53100"
DEADLOCK = "40P01"
DEADLOCK_TRIES = 4
FILE_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})


def trouble(error: BaseException | None) -> Unavailable | None:
    """Why the site is unavailable, if `error` is a temporary error. None for any other error."""
    for kind, unavailable in OWN_ERRORS.items():
        if isinstance(error, kind):
            return unavailable
    if isinstance(error, OSError):
        return Unavailable.FULL if error.errno in FILE_ERRORS else None
    if not isinstance(error, DatabaseError | InterfaceError):
        return None
    for cause in (error, error.__cause__):
        code = getattr(cause, "sqlite_errorcode", None)
        if code is not None:
            return SQLITE.get(code & 0xFF)  # the primary code, without the extended part
    state = sqlstate(error)
    if state is None:  # no server answered
        is_lost = isinstance(error, OperationalError | InterfaceError) and hasattr(error.__cause__, "sqlstate")
        return Unavailable.AWAY if is_lost else None
    return Unavailable.FULL if state == DISK_FULL else POSTGRESQL.get(state[:2])


def is_busy(error: BaseException | None) -> bool:
    """Whether the error is temporary."""
    return trouble(error) is not None


def is_deadlock(error: DatabaseError) -> bool:
    """Whether PostgreSQL ended a transaction because it and another waited for each other."""
    return sqlstate(error) == DEADLOCK


def retry_on_deadlock(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that is one transaction: if PostgreSQL ends it because of a deadlock, run it again.

    Up to DEADLOCK_TRIES times in all. Each retry first pauses for a random time: without it, the transaction could take
    its locks again before the other one has woken up, and deadlock once more. Inside another transaction the error is
    raised.
    """

    @wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        for attempt in range(1, DEADLOCK_TRIES):
            try:
                return function(*args, **kwargs)
            except DatabaseError as error:
                if connection.in_atomic_block or not is_deadlock(error):
                    raise
            time.sleep(random.uniform(0.1, 0.5) * attempt)  # noqa: S311 - no secret
        return function(*args, **kwargs)

    return inner


def sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of an error that PostgreSQL reported, or None."""
    state: str | None = getattr(error.__cause__, "sqlstate", None)
    return state


def patiently(work: Callable[[], T], *, seconds: float) -> T:
    """Call `work` and return its result. After a temporary error, call it again, until `seconds` are over.

    Inside a transaction the error is raised: the caller must repeat the whole transaction.
    """
    until, wait = time.monotonic() + seconds, 0.1
    while True:
        try:
            return work()
        except (DatabaseError, InterfaceError) as error:
            if connection.in_atomic_block or not is_busy(error) or time.monotonic() > until:
                raise
            logger.warning("the database is busy; trying again in %g s: %s", wait, error)
        time.sleep(wait)
        connection.close_if_unusable_or_obsolete()
        wait = min(2 * wait, MAX_PAUSE)
