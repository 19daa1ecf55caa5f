"""The write gate: a fair lock for writing to an SQLite database, across threads and processes.

SQLite allows one writer. The others poll at growing intervals, so that the first to come may be served last or fail
with "database is locked". Here, threads wait in a queue of their process, and the first of each queue polls a file lock
every millisecond. The kernel releases the lock of a process that dies. While a process hangs in a write, the others
wait until their time is up.
"""

import fcntl
import os
import sqlite3
import threading
import time
from collections import deque
from pathlib import Path

from django.db.utils import OperationalError

MAX_WAITING = 16  # threads of a process
POLL_SECONDS = 0.001

Turn = threading.Event
"""A place in the queue. Set once it is the first."""


class WriteGateBusy(OperationalError):
    """Other writers took too long, or too many are waiting. Try again in some seconds."""

    sqlite_errorcode = sqlite3.SQLITE_BUSY


class WriteGate:
    """The gate of one database, shared by all threads of this process. Get it from `gate_of`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self.renew()

    def renew(self) -> None:
        """Reset the gate in a forked process. The parent's threads keep their turns and their lock."""
        if self._file is not None:
            os.close(self._file)  # doesn't release the lock, because the parent has the file open too
        self._mutex = threading.Lock()
        self._turns: deque[Turn] = deque()
        self._file, self._is_locked = None, False

    def enter(self, seconds: float) -> Turn:
        """Acquire the gate. Pass the returned turn to `leave` to release it.

        Raises WriteGateBusy after `seconds`, or at once if MAX_WAITING threads are waiting.
        """
        until = time.monotonic() + seconds
        turn = Turn()
        with self._mutex:
            waiting = len(self._turns) - self._is_locked  # without the turn that has the lock
            if waiting >= MAX_WAITING:
                raise WriteGateBusy(f"expected at most {MAX_WAITING} waiting to write; try again in some seconds")
            self._turns.append(turn)
            self._turns[0].set()  # this turn, if no other thread is before it
        try:
            if not turn.is_set():
                if not turn.wait(seconds):
                    raise WriteGateBusy(_too_long(seconds))  # noqa: TRY301 - the handler below leaves the queue
                time.sleep(1.5 * POLL_SECONDS)  # lets another process that is waiting go first
            # Opened each time, because restoring a backup replaces the file.
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            while not self._is_locked:
                try:
                    fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._is_locked = True
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise WriteGateBusy(_too_long(seconds)) from None
                    time.sleep(POLL_SECONDS)
        except OSError as error:
            self.leave(turn)
            raise OperationalError(f"expected to open {self._path} before writing; got {error}") from error
        except BaseException:
            self.leave(turn)
            raise
        return turn

    def leave(self, turn: Turn) -> None:
        """Release the gate or leave the queue. Does nothing if that was done, or if the turn is from before a fork."""
        with self._mutex:
            if turn not in self._turns:
                return
            if self._turns[0] is turn and self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)  # explicitly, because a forked process may have the file open
                os.close(self._file)
                self._file, self._is_locked = None, False
            self._turns.remove(turn)
            if self._turns:
                self._turns[0].set()


def _too_long(seconds: float) -> str:
    return f"expected to write within {seconds:g} s; others were writing all the time; try again in some seconds"


_gates: dict[Path, WriteGate] = {}


def gate_of(database: Path) -> WriteGate:
    """The gate of a database. Its lock file is in the database's folder."""
    path = database.resolve().parent / "write.gate"
    return _gates.setdefault(path, WriteGate(path))


def renew_all() -> None:
    for gate in _gates.values():
        gate.renew()


os.register_at_fork(after_in_child=renew_all)
