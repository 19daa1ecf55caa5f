"""How long one call takes, by the clock and by the processor."""

import time
from collections.abc import Callable


def clocked(work: Callable[[], object]) -> float:
    """Milliseconds that one call takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def own_time(work: Callable[[], object]) -> float:
    """Milliseconds of processor time that one call takes in this process: what others do meanwhile does not count."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000
