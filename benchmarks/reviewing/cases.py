"""What is compared: a fault, so many reviews a week, and who is asked about first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.reviewing.world import Fault

OURS = "ours"
RIVALS = ("expected correction", "knowledge gradient", "uncertainty", "random")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewCase:
    """A fault, how many reviews a week, and the order's name; no reviews, no name."""

    fault: Fault
    reviews: int = 0
    order: str = ""


def cases(budgets: Mapping[Fault, Iterable[int]]) -> list[ReviewCase]:
    """Of each fault no reviews, and every order with each of its budgets."""
    found = []
    for fault, numbers in budgets.items():
        found.append(ReviewCase(fault=fault))
        found += [ReviewCase(fault=fault, reviews=n, order=order) for n in numbers for order in (OURS, *RIVALS)]
    return found
