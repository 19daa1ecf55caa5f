"""Whether the canaries' grades are what they usually are (A50)."""

import datetime as dt
from collections.abc import Iterable, Sequence
from statistics import median

from django.utils import timezone

from grading.models import Alarm, CanaryRun, Grade, JudgeKeyTest
from grading.models.canary import Canary
from grading.models.sessions import yours
from grading.monitoring.rule import Finding, Rule
from grading.reward.explain import number

# A verdict usually differs by less from one day to the next.
MAX_CHANGE = 0.15
# The usual grade is the median of so many runs, the first ones since a person last acknowledged a change.
BASELINE_RUNS = 7
# One verdict has nothing to be compared with.
MIN_VERDICTS = 2
CAUSES = {
    "model": "the model",
    "route": "the judge’s address",
    "rubric": "the rubric",
    "version": "the rules for what the judge reads and how it is scored",
    "trajectory_version": "the trajectory’s rules",
}


class CanaryChanged(Rule):
    """A50. A judge whose scale has moved grades every session differently, and no single session shows it."""

    id = "A50"
    title = "The canary’s grade has changed"
    means = (
        "Two logs whose worth is known, a good and a bad one, are judged once a day. Opens when a verdict differs by "
        f"more than {number(MAX_CHANGE)} from the usual one (the median of the first {BASELINE_RUNS} since somebody "
        "last acknowledged a change), or a trajectory grade by anything. Closes when the grade is back, or when "
        "somebody acknowledges the alarm: the new grade is then the usual one."
    )
    todo = "See what has changed since. If nothing on this site has, the provider may have changed the model."
    page = "admin:calibration"
    every = dt.timedelta(minutes=10)

    def look(self, now: dt.datetime) -> Iterable[Finding]:  # noqa: ARG002 - a rule's signature
        for which in Canary:
            runs = _runs_since_acknowledged(self.id, which)
            changes = [*_changed_verdict(runs), *_changed_trajectory(runs)]
            if changes:
                cause = _what_changed(runs)
                yield Finding(about=which, detail=f"The known {which} session: {'; '.join(changes)}. {cause}")

    def sessions(self, about: str, now: dt.datetime) -> Sequence[int]:  # noqa: ARG002 - a rule's signature
        """The sessions that the judge has graded since its last usual verdict on the canary."""
        if about not in set(Canary):
            return ()
        runs = _runs_since_acknowledged(self.id, Canary(about))
        if not list(_changed_verdict(runs)):
            return ()
        verdicts = _verdicts(runs)
        days = [day for day, verdict in verdicts if abs(verdict - _usual(verdicts)) <= MAX_CHANGE]
        calls = JudgeKeyTest.objects.filter(canary__canary=about, canary__day__in=days, finished_at__isnull=False)
        last_usual = calls.order_by("canary__day").last()
        if last_usual is None:  # none of them was near their median
            return ()
        graded = Grade.objects.verdicts().chain().filter(yours(), created_at__gt=last_usual.finished_at)
        return list(graded.order_by("session__ended_at").values_list("session", flat=True).distinct())


def _runs_since_acknowledged(rule: str, which: Canary) -> Sequence[CanaryRun]:
    """The runs in order, from the day on whose change was acknowledged last; all if none was."""
    runs = CanaryRun.objects.filter(canary=which).order_by("day")
    acknowledged = Alarm.objects.filter(rule=rule, about=which, acknowledged_at__isnull=False).order_by("-pk").first()
    if acknowledged is not None:
        runs = runs.filter(day__gte=timezone.localdate(acknowledged.opened_at))
    return list(runs)


def _verdicts(runs: Sequence[CanaryRun]) -> list[tuple[dt.date, float]]:
    """The (day, verdict) of the runs that have one."""
    return [(run.day, run.verdict) for run in runs if run.verdict is not None]


def _usual(verdicts: Sequence[tuple[dt.date, float]]) -> float:
    """The median of the first verdicts, without the last of all. There have to be two."""
    return median(verdict for _day, verdict in verdicts[:-1][:BASELINE_RUNS])


def _changed_verdict(runs: Sequence[CanaryRun]) -> Iterable[str]:
    verdicts = _verdicts(runs)
    if len(verdicts) < MIN_VERDICTS:
        return
    (day, last), usual = verdicts[-1], _usual(verdicts)
    if abs(last - usual) > MAX_CHANGE:
        yield f"the judge gave {number(last)} on {day:%-d %b}, usually {number(usual)}"


def _changed_trajectory(runs: Sequence[CanaryRun]) -> Iterable[str]:
    if not runs:
        return
    first, last = runs[0], runs[-1]
    if first.trajectory != last.trajectory:
        before, now = ("no grade" if run.trajectory is None else number(run.trajectory) for run in (first, last))
        yield f"its trajectory grade was {before} on {first.day:%-d %b} and is {now} on {last.day:%-d %b}"


def _what_changed(runs: Sequence[CanaryRun]) -> str:
    """What is different between the first and the last run, as a sentence."""
    first, last = runs[0], runs[-1]
    changed = [cause for column, cause in CAUSES.items() if getattr(first, column) != getattr(last, column)]
    if not changed:
        return "Nothing on this site has changed since; the provider may have changed the model."
    return f"Changed since {first.day:%-d %b}: {', '.join(changed)}."
