"""What became of each phase: its row of the table, and the promises that were not kept."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bandit.audit import audit
from benchmarks.drill import checks, programs
from benchmarks.drill.phases import Phase
from benchmarks.drill.report import Report, Row
from benchmarks.drill.scene import Scene
from benchmarks.drill.site import IN_FLIGHT
from grading.models import Grade
from grading.models.judging import AttemptOutcome

# An alarm that comes within so many seconds comes at once.
IMMEDIATE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Played:
    """A phase that is over, its queue empty."""

    phase: Phase
    scene: Scene
    began: dt.datetime
    ended: dt.datetime

    @property
    def back_at(self) -> dt.datetime | None:
        """When the judge came back, where it was out for everybody and nothing else went on."""
        return self.scene.back_at if self.phase.is_out else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """What an outage for everybody came to. `waiting` jobs when the judge was back, of which `asked` were asked about.

    `alarm_s` and `drained_s` are None for what never came; `overtaken` is the most earlier jobs that one went before.
    """

    alarm_s: float | None
    calls: int
    waiting: int
    asked: int
    overtaken: int
    drained_s: float | None


def report(played: Sequence[Played], calls: Sequence[checks.Sent]) -> Report:
    """The whole report; `calls` are all that came to the judge."""
    outages = {past: outage(past, past.back_at) for past in played if past.back_at is not None}
    strays = sum(call.session == checks.UNKNOWN for call in calls)
    first = next(iter(outages.values()), None)
    return Report(
        rows=[row(past, calls, outages.get(past)) for past in played],
        broken=[
            *(said for past, came in outages.items() for said in broken_promises(past.phase, came)),
            *(f"{past.phase.name}: {said}" for past in played for said in past.scene.broken),
            *(f"{past.phase.name}: {n} uploads were answered with {status}" for past, status, n in bugs(played)),
            *(said for past in played for said in checks.why_lost(past.scene.stream.accepted)),
            *programs.damaged(),
            *map(str, audit()),
            *[f"still an alarm: {alarm.detail}" for alarm in checks.quota_alarms().filter(resolved_at=None)],
            *[f"{strays} calls were about no session of the drill"] * bool(strays),
        ],
        figures={
            "drained_s": rounded(None if first is None else first.drained_s),
            "kills": sum(past.scene.kills for past in played),
            "alarm_s": rounded(None if first is None else first.alarm_s),
        },
    )


def bugs(played: Sequence[Played]) -> Iterator[tuple[Played, int, int]]:
    """Statuses by which the site said that it had made a mistake, with how often it did."""
    for past in played:
        for status, n in past.scene.stream.refused.items():
            if status != programs.UNAVAILABLE:
                yield past, status, n


def outage(past: Played, back_at: dt.datetime) -> Outage:
    promised = past.scene.promised
    started = checks.starts(promised, back_at)
    done = checks.drained_at(promised)
    return Outage(
        alarm_s=checks.alarm_delay(past.began, past.ended),
        calls=checks.calls_while_out(past.began, back_at),
        waiting=len(promised),
        asked=len(started),
        overtaken=max(checks.overtaken(started), default=0),
        drained_s=None if done is None else (done - back_at).total_seconds(),
    )


def row(past: Played, calls: Sequence[checks.Sent], came: Outage | None) -> Row:
    """What the database and the judge say of one phase."""
    stream = past.scene.stream
    about_these = [call for call in calls if call.session.startswith(stream.prefix)]
    verdicts = Grade.objects.chain().verdicts().filter(session__external_id__in=stream.accepted)
    return Row(
        fault=past.phase.name,
        sessions=len(stream.accepted),
        attempts=checks.attempts_of(stream.prefix).count(),
        graded=verdicts.values("session").distinct().count(),
        lost=len(checks.lost(stream.accepted)),
        double=len(checks.double(stream.accepted)),
        unrecorded=checks.unrecorded(about_these, checks.on_record(stream.prefix)) + checks.unended(stream.prefix),
        note="; ".join([*remarks(past), *([] if came is None else outage_remarks(past.phase, came))]),
    )


def remarks(past: Played) -> list[str]:
    """What else is worth knowing of a phase."""
    cut = checks.attempts_of(past.scene.stream.prefix).filter(outcome=AttemptOutcome.LOST)
    counts = {
        "kills": past.scene.kills,
        "calls cut off": cut.count(),
        "of them answered too late": cut.filter(http_status__isnull=False).count(),
        "submissions tried again": past.scene.stream.retried,
    }
    return [*past.scene.remarks, *(f"{count} {what}" for what, count in counts.items() if count)]


def outage_remarks(phase: Phase, came: Outage) -> list[str]:
    return [
        *([] if came.alarm_s is None else [f"alarm after {came.alarm_s:.2f} s"]),
        f"{came.calls} {'probes' if phase.probes else 'calls'} meanwhile",
        f"{came.waiting} waited, drained in {rounded(came.drained_s)} s",
        f"overtaken by at most {came.overtaken} ({IN_FLIGHT} in flight)",
    ]


def broken_promises(phase: Phase, came: Outage) -> list[str]:
    """What an outage promises beyond the counts: an alarm at once, no call, and the backlog in its order."""
    is_late = came.alarm_s is None or came.alarm_s > IMMEDIATE_S
    said = {
        "no alarm came at once and was resolved later": phase.alarms and is_late,
        f"{came.calls} calls were made that the quota's row forbade": came.calls and not phase.probes,
        "nothing waited when the judge was back": not came.waiting,
        f"{came.waiting - came.asked} that waited were never asked about": came.asked < came.waiting,
        f"a job went before {came.overtaken} that were promised before it": came.overtaken >= IN_FLIGHT,
    }
    return [f"{phase.name}: {words}" for words, is_so in said.items() if is_so]


def rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)
