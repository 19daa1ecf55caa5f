"""Programs that stand still, and periodic jobs that miss their turns."""

import datetime as dt
from collections.abc import Iterable, Mapping

from grading.health import periodic
from grading.health.liveness import Component
from grading.models import Alarm, Heartbeat
from grading.monitoring.rule import Finding, Rule, stamp

NOTHING_LOST = "Nothing is lost: sessions are still accepted, and the work waits in the database."
LOOK = "Check that it is running (manage.py up restarts it when it fails), and what the log says about it."
EFFECTS: Mapping[Component, str] = {
    Component.WEB: "Pages and the API don’t answer; hooks keep what they can’t send.",
    Component.WORKER: f"No verdicts are requested, no alarms checked, no rewards updated. {NOTHING_LOST}",
    Component.SCHEDULER: f"Scheduled jobs don’t run: lost work is not found again. {NOTHING_LOST}",
    Component.BROKER: f"Workers aren’t told what is due, so no verdicts are requested. {NOTHING_LOST}",
}
NAMES: Mapping[Component, str] = {
    Component.WEB: "The web server",
    Component.WORKER: "The worker",
    Component.SCHEDULER: "The scheduler",
    Component.BROKER: "The broker",
}


class ProgramStopped(Rule):
    """A46. A worker that does nothing looks like one that has nothing to do."""

    id = "A46"
    title = "A part of the site has stopped responding"
    means = (
        "Opens when the web server, the worker, the scheduler or the broker has sent no heartbeat for 20 seconds, "
        "measured by whoever is watching, once it has watched for a minute without a gap."
    )
    todo = LOOK
    every = dt.timedelta(minutes=1)
    is_attended = True

    def look(self, now: dt.datetime) -> Iterable[Finding]:  # noqa: ARG002 - told by counters, not by the rows alone
        return ()

    @staticmethod
    def told(silent: Iterable[Component]) -> Iterable[Finding]:
        seen = dict(Heartbeat.objects.values_list("name", "beat_at"))
        for part in silent:
            beat_at = seen.get(part)
            since = "and has not been seen yet" if beat_at is None else f"since {stamp(beat_at)}"
            yield Finding(about=part, detail=f"{NAMES[part]} stands still {since}. {EFFECTS[part]} {LOOK}")


class MissedTurns(Rule):
    """A47. Programs that run, and a job that is not done."""

    id = "A47"
    title = "A scheduled job is overdue"
    means = (
        "Opens when a job hasn’t finished successfully for three of its intervals plus a minute (26 hours for "
        "nightly jobs); not in the first minute after a start or after the machine was suspended."
    )
    todo = "Look for the job’s name in the worker’s log: it is failing, or the worker is busy with something else."
    every = dt.timedelta(minutes=1)
    is_attended = True

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        for job in periodic.missed(now):
            why = f" Its last run failed: {job.error}" if job.error else ""
            yield Finding(about=job.name, detail=f"“{job.name}” last succeeded {stamp(job.since)}.{why} {self.todo}")


def standing_still(alarms: Iterable[Alarm]) -> str:
    """Which programs open alarms say stand still, in a few words; empty where none does."""
    about = {alarm.about for alarm in alarms if alarm.rule == ProgramStopped.id}
    found = [NAMES[part].removeprefix("The ") for part in Component if part in about]
    return f"{' and '.join(found).capitalize()} stand{'s' * (len(found) == 1)} still" if found else ""
