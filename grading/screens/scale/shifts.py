"""What a change would do to a bandit's arms: each one's mean and its number of the next hundred, before and after."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.safestring import SafeString

from bandit.core.posterior import Outlook
from grading.screens import charts

# An arm that moves by less is not worth naming on a button.
NOTICEABLE = 0.0005
# Nor is one whose number of the next hundred stays the same.
ONE_OF_100 = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmShift:
    """One arm's mean as it is and as it would be, and its number of the next hundred."""

    arm: str
    picture: SafeString
    before: float
    after: float
    share_before: float
    share_after: float


def arm_shifts(before: Outlook, after: Outlook) -> list[ArmShift]:
    """Every arm, the most moved first."""
    rows = [
        ArmShift(
            arm=name,
            picture=charts.shift(name, arm.mean, after.arms[name].mean),
            before=arm.mean,
            after=after.arms[name].mean,
            share_before=before.share_of_next_100(name),
            share_after=after.share_of_next_100(name),
        )
        for name, arm in before.arms.items()
    ]
    return sorted(rows, key=lambda row: (-abs(row.after - row.before), row.arm))


def effect(shifts: list[ArmShift]) -> str:
    """In a few words, by the arm whose mean moves most."""
    moved = [row for row in shifts if abs(row.after - row.before) >= NOTICEABLE]
    if not moved:
        return "no arm moves by a thousandth"
    most = moved[0]
    return f"{most.arm} from {charts.thousandths(most.before)} to {charts.thousandths(most.after)}{_others(moved)}"


def share_effect(shifts: list[ArmShift]) -> str:
    """In a few words, by the arm whose number of the next hundred moves most; by its mean where none's does."""
    by_share = sorted(shifts, key=lambda row: -abs(row.share_after - row.share_before))
    moved = [row for row in by_share if abs(row.share_after - row.share_before) >= ONE_OF_100]
    if not moved:
        return effect(shifts)
    return f"{moved[0].arm} {moved[0].share_before:.0f} to {moved[0].share_after:.0f} of 100{_others(moved)}"


def _others(moved: Iterable[ArmShift]) -> str:
    more = len(list(moved)) - 1
    return f", and {more} more by less" if more else ""
