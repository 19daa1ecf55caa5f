"""What the sources make of files, worked out before the transaction that needs it.

Reading a patch of two megabytes takes a tenth of a second; whoever does so in a transaction has all other writers wait.
What follows from bytes alone is worked out first, and found in the transaction by what it follows from. Where other
evidence counts by then, because it came meanwhile or because another session owns some of it, that is rolled back,
the rest is worked out, and the transaction begins anew.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import DatabaseError, connection, transaction

from grading.busy import is_deadlock

# How often a transaction begins anew until it works out itself what it lacks.
TRIES = 3
T = TypeVar("T")


class Unprepared(Exception):
    """Something has to be worked out first: let `Workings.prepare` do so outside the transaction, then begin anew."""

    def __init__(self, key: Hashable, make: Callable[[], object]) -> None:
        super().__init__(f"expected {key!r} to be worked out before the transaction")
        self.key, self.make = key, make


class Workings:
    """Results by what they follow from: the hashes of files, and whatever else has a say."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}
        self._left: set[Hashable] = set()
        self._is_sealed = False

    def __contains__(self, key: Hashable) -> bool:
        return key in self._made

    def note(self, key: Hashable, made: object) -> None:
        """Keep what is known already."""
        self._made[key] = made

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of that key, made now where it is not there; or raises Unprepared, or what `make` raises."""
        if key not in self._made:
            if self._is_sealed and key not in self._left:
                raise Unprepared(key, make)
            self._made[key] = make()
        found: T = self._made[key]
        return found

    def prepare(self, key: Hashable, make: Callable[[], object]) -> None:
        """Work something out. What breaks is left to the transaction, whose grader says what broke."""
        try:
            self.of(key, make)
        except Exception:  # noqa: BLE001 - said by the grader
            self._left.add(key)

    @contextmanager
    def sealed(self) -> Iterator[None]:
        """Nothing is made in here."""
        self._is_sealed = True
        try:
            yield
        finally:
            self._is_sealed = False


def with_workings(workings: Workings, work: Callable[[], T]) -> T:
    """What `work` returns, in a transaction that finds in `workings` what it needs; begun anew where it does not, and
    once where it and another waited for each other.
    """
    was_stuck = False
    for _try in range(TRIES):
        try:
            with workings.sealed(), transaction.atomic():
                return work()
        except Unprepared as missing:
            workings.prepare(missing.key, missing.make)
        except DatabaseError as error:
            if was_stuck or connection.in_atomic_block or not is_deadlock(error):
                raise
            was_stuck = True
    with transaction.atomic():
        return work()
