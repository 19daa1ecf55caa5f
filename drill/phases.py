"""Playing the phases one after the other, and asking what became of each."""

import datetime as dt
import time
from dataclasses import dataclass
from random import Random

from django.utils import timezone

from bandit.audit import audit
from drill import checks, report
from drill.faults import PHASES, Phase, Scene, play, sessions
from drill.report import Report, Row
from drill.site import THREADS, WORKERS, Site
from drill.stream import Stream
from grading.models import Grade, JudgeJob
from grading.models.judging import AttemptOutcome

# An empty queue is waited for so long (seconds).
PATIENCE = 180
TELL_EVERY = 5
IN_FLIGHT = THREADS * len(WORKERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much of it: sessions in a usual phase, kills in all."""

    sessions: int
    kills: int
    seed: int
    quick: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A phase that is over."""

    phase: Phase
    scene: Scene
    began: dt.datetime
    ended: dt.datetime
    kills: int

    @property
    def alarm_delay(self) -> float | None:
        return checks.alarm_delay(self.began, self.ended)


class Drill:
    """One run on a site that is up. `token` is an agent's."""

    def __init__(self, site: Site, plan: Plan, token: str) -> None:
        self.site, self.plan, self.token = site, plan, token
        self.rng = Random(plan.seed)  # noqa: S311  reproducible, not secret
        self.begun = time.monotonic()

    def run(self) -> Report:
        """Play all phases; the report on them."""
        phases = [phase for phase in PHASES if not (self.plan.quick and phase.alone)]
        played = [self.play(number, phase) for number, phase in enumerate(phases)]
        self.say("asking the database what became of them")
        calls = checks.seen_by_judge(self.site.calls(after=0))
        made = Report(rows=[row(past, calls) for past in played])
        for past in played:
            if past.phase.is_out:
                made.broken += broken_promises(past)
        made.broken += [f"{difference}" for difference in audit()]
        made.broken += [f"{name} fell by itself" for name in sorted(set(self.site.fell))]
        made.broken += ["the alarm is still open"] * checks.still_alarmed()
        main = next(past for past in played if past.phase.name.startswith("quota gone"))
        made.figures = {
            "drained_s": drained_seconds(main),
            "kills": sum(past.kills for past in played),
            "alarm_s": rounded(main.alarm_delay),
            "seconds": rounded(time.monotonic() - self.begun),
        }
        return made

    def play(self, number: int, phase: Phase) -> Played:
        stream = Stream(self.site.web, self.token, number)
        share = round(self.plan.kills * phase.kills)
        scene = Scene(site=self.site, stream=stream, rng=self.rng, quick=self.plan.quick, kills_left=share)
        began = timezone.now()
        scripts = [script(scene) for script in phase.scripts]
        scripts.append(sessions(scene, round(self.plan.sessions * phase.many)))
        play(scripts, self.site)
        self.drain()
        stream.close()
        ended = timezone.now()
        self.say(f"{phase.name}: {len(stream.accepted)} sessions in {(ended - began).total_seconds():.1f} s")
        return Played(phase=phase, scene=scene, began=began, ended=ended, kills=share)

    def drain(self) -> None:
        """Wait until no job is open; what is still open when patience ends is lost."""
        deadline = time.monotonic() + PATIENCE
        told = time.monotonic()
        while (left := JudgeJob.objects.open().count()) and time.monotonic() < deadline:
            self.site.revive()
            time.sleep(0.1)
            if time.monotonic() - told > TELL_EVERY:
                told = time.monotonic()
                self.say(f"… {left} jobs to go")

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)


def row(past: Played, calls: list[checks.Sent]) -> Row:
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
        note="; ".join(notes(past)),
    )


def notes(past: Played) -> list[str]:
    """What else is worth knowing of a phase."""
    attempts = checks.attempts_of(past.scene.stream.prefix)
    cut = attempts.filter(outcome=AttemptOutcome.LOST)
    late = cut.filter(detail__startswith="Answered after its lease")
    said = [f"{past.kills} kills"] * bool(past.kills) + past.scene.remarks
    said += [f"{cut.count()} calls cut off"] * cut.exists() + [f"{late.count()} replies came late"] * late.exists()
    said += [f"{past.scene.stream.retried} submissions tried again"] * bool(past.scene.stream.retried)
    if past.phase.is_out and past.scene.back_at is not None:
        behind = checks.overtaken(checks.starts(past.scene.promised, past.scene.back_at))
        delay = past.alarm_delay
        said += [] if delay is None else [f"alarm after {delay:.2f} s"]
        meanwhile = checks.calls_while_out(past.began, past.scene.back_at)
        said.append(f"{meanwhile} {'probes' if past.phase.probes else 'calls'} meanwhile")
        said.append(f"{len(past.scene.promised)} drained in {drained_seconds(past)} s")
        said.append(f"overtaken by at most {max(behind, default=0)} ({IN_FLIGHT} in flight)")
    return said


def broken_promises(past: Played) -> list[str]:
    """What an outage promises beyond the counts: an alarm at once, and the backlog in its order."""
    name, delay = past.phase.name, past.alarm_delay
    said = []
    if past.phase.alarms and (delay is None or delay > report.SECONDS_AT_ONCE):
        said.append(f"{name}: no alarm at once that was resolved later (after {delay} s)")
    if past.scene.back_at is None or not past.scene.promised:
        return [*said, f"{name}: nothing waited when the judge came back"]
    if not past.phase.probes and (calls := checks.calls_while_out(past.began, past.scene.back_at)):
        said.append(f"{name}: {calls} calls were made while the quota's row forbade them")
    started = checks.starts(past.scene.promised, past.scene.back_at)
    worst = max(checks.overtaken(started), default=0)
    if len(started) < len(past.scene.promised):
        said.append(f"{name}: {len(past.scene.promised) - len(started)} of the backlog were never asked about")
    if worst >= IN_FLIGHT:
        said.append(f"{name}: a job went before {worst} that were promised before it")
    return said


def drained_seconds(past: Played) -> float | None:
    """From the judge's return to the end of the last job that waited then."""
    done = checks.drained_at(past.scene.promised)
    return None if done is None or past.scene.back_at is None else rounded((done - past.scene.back_at).total_seconds())


def rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)
