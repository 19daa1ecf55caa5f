"""What became of the phases: a row of the table for each, and the promises that were broken."""

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from bandit.audit import audit
from benchmarks import scratch
from benchmarks.drill import checks, programs
from benchmarks.drill.phases import Phase
from benchmarks.drill.scene import Scene
from benchmarks.drill.site import IN_FLIGHT
from grading.models import Grade
from grading.models.judging import AttemptOutcome

# An alarm that comes within so many seconds comes at once.
MAX_ALARM_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlayedPhase:
    """A phase that is over and whose queue is empty."""

    phase: Phase
    scene: Scene
    started_at: dt.datetime
    ended_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """What an outage of the judge came to. `waiting`: jobs when the judge was back; `attempted` of them were begun.

    `alarm_s` and `drained_s` are None for what never came. `overtaken`: the most earlier jobs that one job preceded.
    """

    alarm_s: float | None
    calls: int
    waiting: int
    attempted: int
    overtaken: int
    drained_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The counts of one phase."""

    fault: str
    sessions: int
    attempts: int
    graded: int
    lost: int
    double: int
    unrecorded: int
    note: str = ""


@dataclass(slots=True, kw_only=True)
class Report:
    """All rows, and the promises that were broken besides the counts, in words."""

    rows: list[Row] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    figures: dict[str, float | None] = field(default_factory=dict)

    def total(self, column: str) -> int:
        return sum(getattr(row, column) for row in self.rows)

    def all_broken(self) -> list[str]:
        """Every broken promise. Empty after a drill that went well."""
        counts = {name: self.total(name) for name in ("lost", "double", "unrecorded")}
        return [f"{count} {name}" for name, count in counts.items() if count] + self.broken

    def text(self) -> str:
        """The table, the broken promises and, as the last line, the figures as JSON."""
        columns = ("fault", "sessions", "attempts", "graded", "lost", "double", "unrecorded", "note")
        table = scratch.table(columns, [[getattr(row, column) for column in columns] for row in self.rows])
        totals = {name: self.total(name) for name in ("sessions", "lost", "double", "unrecorded")}
        broken = [f"BROKEN: {promise}" for promise in self.all_broken()]
        return "\n".join(["", table, "", *broken, json.dumps(totals | self.figures)])


def report(played: Sequence[PlayedPhase], calls: Sequence[checks.Sent]) -> Report:
    """The whole report. `calls` are all that came to the judge."""
    result = Report()
    outages = []
    for each in played:
        stream, name = each.scene.stream, each.phase.name
        outage = None
        if each.phase.is_out and each.scene.back_at is not None:
            outage = measure_outage(each, each.scene.back_at)
            outages.append(outage)
            result.broken += broken_promises(each.phase, outage)
        result.rows.append(measure_phase(each, calls, outage))
        result.broken += [f"{name}: {promise}" for promise in each.scene.broken]
        result.broken += [
            f"{name}: {count} uploads were answered with {status}"
            for status, count in stream.server_errors.items()
            if status != programs.UNAVAILABLE
        ]
        result.broken += checks.why_lost(stream.accepted)
    result.broken += programs.damaged_evidence()
    result.broken += map(str, audit())
    result.broken += [f"still an alarm: {alarm.detail}" for alarm in checks.quota_alarms().filter(resolved_at=None)]
    if strays := sum(call.session == checks.UNKNOWN for call in calls):
        result.broken.append(f"{strays} calls were about no session of the drill")
    result.figures = {
        "drained_s": rounded(outages[0].drained_s if outages else None),
        "kills": sum(each.scene.kills for each in played),
        "alarm_s": rounded(outages[0].alarm_s if outages else None),
    }
    return result


def measure_outage(played: PlayedPhase, back_at: dt.datetime) -> Outage:
    promised = played.scene.promised
    started = checks.starts(promised, back_at)
    drained_at = checks.drained_at(promised)
    return Outage(
        alarm_s=checks.alarm_delay(played.started_at, played.ended_at),
        calls=checks.calls_while_out(played.started_at, back_at),
        waiting=len(promised),
        attempted=len(started),
        overtaken=max(checks.overtaken(started), default=0),
        drained_s=None if drained_at is None else (drained_at - back_at).total_seconds(),
    )


def measure_phase(played: PlayedPhase, calls: Sequence[checks.Sent], outage: Outage | None) -> Row:
    """The row of one phase, by the database and the judge."""
    stream = played.scene.stream
    own_calls = [call for call in calls if call.session.startswith(stream.prefix)]
    verdicts = Grade.objects.chain().verdicts().filter(session__external_id__in=stream.accepted)
    cut_off = checks.attempts_of(stream.prefix).filter(outcome=AttemptOutcome.LOST)
    counts = {
        "kills": played.scene.kills,
        "calls cut off": cut_off.count(),
        "of them answered too late": cut_off.filter(http_status__isnull=False).count(),
        "submissions retried": stream.retried,
    }
    remarks = [*played.scene.remarks, *(f"{count} {what}" for what, count in counts.items() if count)]
    if outage is not None:
        remarks += outage_remarks(played.phase, outage)
    return Row(
        fault=played.phase.name,
        sessions=len(stream.accepted),
        attempts=checks.attempts_of(stream.prefix).count(),
        graded=verdicts.values("session").distinct().count(),
        lost=len(checks.lost(stream.accepted)),
        double=len(checks.double(stream.accepted)),
        unrecorded=checks.unrecorded(own_calls, checks.recorded_by_site(stream.prefix)) + checks.unended(stream.prefix),
        note="; ".join(remarks),
    )


def outage_remarks(phase: Phase, outage: Outage) -> list[str]:
    return [
        *([] if outage.alarm_s is None else [f"alarm after {outage.alarm_s:.2f} s"]),
        f"{outage.calls} {'probes' if phase.probes else 'calls'} meanwhile",
        f"{outage.waiting} waited, drained in {rounded(outage.drained_s)} s",
        f"overtaken by at most {outage.overtaken} ({IN_FLIGHT} in flight)",
    ]


def broken_promises(phase: Phase, outage: Outage) -> list[str]:
    """What an outage promises beyond the counts: an alarm at once, no call, and the backlog in its order."""
    is_late = outage.alarm_s is None or outage.alarm_s > MAX_ALARM_SECONDS
    promises = {
        "no alarm came at once and was resolved later": phase.alarms and is_late,
        f"{outage.calls} calls were made that the quota's row forbade": outage.calls and not phase.probes,
        "nothing waited when the judge was back": not outage.waiting,
        f"{outage.waiting - outage.attempted} that waited were never asked about": outage.attempted < outage.waiting,
        f"a job went before {outage.overtaken} that were promised before it": outage.overtaken >= IN_FLIGHT,
    }
    return [f"{phase.name}: {promise}" for promise, is_broken in promises.items() if is_broken]


def rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)
