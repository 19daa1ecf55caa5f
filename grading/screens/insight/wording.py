"""The axes of measures, and what each measure is. Values are written by `grading.insight.sentences`."""

from collections.abc import Callable, Sequence
from math import floor, log10

from grading.insight.core.measures import Measure, MeasureUnit
from grading.models.sessions import MICRODOLLARS
from grading.screens.charts import trends
from grading.screens.charts.trends import ValueScale
from grading.signals.vitals import VITALS
from grading.templatetags.gradingsite_tags import short_number

MANY = 1000
BOUNDED = (MeasureUnit.REWARD, MeasureUnit.SHARE)
# The smallest spread of an axis: of a reward or share as it is, of other measures as a share of the largest value.
LEAST_SPREAD = 0.08
EPSILON = 1e-9
DEFINITIONS = {
    "reward": "The reward of the current settlement, from 0 to 1. Sessions without one are counted as missing.",
    "final": "The share of sessions whose reward is final.",
    "sessions": "Sessions that ended in this period.",
    "cost": "The mean cost over sessions whose cost is known.",
    "tokens": "Input, cached and output tokens together. The mean over sessions whose tokens are known.",
    "suites": "Of the sessions that ran tests, the share in which the last run of a test suite failed.",
    **{vital.name: vital.definition for vital in VITALS if vital.name != "suites"},
}
CAUTIONS = {vital.name: vital.caution for vital in VITALS if vital.caution}


def scale_around(measure: Measure, values: Sequence[float]) -> ValueScale:
    """A scale of an axis for these values, on which a small difference looks small."""
    if measure.unit in BOUNDED:
        return trends.scale_of(values, least=LEAST_SPREAD, most=1.0)
    return trends.scale_of(values, least=LEAST_SPREAD * max(values, default=1.0))


def level_writer(measure: Measure, scale: ValueScale) -> Callable[[float], str]:
    """A function that writes a level of this scale, with as many decimals as the scale's step needs."""
    digits = max(0, -floor(log10(scale.step) + EPSILON))
    if measure.unit is MeasureUnit.REWARD:
        return lambda value: f"{value:.{digits}f}".removeprefix("0") if value else "0"
    if measure.unit is MeasureUnit.SHARE:
        return lambda value: f"{100 * value:.{max(digits - 2, 0)}f} %"
    if measure.unit is MeasureUnit.MICRODOLLARS:
        digits = max(0, -floor(log10(scale.step / MICRODOLLARS) + EPSILON))
        if digits == 1:
            digits = 2  # whole cents
        return lambda value: f"${value / MICRODOLLARS:,.{digits}f}"
    if measure.unit is MeasureUnit.MINUTES:
        return lambda value: f"{value:.{digits}f} min"
    return lambda value: short_number(value) if value >= MANY else f"{value:.{digits}f}"
