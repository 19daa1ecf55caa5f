"""What can be measured of each session: its reward, its cost and its vitals."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class MeasureUnit(StrEnum):
    """How a mean is printed: .619, 12 %, 1.4, 3.2 min, $1.20, or a plain number of sessions."""

    REWARD = "reward"
    SHARE = "share"
    COUNT = "count"
    MINUTES = "minutes"
    MICRODOLLARS = "microdollars"
    SESSIONS = "sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number that each session has or lacks.

    `better` is 1 if more is better, and -1 if less is better. With 0 neither is, and no change is called worse.
    """

    name: str
    title: str
    unit: MeasureUnit
    better: int = 0


# By name, in the order of the menu. "sessions" counts every session, and is a total instead of a mean.
MEASURES: Final = {
    measure.name: measure
    for measure in (
        Measure(name="reward", title="Reward", unit=MeasureUnit.REWARD, better=1),
        Measure(name="final", title="Share final", unit=MeasureUnit.SHARE, better=1),
        Measure(name="sessions", title="Sessions", unit=MeasureUnit.SESSIONS),
        Measure(name="cost", title="Cost", unit=MeasureUnit.MICRODOLLARS, better=-1),
        Measure(name="tokens", title="Tokens", unit=MeasureUnit.COUNT),
        Measure(name="minutes", title="Minutes in the log", unit=MeasureUnit.MINUTES, better=-1),
        Measure(name="active_minutes", title="Active minutes", unit=MeasureUnit.MINUTES, better=-1),
        Measure(name="user_turns", title="User turns", unit=MeasureUnit.COUNT),
        Measure(name="interruptions", title="Interruptions", unit=MeasureUnit.COUNT, better=-1),
        Measure(name="refusals", title="Refused calls", unit=MeasureUnit.COUNT),
        Measure(name="failed_share", title="Failed calls", unit=MeasureUnit.SHARE, better=-1),
        Measure(name="reads_before_edit", title="Reads before the first edit", unit=MeasureUnit.COUNT),
        Measure(name="unread_edits", title="Edits of unread files", unit=MeasureUnit.COUNT, better=-1),
        Measure(name="test_runs", title="Test runs", unit=MeasureUnit.COUNT),
        Measure(name="suites", title="Tests red at the end", unit=MeasureUnit.SHARE, better=-1),
        Measure(name="retries", title="Retries after API errors", unit=MeasureUnit.COUNT, better=-1),
        Measure(name="compactions", title="Compactions", unit=MeasureUnit.COUNT),
        Measure(name="claimed_without_green", title="Claimed without a green run", unit=MeasureUnit.SHARE, better=-1),
    )
}
