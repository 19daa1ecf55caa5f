"""What got worse beyond chance since a mark."""

from grading.insight.core.advisory import allot, select_worse
from grading.insight.core.results import SinceReading, WorseAdvisory
from grading.insight.sentences import write_effect


def find_worse(reading: SinceReading) -> tuple[WorseAdvisory, ...]:
    """What got worse since a mark, beyond chance. At most .1 false advisories are expected in 30 days, no matter how
    many measures are compared and how often.
    """
    effects = select_worse(reading.effects, allot(reading.marks))
    return tuple(
        WorseAdvisory(
            about=f"{effect.marks[-1].key} {effect.measure.name}"[:300], effect=effect, text=write_effect(effect)
        )
        for effect in effects
    )
