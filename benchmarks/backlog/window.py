"""The steady state of a run, from what the simulator counted second by second."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

SHORTEST = 2
# As low as it gets: within this share of the bucket.
LOW = 0.005
Seconds = Mapping[int, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """`used`: served ÷ what could be served of the tightest dimension. `answered_429`: refusals ÷ calls.

    `start` and `end` are seconds since the first call.
    """

    start: int
    end: int
    used: float
    answered_429: float
    tightest: str


def steady(seconds: Seconds, limits: Mapping[str, int], *, sessions: int, threads: int, filled: float) -> Window:
    """From when the bucket is as low as it gets (in the first half of the work), to when fewer sessions are left than
    threads, or the run was ended.

    `limits` a minute by dimension; `filled` is the share of them that the buckets held at first. What could be served
    is limit × time, and what the bucket held more at the start of the window than at its end. Raises ValueError where
    the work was too small to have a steady state.
    """
    tightest = max(limits, key=lambda name: sum(_each(seconds, name)) / limits[name])
    served, limit = _each(seconds, tightest), limits[tightest]
    end = min(_when(_each(seconds, "served"), sessions - threads), len(served) - 1)
    if end < 2 * SHORTEST:
        raise ValueError(f"the work was done in {end} seconds, too soon for a steady state: use more sessions")
    levels = _levels(served, limit, filled * limit)
    lowest = min(levels[: end // 2 + 1])
    start = next(second for second, level in enumerate(levels) if level <= lowest + LOW * limit)
    available = limit * (end - start) / 60 + max(0.0, levels[start] - levels[end])
    return Window(
        start=start,
        end=end,
        used=sum(served[start:end]) / available,
        answered_429=sum(_each(seconds, "answered_429")[start:end]) / max(sum(_each(seconds, "calls")[start:end]), 1),
        tightest=tightest,
    )


def _each(seconds: Seconds, name: str) -> list[int]:
    """The counts of every second from the first call to the last."""
    return [seconds.get(second, {}).get(name, 0) for second in range(min(seconds), max(seconds) + 1)]


def _when(counts: list[int], amount: float) -> int:
    """How many seconds it takes until the running total reaches `amount`."""
    return next((n for n, total in enumerate(accumulate(counts), 1) if total >= amount), len(counts))


def _levels(served: list[int], limit: int, level: float) -> list[float]:
    """What the bucket holds at the start of each second, and at the end of the last."""
    return list(accumulate(served, lambda held, taken: min(limit, held + limit / 60) - taken, initial=level))
