"""What a change does to a bandit's arms, in words: the same on every page, in messages and at the command line."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from bandit.core.moves import ArmMove
from grading.screens.charts import thousandths

NO_TITLES: Mapping[str, str] = MappingProxyType({})


def words(move: ArmMove, *, title: str = "", shares: bool = True) -> str:
    """One arm's mean, and its number of the next 100 where that moves: "cross-repo from .583 to .603, 15 to 24 of 100".

    Without `shares` the mean alone, where nothing is chosen or the share is told elsewhere.
    """
    after = thousandths(move.mean_after)
    mean = f"from {thousandths(move.mean_before)} to {after}" if move.mean_moves else f"stays at {after}"
    share = f", {move.share_before:.0f} to {move.share_after:.0f} of 100" if shares and move.share_moves else ""
    return f"{title or move.arm} {mean}{share}"


def why(move: ArmMove, *, when: str = "then") -> str:
    """Why a grade moves an arm otherwise than its value alone would; empty where it doesn't. `when` it is so."""
    if not move.counts_less:
        return ""
    sessions = "1 session" if move.sessions == 1 else f"{move.sessions:,} sessions"
    return (
        f"Its {sessions} {when} count{'s' if move.sessions == 1 else ''} as {move.observations_after:.1f} observations "
        f"instead of {move.observations_before:.1f}, because how much the other grades count is measured by the grades "
        "of people and the judge. A mean with fewer observations is nearer to the mean of all arms."
    )


def in_words(moves: Sequence[ArmMove], *, titles: Mapping[str, str] = NO_TITLES, shares: bool = True) -> str:
    """What moves, in the order of `moves`: the touched arms, or else the first that moves; the others are counted."""
    seen = [move for move in moves if move.mean_moves or (shares and move.share_moves)]
    if not seen:
        return "no arm moves visibly"
    told = [move for move in moves if move.touched] or seen[:1]
    others = len([move for move in seen if move not in told])
    said = [words(move, title=titles.get(move.arm, ""), shares=shares) for move in told]
    if others:
        said.append(f"{others} more arm{' moves' if others == 1 else 's move'}")
    return "; ".join(said)
