"""Who writes to an SQLite database next. One process at a time, and of its threads one after the other as they came.

SQLite lets one connection write and has the others ask again at growing intervals, so that who came first may be served
last, and some are told "database is locked" in the end. Here threads queue in their process, and only the head of each
process's queue asks, every millisecond, for a lock of the operating system's. The kernel takes that back from a process
that dies; one that stands still while it writes holds the others up until their time is over.
"""

import fcntl
import os
import sqlite3
import threading
import time
from collections import deque
from pathlib import Path

from django.db.utils import OperationalError

MOST_WAITING = 16
POLL = 0.001  # seconds

Turn = threading.Event
"""A place in the queue; set once it is the first."""


class WriteGateBusy(OperationalError):
    """Others are writing to the database, for too long or too many of them. Try again in some seconds."""

    sqlite_errorcode = sqlite3.SQLITE_BUSY


class WriteGate:
    """The gate of one database, for all threads of this process; see `gate_of`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self.renew()

    def renew(self) -> None:
        """Begin anew in a process that was forked: what the other one's threads hold and wait for is theirs."""
        if self._file is not None:
            os.close(self._file)  # the other process's lock stays, for it has the file open too
        self._mutex = threading.Lock()
        self._turns: deque[Turn] = deque()
        self._file, self._is_locked = None, False

    def enter(self, seconds: float) -> Turn:
        """Wait for the right to write; to be given back by `leave`.

        Raises WriteGateBusy when `seconds` are over, and at once where MOST_WAITING threads wait already.
        """
        until, turn = time.monotonic() + seconds, Turn()
        with self._mutex:
            waiting = len(self._turns) - self._is_locked
            if waiting >= MOST_WAITING:
                raise WriteGateBusy(f"expected at most {MOST_WAITING} waiting to write; try again in some seconds")
            self._turns.append(turn)
            self._turns[0].set()
        try:
            if not turn.is_set():
                if not turn.wait(seconds):
                    raise WriteGateBusy(_too_long(seconds))  # noqa: TRY301 - as below
                time.sleep(1.5 * POLL)  # the heads of other processes' queues have asked by then: one goes first
            # Opened each time: a folder that was put back from a backup has another file by this name.
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            while not self._is_locked:
                try:
                    fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._is_locked = True
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise WriteGateBusy(_too_long(seconds)) from None
                    time.sleep(POLL)
        except OSError as error:
            self.leave(turn)
            raise OperationalError(f"expected to open {self._path} before writing; got {error}") from error
        except BaseException:
            self.leave(turn)
            raise
        return turn

    def leave(self, turn: Turn) -> None:
        """Give the right to write back, or the place in the queue; nothing where that was done, or is a parent's."""
        with self._mutex:
            if turn not in self._turns:
                return
            if self._turns[0] is turn and self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)  # also where a process that is being forked has it open
                os.close(self._file)
                self._file, self._is_locked = None, False
            self._turns.remove(turn)
            if self._turns:
                self._turns[0].set()


def _too_long(seconds: float) -> str:
    return f"expected to write within {seconds:g} s; others were writing all the time; try again in some seconds"


_gates: dict[Path, WriteGate] = {}


def gate_of(database: Path) -> WriteGate:
    """The gate beside a database's file, which every process that writes to it uses."""
    path = database.resolve().parent / "write.gate"
    return _gates.setdefault(path, WriteGate(path))


def renew_all() -> None:
    """In a process that was forked."""
    for gate in _gates.values():
        gate.renew()


os.register_at_fork(after_in_child=renew_all)
