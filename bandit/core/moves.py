"""What changes for each arm between two outlooks of its bandit."""

from collections.abc import Collection
from dataclasses import dataclass

from bandit.core.posterior import Outlook

# Of an arm's observations; where less of them is left, a page says why.
LEAST_LEFT = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmMove:
    """One arm of one bandit before and after: its posterior mean in [0, 1], and its expected number of the next 100.

    Its `sessions` count as `observations_before` and `observations_after` pseudo-observations; 0 where that is unknown.
    `touched`: the change is about this arm. Others move with it, as arms share a mean and compete for the next 100.
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
        """Between the means as pages show them, in thousandths."""
        return round(round(self.mean_after, 3) - round(self.mean_before, 3), 3)

    @property
    def share_moves(self) -> int:
        """Between the numbers of the next 100 as pages show them, whole."""
        return round(self.share_after) - round(self.share_before)

    @property
    def counts_less(self) -> bool:
        """Whether the change makes the arm's sessions count for visibly less together."""
        return self.observations_after < LEAST_LEFT * self.observations_before

    @property
    def is_shown(self) -> bool:
        """Whether any digit moves that pages show."""
        return bool(self.mean_moves or self.share_moves)


def moves(bandit: str, before: Outlook, after: Outlook, *, touched: Collection[str] = ()) -> list[ArmMove]:
    """Every arm of `before`: those `touched` first, then the most moved by mean, by share, by name.

    Raises KeyError where `after` lacks one of them.
    """
    found = [
        ArmMove(
            bandit=bandit,
            arm=name,
            mean_before=arm.mean,
            mean_after=after.arms[name].mean,
            share_before=before.share_of_next_100(name),
            share_after=after.share_of_next_100(name),
            touched=name in touched,
            sessions=after.arms[name].sessions,
            observations_before=arm.observations,
            observations_after=after.arms[name].observations,
        )
        for name, arm in before.arms.items()
    ]

    def order(move: ArmMove) -> tuple[bool, float, float, str]:
        mean, share = move.mean_after - move.mean_before, move.share_after - move.share_before
        return (not move.touched, -abs(mean), -abs(share), move.arm)

    return sorted(found, key=order)
