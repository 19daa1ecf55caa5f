"""The card of the difference between two periods, and its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from grading.insight.core.measures import Measure, MeasureUnit
from grading.insight.core.results import (
    BridgeOffer,
    CategoryContribution,
    ChangePart,
    Mean,
    PartName,
    PeriodChange,
    Span,
    TimeMark,
)
from grading.insight.core.work import OTHER_CATEGORIES
from grading.insight.sentences import (
    round_parts,
    write_change,
    write_interval,
    write_missing_bound,
    write_part,
    write_signed,
    write_value,
)
from grading.models.sessions import MICRODOLLARS
from grading.screens.charts import changes
from grading.screens.charts.changes import STEPS_LETTER, STEPS_PHONE, STEPS_WIDE, ChangeStep
from grading.screens.insight.trend_card import sessions_url, write_days
from grading.screens.insight.wording import level_writer, scale_around

TITLES = {
    PartName.MIX: "Mix",
    PartName.WITHIN: "Within",
    PartName.GRADERS: "Graders",
    PartName.MISSING: "Missing",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTile:
    """A part's figures. `value` is a question mark if not even its sum with others is known."""

    title: str
    value: str
    interval: str
    text: str
    sessions: int
    is_identified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodTile:
    """The mean of one of the two periods. `url` opens its sessions."""

    span: Span
    title: str
    value: str
    mean: Mean
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryRow:
    """What a category contributed, in the units of the measure. `url` opens its sessions of the second period."""

    name: str
    url: str
    before: Mean
    after: Mean
    means: tuple[str, str]
    parts: tuple[tuple[str, str], ...]
    total: str


def context(change: PeriodChange, narrowing: dict[str, str], marks: Sequence[TimeMark]) -> dict[str, Any]:
    """The context of `_change.html`."""
    change, measure = round_parts(change), change.measure
    sentences = write_change(change)
    return {
        "lead": sentences[0] if sentences else "",
        "more": sentences[1:],
        "bound": write_missing_bound(change),
        "before": _period(change.before_span, change.before, measure, narrowing),
        "after": _period(change.after_span, change.after, measure, narrowing),
        "parts": [_tile(part, measure) for part in change.parts],
        "total": write_signed(measure, change.difference),
        "interval": _interval(measure, change.low, change.high),
        "sum": _sum(change),
        "titles": [title_of(part) for part in change.parts],
        "categories": [_category(row, measure, change.after_span, narrowing) for row in change.categories],
        "unit": "in thousandths" if measure.unit is MeasureUnit.REWARD else "",
        "bridge": change.bridge,
        "can_read": _can_read(change.bridge),
        "bridge_usd": _bridge_usd(change.bridge),
        "marks": [mark for mark in reversed(marks) if mark.is_change],
        **_pictures(change),
    }


def title_of(part: ChangePart) -> str:
    """The title of a part: "Mix", "Within + graders"."""
    return " + ".join(TITLES[name] for name in part.names).capitalize()


def _pictures(change: PeriodChange) -> dict[str, Any]:
    """The waterfall of the difference; nothing if a mean is unknown."""
    before, after, measure = change.before.value, change.after.value, change.measure
    if before is None or after is None or not change.parts:
        return {}
    steps = [
        ChangeStep(
            name="+".join(TITLES[name].lower() for name in part.names),
            value=part.value,
            label=write_signed(measure, part.value),
            is_sure=part.is_identified,
        )
        for part in change.parts
    ]
    sums = list(accumulate((part.value or 0.0 for part in change.parts), initial=before))
    scale = scale_around(measure, [*sums, after])
    sizes = {"picture": STEPS_WIDE, "letter": STEPS_LETTER, "narrow": STEPS_PHONE}
    write_level, write = level_writer(measure, scale), partial(write_value, measure)
    return {
        name: changes.waterfall(before, after, steps, scale, size=size, write_level=write_level, write_value=write)
        for name, size in sizes.items()
    }


def _period(span: Span, mean: Mean, measure: Measure, narrowing: dict[str, str]) -> PeriodTile:
    return PeriodTile(
        span=span,
        title=write_days(span),
        value=write_value(measure, mean.value),
        mean=mean,
        url=sessions_url(span, narrowing) if mean.sessions else "",
    )


def _tile(part: ChangePart, measure: Measure) -> PartTile:
    return PartTile(
        title=title_of(part),
        value="?" if part.value is None else write_signed(measure, part.value),
        interval=_interval(measure, part.low, part.high),
        text=part.why or write_part(part),
        sessions=part.sessions,
        is_identified=part.is_identified,
    )


def _interval(measure: Measure, low: float | None, high: float | None) -> str:
    """The interval as text; "" if it is unknown, or if both ends are written alike."""
    if low is None or high is None or write_signed(measure, low) == write_signed(measure, high):
        return ""
    return write_interval(measure, low, high)


def _sum(change: PeriodChange) -> str:
    """The parts as a sum: "−.007 + .015 = +.008"; "" if one of them is unknown."""
    values = [part.value for part in change.parts if part.value is not None]
    if change.difference is None or len(values) < len(change.parts):
        return ""
    terms: list[str] = []
    for value in values:
        term = write_signed(change.measure, value)
        terms.append(f"{term[0]} {term[1:]}" if terms else term)  # its sign is the operator
    return f"{' '.join(terms)} = {write_signed(change.measure, change.difference)}"


def _category(row: CategoryContribution, measure: Measure, span: Span, narrowing: dict[str, str]) -> CategoryRow:
    own = {**narrowing, "category": row.name}
    return CategoryRow(
        name=row.name or "no category",
        url=sessions_url(span, own) if row.name not in ("", OTHER_CATEGORIES) and row.after.sessions else "",
        before=row.before,
        after=row.after,
        means=(write_value(measure, row.before.value), write_value(measure, row.after.value)),
        parts=tuple((title_of(part), "?" if part.value is None else _small(measure, part.value)) for part in row.parts),
        total=_small(measure, row.difference),
    )


def _small(measure: Measure, value: float) -> str:
    """A contribution: thousandths of a reward as whole numbers, so that they can be added in one's head."""
    if measure.unit is not MeasureUnit.REWARD:
        return write_signed(measure, value)
    thousandths = round(1000 * value)
    return f"{'−' if thousandths < 0 else '+'}{abs(thousandths)}" if thousandths else "0"


def _bridge_usd(bridge: BridgeOffer | None) -> float | None:
    return None if bridge is None or bridge.cost_micro is None else bridge.cost_micro / MICRODOLLARS


def _can_read(bridge: BridgeOffer | None) -> bool:
    return bridge is not None and bool(bridge.sessions) and bool(bridge.rubric)
