"""Compares two outlooks of a bandit, arm by arm."""

from collections.abc import Collection
from dataclasses import dataclass

from bandit.core.posterior import Outlook

# If less than this fraction of an arm's observations remains, a page explains why.
MIN_REMAINING = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmMove:
    """One arm before and after a change: its posterior mean in [0, 1] and expected number of the next 100 decisions.

    Its `sessions` count as `observations_before` and `observations_after` pseudo-observations; 0 if unknown. `touched`:
    the change is about this arm. Others move too, as arms share a mean and compete for the next 100 decisions.
    """

    bandit: str
    arm: str
    mean_before: float
    mean_after: float
    share_before: float
    share_after: float
    touched: bool = False
    sessions: int = 0
    observations_before: float = 0.0
    observations_after: float = 0.0

    @property
    def mean_moves(self) -> float:
        """Difference of the means as pages show them, rounded to thousandths."""
        return round(round(self.mean_after, 3) - round(self.mean_before, 3), 3)

    @property
    def share_moves(self) -> int:
        """Difference of the numbers of the next 100 as pages show them: whole, or less than 1."""
        before, after = (0 if share < 1 else round(share) for share in (self.share_before, self.share_after))
        return after - before

    @property
    def counts_less(self) -> bool:
        """Whether the arm's sessions together count for visibly less after the change."""
        return self.observations_after < MIN_REMAINING * self.observations_before

    @property
    def is_shown(self) -> bool:
        """Whether any digit changes that pages show."""
        return bool(self.mean_moves or self.share_moves)


def moves(bandit: str, before: Outlook, after: Outlook, *, touched: Collection[str] = ()) -> list[ArmMove]:
    """The moves of all arms of `before`: `touched` arms first, then by greatest change of mean, of share, and by name.

    Raises KeyError if `after` lacks one of them.
    """
    arm_moves = [
        ArmMove(
            bandit=bandit,
            arm=name,
            mean_before=arm.mean,
            mean_after=after.arms[name].mean,
            share_before=before.next_100(name),
            share_after=after.next_100(name),
            touched=name in touched,
            sessions=after.arms[name].sessions,
            observations_before=arm.observations,
            observations_after=after.arms[name].observations,
        )
        for name, arm in before.arms.items()
    ]

    def sort_key(move: ArmMove) -> tuple[bool, float, float, str]:
        mean = move.mean_after - move.mean_before
        share = after.share_of_next_100(move.arm) - before.share_of_next_100(move.arm)
        return (not move.touched, -abs(mean), -abs(share), move.arm)

    return sorted(arm_moves, key=sort_key)
