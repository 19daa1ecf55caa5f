"""For external monitoring: whether the site is ready, and figures for Prometheus. Neither contains secrets."""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Min
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from grading import disk
from grading.health import periodic, pulse
from grading.health.liveness import Component
from grading.models import Alarm, Heartbeat, JudgeJob, Notice, ReviewItem, Session
from grading.models.judging import OPEN_STATES
from grading.models.notices import NoticeState
from grading.models.sessions import yours

# If a job that could be sent has waited this long, something is wrong with the workers.
STUCK = dt.timedelta(minutes=15)
DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """The checks by name, as JSON, and the problems as text."""

    checks: dict[str, Any]
    problems: tuple[str, ...]


def readiness(now: dt.datetime, open_judges: Collection[str]) -> Readiness:
    """Whether the site works. Four queries. Raises the database's errors while it is unavailable.

    `open_judges` are the roles of the judges that may be called now. Jobs of other judges wait for a quota or a key.
    """
    ages = heartbeat_ages(now)
    silent, trouble = pulse.silent(), pulse.trouble()
    if not trouble and Component.WEB not in ages:
        pulse.beat([Component.WEB])  # the first proof that the database can be written to
    free, floor = disk.free(), disk.floor()
    due = oldest_due(now)
    longest_wait = max((age for judge, age in due.items() if judge in open_judges), default=0.0)
    problems = {
        f"The database cannot be written to: {trouble}": trouble,
        f"{free:,} bytes are free, and {floor:,} are to stay free": free < floor,
        **{f"The {name} has stopped responding": True for name in silent},
        f"A job has been due for {longest_wait:.0f} s": longest_wait > STUCK.total_seconds(),
    }
    checks = {
        "database": {"writable": not trouble},
        "disk": {"free_bytes": free, "floor_bytes": floor},
        "heartbeats": {name: {"age_seconds": round(age, 1), "silent": name in silent} for name, age in ages.items()},
        "jobs": {
            "oldest_due_seconds": {judge: round(age, 1) for judge, age in due.items()},
            "judges_asked": sorted(open_judges),
        },
    }
    return Readiness(checks=checks, problems=tuple(text for text, is_so in problems.items() if is_so))


def heartbeat_ages(now: dt.datetime) -> dict[str, float]:
    """Seconds since each program's latest heartbeat on any host, by the clocks of both machines."""
    rows = Heartbeat.objects.exclude(beat_at=None).order_by("name", "beat_at").values_list("name", "beat_at")
    return {name: max(0.0, (now - beat_at).total_seconds()) for name, beat_at in rows if beat_at is not None}


def oldest_due(now: dt.datetime) -> dict[str, float]:
    """By the judge's role, how long the oldest due job has been due, in seconds. One query."""
    due = JudgeJob.objects.queued().filter(next_attempt_at__lte=now)
    rows = due.order_by().values("judge").annotate(at=Min("next_attempt_at")).order_by("judge")
    return {row["judge"]: (now - row["at"]).total_seconds() for row in rows}


class SiteFigures(Collector):
    """Figures read from the database at each request, because counters in a process would only be about that process.

    `judges` are the configured judges, by role: (model, whether it may be called).
    """

    def __init__(self, now: dt.datetime, judges: Mapping[str, tuple[str, bool]]) -> None:
        self.now, self.judges = now, judges

    def collect(self) -> Iterable[Metric]:
        now = self.now
        for name, help_text, value in (
            ("review_waiting", "Sessions that wait for a person", ReviewItem.objects.open().filter(yours()).count()),
            (
                "sessions_last_day",
                "Sessions that ended in the last 24 hours",
                Session.objects.yours().filter(ended_at__gt=now - DAY).count(),
            ),
        ):
            yield GaugeMetricFamily(f"gradingsite_{name}", help_text, value=value)
        disks = pulse.disks(now)
        free = {host: float(figures[0]) for host, figures in disks.items()}
        yield gauge("disk_free_bytes", "Free for each host's state folder", "host", free)
        floors = {host: float(figures[1]) for host, figures in disks.items()}
        yield gauge("disk_floor_bytes", "With less free, the host takes in no session", "host", floors)
        beats = GaugeMetricFamily(
            "gradingsite_heartbeat_age_seconds", "Since each program's heartbeat", labels=["program", "host"]
        )
        for row in Heartbeat.objects.order_by("name", "host"):
            if row.beat_at is not None:
                beats.add_metric([row.name, row.host], max(0.0, (now - row.beat_at).total_seconds()))
        yield beats
        judge_jobs = JudgeJob.objects.open().filter(yours())
        yield gauge("judge_jobs", "Open judge jobs", "state", count_by(judge_jobs, "state", OPEN_STATES))
        alarms = Alarm.objects.filter(resolved_at=None)
        yield gauge("alarms_open", "Alarms that hold now", "rule", count_by(alarms, "rule"))
        notices = count_by(Notice.objects.all(), "state", NoticeState)
        yield gauge("notices", "Messages about alarms", "state", notices)
        turns = CounterMetricFamily("gradingsite_periodic_turns", "Turns of each periodic job", labels=["job"])
        ages = {}
        for job in periodic.current_rows(now):
            turns.add_metric([job.key], job.turns)
            ages[job.key] = (now - job.ended_at).total_seconds()
        yield turns
        yield gauge("periodic_age_seconds", "Since each periodic job last ended well", "job", ages)
        due = oldest_due(now)
        waits = {judge: due.get(judge, 0.0) for judge in {**self.judges, **due}}
        yield gauge("oldest_due_job_seconds", "How long the oldest job of each judge has been due", "judge", waits)
        judge_open = GaugeMetricFamily(
            "gradingsite_judge_open", "Whether each judge may be asked", labels=["judge", "model"]
        )
        for judge, (model, is_open) in self.judges.items():
            judge_open.add_metric([judge, model], float(is_open))
        yield judge_open


def count_by(rows: Any, column: str, always: Iterable[str] = ()) -> dict[str, float]:
    """The number of rows by the column's value. The values in `always` are included even if there are no rows."""
    counts = rows.order_by().values_list(column).annotate(n=Count("pk"))
    return {**{str(each): 0.0 for each in always}, **{value: float(n) for value, n in counts}}


def gauge(name: str, help_text: str, label: str, values: dict[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"gradingsite_{name}", help_text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def metrics(now: dt.datetime, judges: Mapping[str, tuple[str, bool]]) -> bytes:
    """All figures, in Prometheus' text format; `judges` as in SiteFigures."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SiteFigures(now, judges))
    return generate_latest(registry)
