"""An advisory when results got worse since a change, by the figures that the worker stores for Insight."""

import datetime as dt
from collections.abc import Iterator

from grading.insight import since
from grading.insight.advisories import find_worse
from grading.monitoring.rule import SOMETIMES, Finding, Severity, alarm_rule


@alarm_rule(
    id="A54",
    title="Results got worse since a change",
    means=(
        "Opens when the reward, the cost or a vital of comparable work got worse by more than chance after a "
        "change: a new version, model, instruction file, rubric, judge or policy. At most one false advisory is "
        "expected in 300 days. A change at the same time need not be the cause."
    ),
    todo="Open Insight to see what changed. If too few tasks recur, run a few fixed tasks each week.",
    page="admin:insight",
    severity=Severity.ADVISORY,
    every=SOMETIMES,
)
def find_worse_results(_now: dt.datetime) -> Iterator[Finding]:
    reading = since.stored_reading()
    for advisory in find_worse(reading) if reading else ():
        yield Finding(about=advisory.about, detail=advisory.text)
