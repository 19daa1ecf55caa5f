"""Whether the canaries' grades are what they usually are (A50)."""

import datetime as dt
from collections.abc import Iterable, Sequence
from statistics import median

from django.utils import timezone

from grading.models import Alarm, CanaryRun, Grade
from grading.models.canary import Canary
from grading.models.sessions import yours
from grading.monitoring.rule import Finding, Rule
from grading.reward.explain import number
from grading.vocabulary import Source

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

    def sessions(self, about: str, now: dt.datetime) -> Sequence[int]:
        """The sessions that the judge has graded since its last usual verdict on the canary."""
        if about not in set(Canary):
            return ()
        verdicts = _verdicts(_runs_since_acknowledged(self.id, Canary(about)))
        usual = [run for run in verdicts if abs(_grade(run) - _usual(verdicts)) <= MAX_CHANGE]
        if len(verdicts) < MIN_VERDICTS or not usual or usual[-1] is verdicts[-1]:
            return ()
        since = None if usual[-1].call is None else usual[-1].call.finished_at
        graded = Grade.objects.verdicts().chain().filter(yours(), source=Source.JUDGE, created_at__gt=since or now)
        return list(graded.order_by("session__ended_at").values_list("session", flat=True).distinct())


def _runs_since_acknowledged(rule: str, which: Canary) -> Sequence[CanaryRun]:
    """The runs in order, from the day on whose change was acknowledged last; all if none was."""
    runs = CanaryRun.objects.filter(canary=which).order_by("day")
    acknowledged = Alarm.objects.filter(rule=rule, about=which, acknowledged_at__isnull=False).order_by("-pk").first()
    if acknowledged is not None:
        runs = runs.filter(day__gte=timezone.localdate(acknowledged.opened_at))
    return list(runs)


def _verdicts(runs: Sequence[CanaryRun]) -> list[CanaryRun]:
    return [run for run in runs if run.verdict is not None]


def _grade(run: CanaryRun) -> float:
    return run.verdict or 0.0


def _usual(verdicts: Sequence[CanaryRun]) -> float:
    """The median of the first verdicts, without the last of all."""
    return median(_grade(run) for run in verdicts[:-1][:BASELINE_RUNS] or verdicts)


def _changed_verdict(runs: Sequence[CanaryRun]) -> Iterable[str]:
    verdicts = _verdicts(runs)
    if len(verdicts) < MIN_VERDICTS:
        return
    last, usual = verdicts[-1], _usual(verdicts)
    if abs(_grade(last) - usual) > MAX_CHANGE:
        yield f"the judge gave {number(_grade(last))} on {last.day:%-d %b}, usually {number(usual)}"


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
