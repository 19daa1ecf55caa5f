"""Arithmetic for batches: compact lists of event numbers, and how often a batch is polled."""

import datetime as dt
from collections.abc import Iterable, Sequence

LONGEST_GAP = dt.timedelta(minutes=10)
# The time between two polls, as a share of the batch's age.
SHARE_OF_AGE = 1 / 20


def pack(numbers: Iterable[int]) -> list[list[int]]:
    """Whole numbers as [first, last] pairs of runs, ascending: {1, 2, 3, 7} is [[1, 3], [7, 7]]."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def unpack(runs: Iterable[Sequence[int]]) -> frozenset[int]:
    """The inverse of `pack`."""
    return frozenset(number for first, last in runs for number in range(first, last + 1))


def poll_gap(age: dt.timedelta, shortest: dt.timedelta) -> dt.timedelta:
    """The time from one poll to the next: a twentieth of the batch's age, from `shortest` up to ten minutes."""
    return max(shortest, min(age * SHARE_OF_AGE, LONGEST_GAP))
