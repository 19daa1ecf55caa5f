"""What changes between two outlooks of one bandit, in words and numbers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bandit.selection import Outlook
from grading.screens.charts import thousandths

# What no shown digit tells is no move.
NOTICEABLE = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmMove:
    """One arm: its mean in [0, 1] and its expected number of the next hundred, in both outlooks."""

    arm: str
    title: str
    before: float
    after: float
    share_before: float
    share_after: float

    @property
    def is_drawn(self) -> bool:
        """Whether the mean moves by what a digit tells."""
        return abs(self.after - self.before) >= NOTICEABLE

    @property
    def is_seen(self) -> bool:
        """Whether that moves, or the number of the next hundred."""
        return self.is_drawn or bool(self.share_moves)

    @property
    def words(self) -> str:
        """As in "cross-repo .583 to .603, 15 to 24 of 100"."""
        means = f"{thousandths(self.before)} to {thousandths(self.after)}"
        return f"{self.title} {means}, {self.share_before:.0f} to {self.share_after:.0f} of 100"

    @property
    def share_moves(self) -> int:
        """Between the numbers that are shown."""
        return round(self.share_after) - round(self.share_before)


def moves(before: Outlook, after: Outlook, titles: Mapping[str, str]) -> list[ArmMove]:
    """Every arm, the most moved first."""
    found = [
        ArmMove(
            arm=name,
            title=titles.get(name, name),
            before=arm.mean,
            after=after.arms[name].mean,
            share_before=before.share_of_next_100(name),
            share_after=after.share_of_next_100(name),
        )
        for name, arm in before.arms.items()
    ]
    return sorted(found, key=lambda move: (-abs(move.after - move.before), move.arm))


def in_words(found: Collection[ArmMove], named: Collection[str] = ()) -> str:
    """What moves, those `named` or else the most moved arm first; the others are counted."""
    seen = [move for move in found if move.is_seen]
    said = [move for move in found if move.arm in named] or seen[:1]
    if not seen:
        return "No change that a digit tells"
    others = len([move for move in seen if move not in said])
    more = "" if not others else f"; {others} more arm{'s' if others > 1 else ''} move{'' if others > 1 else 's'}"
    return "; ".join(move.words for move in said) + more
