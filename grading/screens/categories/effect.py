"""The effect of a change of categories: each arm's posterior before and after, as curves."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from bandit.core.moves import ArmMove
from bandit.core.posterior import Outlook
from grading.intake.categories.preview import CategoryPreview
from grading.screens.charts import posteriors
from grading.screens.charts.posteriors import Beta


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmEffect:
    """An arm that moves, with its curves; `gains` is the number of sessions it gains."""

    move: ArmMove
    curves: SafeString
    gains: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BanditEffect:
    """The arms of a bandit that move, and how many of its arms don't."""

    name: str
    arms: tuple[ArmEffect, ...]
    still: int


def bandit_effects(preview: CategoryPreview) -> list[BanditEffect]:
    """Each bandit's arms that move, with their curves drawn to one scale."""
    bandits = []
    for name, (before, after) in preview.outlooks.items():
        moves = [move for move in preview.arms if move.bandit == name]
        arms = [move.arm for move in moves]
        curves = posteriors.ridges(_betas(after, arms), _betas(before, arms), css="was")
        rows = [
            ArmEffect(
                move=move, curves=curves[move.arm], gains=preview.sessions.get(move.arm, 0) if move.touched else 0
            )
            for move in moves
        ]
        bandits.append(BanditEffect(name=name, arms=tuple(rows), still=len(before.arms) - len(rows)))
    return [bandit for bandit in bandits if bandit.arms]


def _betas(outlook: Outlook, arms: list[str]) -> dict[str, Beta]:
    return {name: Beta(alpha=outlook.arms[name].alpha, beta=outlook.arms[name].beta) for name in arms}
