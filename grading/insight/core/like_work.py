"""Harnesses with their models, compared on like work."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from grading.insight.core.bridge import GraderScale
from grading.insight.core.cells import CellTable, Floats, Integers, group_sums
from grading.insight.core.effects import grader_columns, indicators
from grading.insight.core.means import LEVEL, Z90, clamp, mean_of
from grading.insight.core.mixed_model import StepData, StepFit, fit_steps
from grading.insight.core.results import AgentCard, Mean
from grading.insight.core.work import group_work

# A card has figures from this many sessions on work that another card has too, and from this many in a cell.
MIN_SHARED, MIN_IN_CELL = 20, 3
# A wider interval for a reward says nothing.
MAX_HALF_WIDTH = 0.15


class _Cards(NamedTuple):
    """The cards of a table: their names (harness, model), and for each row its card (an index) and whether its work is
    shared (1 or 0).
    """

    names: list[tuple[str, str]]
    codes: Integers
    is_shared: Floats


def compare_on_like_work(table: CellTable, measures: Sequence[str], scale: GraderScale) -> tuple[AgentCard, ...]:
    """A card for each harness and model, the one with the most sessions first. `measures` are a reward, a cost and
    minutes; `table` has columns category, project, harness, model and grader.
    """
    cards = _find_cards(table)
    reward_measure = measures[0]
    fits = [_fit_cards(table, name, cards, scale, is_reward=name == reward_measure) for name in measures]
    reward_fit = fits[0]
    order = sorted(range(len(cards.names)), key=lambda card: (-table.sessions[cards.codes == card].sum(), card))
    reasons = {card: _why_no_figures(table, reward_measure, cards, card, reward_fit) for card in order}
    with_figures = [card for card in order if not reasons[card]]
    agent_cards = []
    for card in order:
        rows = table.where(cards.codes == card)
        is_shared = cards.is_shared[cards.codes == card]
        harness, model = cards.names[card]
        why = reasons[card]
        reward, cost, minutes = (
            None if why else _card_mean(rows, fit, card, measure) for fit, measure in zip(fits, measures, strict=True)
        )
        agent_card = AgentCard(
            harness=harness,
            model=model,
            sessions=round(float(rows.sessions.sum())),
            shared=round(float((rows.sums[reward_measure].count * is_shared).sum())),
            reward=reward,
            cost=cost,
            minutes=minutes,
            is_best=card in with_figures and _is_best(reward_fit, card, with_figures),
            why=why,
        )
        agent_cards.append(agent_card)
    return tuple(agent_cards)


def _find_cards(table: CellTable) -> _Cards:
    """The harnesses with their models. Work is shared if two of them have MIN_IN_CELL sessions or more of it."""
    harness, model = table.columns["harness"], table.columns["model"]
    pairs = harness.codes * len(model.labels) + model.codes
    used, codes = np.unique(pairs, return_inverse=True)
    names = [
        (cast("str", harness.labels[pair // len(model.labels)]), cast("str", model.labels[pair % len(model.labels)]))
        for pair in used
    ]
    work = group_work(table, (table.sessions, table.sessions)).codes if len(table) else codes
    size = int(work.max(initial=0)) + 1
    counts = np.array([group_sums(work, table.sessions * (codes == card), size) for card in range(len(names))])
    has_two = (counts >= MIN_IN_CELL).sum(axis=0) > 1 if names else np.zeros(size, dtype=bool)
    return _Cards(names, codes, has_two[work].astype(np.float64))


def _fit_cards(table: CellTable, measure: str, cards: _Cards, scale: GraderScale, *, is_reward: bool) -> StepFit | None:
    """The mean that each card would have with the work, weekdays and graders of all sessions on shared work.

    The coefficients of the fit are these means, in the order of the cards. None without values.
    """
    chosen = (table.sums[measure].count > 0) & ((cards.is_shared > 0) | (len(cards.names) == 1))
    rows = table.where(chosen)
    card = cards.codes[chosen]
    if not len(rows):
        return None
    count = rows.sums[measure].count
    work = group_work(rows, (count, count)).codes
    nuisance = [indicators(work), indicators(rows.days % 7)]
    if is_reward:
        columns, rows = grader_columns(rows, measure, scale)
        nuisance.append(columns)
    others = np.column_stack(nuisance)
    # With centred columns, the coefficient of a card is its mean on the average work of all.
    others = others - (count @ others) / count.sum()
    design = np.column_stack([np.eye(len(cards.names))[card], others])
    sums = rows.sums[measure]
    days = rows.days - int(rows.days.min())
    return fit_steps(StepData(design=design, days=days, count=count, total=sums.total, squares=sums.squares))


def _why_no_figures(table: CellTable, measure: str, cards: _Cards, card: int, fit: StepFit | None) -> str:
    """Why a card has no figures; "" if it has figures."""
    rows = cards.codes == card
    shared = float((table.sums[measure].count * cards.is_shared)[rows].sum())
    if len(cards.names) == 1:
        shared = float(table.sums[measure].count[rows].sum())
    if fit is None or shared < MIN_SHARED:
        kind = "graded sessions" if len(cards.names) == 1 else "graded sessions on work that another harness also does"
        return f"{shared:.0f} {kind}, but {MIN_SHARED} are needed"
    if Z90 * float(np.sqrt(fit.covariance[card, card])) > MAX_HALF_WIDTH:
        return f"its sessions vary too much: the interval would be wider than ± {MAX_HALF_WIDTH:.2f}".replace("0.", ".")
    return ""


def _card_mean(rows: CellTable, fit: StepFit | None, card: int, measure: str) -> Mean | None:
    """The card's mean on like work with its 90 % interval, and the counts of its `rows`. None without values."""
    plain = mean_of(rows, measure)
    if fit is None or not plain.known:
        return None
    value = float(fit.mean + fit.coefficients[card])
    half = Z90 * float(np.sqrt(fit.covariance[card, card]))
    return Mean(
        value=value,
        low=clamp(measure, value - half),
        high=clamp(measure, value + half),
        sessions=plain.sessions,
        known=plain.known,
        provisional=plain.provisional,
    )


def _is_best(fit: StepFit | None, card: int, cards: Sequence[int]) -> bool:
    """Whether a card is above all other `cards` beyond chance, allowing for the number of comparisons (Bonferroni)."""
    others = [other for other in cards if other != card]
    if fit is None or not others:
        return False
    from scipy.special import ndtri  # large: needed only if there is something to compare

    limit = float(ndtri(1 - (1 - LEVEL) / 2 / len(others)))
    for other in others:
        contrast = np.zeros(len(fit.coefficients))
        contrast[[card, other]] = 1, -1
        error = float(np.sqrt(contrast @ fit.covariance @ contrast))
        if float(contrast @ fit.coefficients) <= limit * error:
            return False
    return True
