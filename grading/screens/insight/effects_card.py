"""The cards of the changes since the newest marks, and of harnesses and models compared on similar work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils.safestring import SafeString

from grading.insight.core.measures import MEASURES, MeasureUnit
from grading.insight.core.results import AgentCard, MarkEffect, Mean
from grading.insight.sentences import (
    write_agent,
    write_effect,
    write_interval,
    write_mark,
    write_signed,
    write_size,
    write_value,
)
from grading.outcomes.landed_work import LandedWork
from grading.screens.charts import bars
from grading.screens.charts.bars import RewardDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRow:
    """What changed in one measure since a mark."""

    title: str
    effect: str
    interval: str
    width: str
    sentence: str
    picture: SafeString | str
    sessions: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectGroup:
    """A mark, or several at the same time, with the changes since: of the reward (`main`), and of cost and vitals with
    an estimate (`others`). `unknown` names the measures without one.
    """

    marks: tuple[str, ...]
    key: str
    main: EffectRow
    others: tuple[EffectRow, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """A harness with a model, compared on similar work, as text and figures."""

    card: AgentCard
    sentence: str
    reward: str
    cost: str
    minutes: str
    work: LandedWork | None


def group_effects(effects: Sequence[MarkEffect]) -> list[EffectGroup]:
    """The effects by their marks, in their order."""
    rewards = [
        _difference(each) for each in effects if each.measure.unit is MeasureUnit.REWARD and each.effect is not None
    ]
    limit = bars.reach(rewards)
    groups = []
    for marks, same in groupby(effects, key=lambda effect: effect.marks):
        main, *others = same  # the reward's effect comes first
        estimated = [each for each in others if each.effect is not None]
        unknown = [each.measure.title for each in others if each.effect is None]
        groups.append(
            EffectGroup(
                marks=tuple(write_mark(mark) for mark in marks),
                key=marks[0].key if marks else "",
                main=_row(main, limit),
                others=tuple(_row(each, limit) for each in estimated),
                unknown=tuple(title[:1].lower() + title[1:] for title in unknown),
            )
        )
    return groups


def _difference(effect: MarkEffect) -> RewardDifference:
    # No draw assigned the versions, so each is drawn as an observation.
    return RewardDifference(mean=effect.effect or 0.0, low=effect.low or 0.0, high=effect.high or 0.0, is_causal=False)


def _row(effect: MarkEffect, limit: float) -> EffectRow:
    measure = effect.measure
    interval = width = ""
    if effect.low is not None and effect.high is not None:
        interval = write_interval(measure, effect.low, effect.high)
        width = write_size(measure, effect.high - effect.low)
    picture: SafeString | str = ""
    if measure.unit is MeasureUnit.REWARD and effect.effect is not None:
        picture = bars.difference(_difference(effect), limit)
    return EffectRow(
        title=measure.title,
        effect=write_signed(measure, effect.effect),
        interval=interval,
        width=width,
        sentence=write_effect(effect),
        picture=picture,
        sessions=(effect.before, effect.after),
    )


def agent_rows(cards: Sequence[AgentCard], work: Mapping[tuple[str, str], LandedWork]) -> list[AgentRow]:
    """The cards that have a reward or work that was followed, with what became of that work."""
    return [
        AgentRow(
            card=card,
            sentence=write_agent(card) if card.reward else "",
            reward=_mean("reward", card.reward),
            cost=_mean("cost", card.cost),
            minutes=_mean("minutes", card.minutes),
            work=work.get((card.harness, card.model)),
        )
        for card in cards
        if card.reward or ((tried := work.get((card.harness, card.model))) and tried.tried)
    ]


def _mean(name: str, mean: Mean | None) -> str:
    """A mean with half its interval's width; a dash without one."""
    measure = MEASURES[name]
    if mean is None or mean.value is None:
        return write_value(measure, None)
    words = write_value(measure, mean.value)
    if mean.low is None or mean.high is None:
        return words
    return f"{words.removesuffix(' min')} ± {write_value(measure, (mean.high - mean.low) / 2)}"
