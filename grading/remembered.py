"""What a process remembers because it is dear and cannot change: results of functions, by their arguments."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

_functions: list[Any] = []
F = TypeVar("F", bound=Callable[..., Any])


def remembered(size: int) -> Callable[[F], F]:
    """A decorator: the last `size` results are kept. Its arguments are to name everything that the result follows from;
    `__wrapped__` is the function without a memory.
    """

    def decorate(function: F) -> F:
        keeping: Any = lru_cache(maxsize=size)(function)
        _functions.append(keeping)
        return cast("F", keeping)

    return decorate


def forget() -> None:
    """Drop everything: in tests, where the same keys come again with other rows."""
    for function in _functions:
        function.cache_clear()
