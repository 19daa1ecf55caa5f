"""Sentences about how a change moves a bandit's arms, for pages, messages and the command line."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from bandit.core.moves import ArmMove
from grading.screens.charts.posteriors import thousandths

NO_TITLES: Mapping[str, str] = MappingProxyType({})


def words(move: ArmMove, *, title: str = "", shares: bool = True) -> str:
    """An arm's mean before and after, and its share of the next 100 sessions if that moves, as in "cross-repo from .583
    to .603, 15 to 24 of 100".

    Without `shares` only the mean: for bandits that choose nothing, or where the page shows the share elsewhere.
    """
    after = thousandths(move.mean_after)
    mean = f"from {thousandths(move.mean_before)} to {after}" if move.mean_moves else f"stays at {after}"
    share = f", {move.share_before:.0f} to {move.share_after:.0f} of 100" if shares and move.share_moves else ""
    return f"{title or move.arm} {mean}{share}"


def why(move: ArmMove, *, when: str = "then") -> str:
    """Why an arm moves differently than the grade's value alone would explain; "" if it doesn't. `when` is an adverb
    for the sentence, such as "now".
    """
    if not move.counts_less:
        return ""
    sessions = "1 session" if move.sessions == 1 else f"{move.sessions:,} sessions"
    return (
        f"Its {sessions} {when} count{'s' if move.sessions == 1 else ''} as {move.observations_after:.1f} "
        f"observations instead of {move.observations_before:.1f}, because the grades of people and the judge "
        "determine how much other grades count. With fewer observations, a mean is closer to the mean of all arms."
    )


def describe_moves(moves: Sequence[ArmMove], *, titles: Mapping[str, str] = NO_TITLES, shares: bool = True) -> str:
    """Describe the touched arms, or else the first arm that moves, and count the other arms that move."""
    visible = [move for move in moves if move.mean_moves or (shares and move.share_moves)]
    if not visible:
        return "no arm changes visibly"
    described = [move for move in moves if move.touched] or visible[:1]
    others = len([move for move in visible if move not in described])
    parts = [words(move, title=titles.get(move.arm, ""), shares=shares) for move in described]
    if others:
        parts.append("1 more arm changes" if others == 1 else f"{others} more arms change")
    return "; ".join(parts)
