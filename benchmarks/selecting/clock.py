"""Milliseconds by the wall, and their median."""

import statistics
import time
from collections.abc import Callable, Iterable


def clocked(work: Callable[[], object]) -> float:
    """Milliseconds that one call takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def median(times: Iterable[float]) -> float:
    return statistics.median(times)
