"""What a process remembers because it is dear and cannot change: results of functions, by their arguments."""

import datetime as dt
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

from django.db import connection
from django.db.models import QuerySet

from grading import clock

# A transaction that PostgreSQL lets stand takes no longer: an earlier key may still come until then. SQLite's writers
# take turns.
LATE = dt.timedelta(minutes=10)
_functions: list[Any] = []
_memories: list["Memory[Any, Any]"] = []
F = TypeVar("F", bound=Callable[..., Any])
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def remembered(size: int) -> Callable[[F], F]:
    """A decorator: the last `size` results are kept. Its arguments are to name everything that the result follows from;
    `__wrapped__` is the function without a memory.
    """

    def decorate(function: F) -> F:
        keeping: Any = lru_cache(maxsize=size)(function)
        _functions.append(keeping)
        return cast("F", keeping)

    return decorate


class Memory(Generic[Key, Value]):
    """Values by keys that name everything that they follow from: the last `size` that were asked for."""

    def __init__(self, size: int) -> None:
        self.size, self._held = size, dict[Key, Value]()
        _memories.append(self)

    def of(self, keys: Iterable[Key], make: Callable[[list[Key]], Mapping[Key, Value]]) -> dict[Key, Value]:
        """The values of these keys; those that are not known are made, all at once."""
        asked, held = list(keys), dict(self._held)
        unknown = [key for key in asked if key not in held]
        found = held | dict(make(unknown)) if unknown else held
        values = {key: found[key] for key in asked}
        rest = {key: value for key, value in held.items() if key not in values}
        kept = list((rest | values).items())[-self.size :]
        self._held = dict(kept)
        return values

    def get(self, key: Key) -> Value | None:
        """The value of this key; None where it is not known."""
        return self._held.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Remember a newer value of this key."""
        self._held = dict(
            [*((each, held) for each, held in self._held.items() if each != key), (key, value)][-self.size :]
        )

    def forget(self) -> None:
        self._held = {}


def upto(rows: QuerySet[Any], at: str = "created_at") -> int:
    """The last key of rows that are only ever added, before which no other can come any more; 0 for none. One query.

    `at` is the column that says when each was.
    """
    last, until = rows.order_by("-pk"), settled()
    if until is not None:
        last = last.filter(**{f"{at}__lte": until})
    return last.values_list("pk", flat=True).first() or 0


def settled() -> dt.datetime | None:
    """Before the last row of this moment or an earlier one no other key can come any more; None: before none."""
    return clock.now() - LATE if connection.vendor == "postgresql" else None


def forget() -> None:
    """Drop everything: in tests, where the same keys come again with other rows."""
    for function in _functions:
        function.cache_clear()
    for memory in _memories:
        memory.forget()
