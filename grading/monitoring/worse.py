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
        "Opens when the reward, the cost or a vital of like work got worse beyond chance since a new version, model, "
        "instruction file, rubric, judge or policy. However often it looks, at most one false advisory is expected in "
        "300 days. What came at the same time need not be the cause."
    ),
    todo="Open Insight and read what changed. If too few tasks recur, run a few fixed tasks each week.",
    page="admin:insight",
    severity=Severity.ADVISORY,
    every=SOMETIMES,
)
def find_worse_results(_now: dt.datetime) -> Iterator[Finding]:
    reading = since.stored_reading()
    for advisory in find_worse(reading) if reading else ():
        yield Finding(about=advisory.about, detail=advisory.text)
