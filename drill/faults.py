"""What goes wrong, and when: scripts that do something, then yield the seconds until they want to go on."""

import datetime as dt
import heapq
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from django.conf import settings
from django.utils import timezone

from drill.site import BEAT, BROKER, THREADS, WORKERS, Site
from drill.stream import Stream
from grading.judging import doorbell, quota
from grading.models import JudgeAttempt, JudgeJob
from grading.models.judging import AttemptOutcome, JobState, Purpose

Script = Iterator[float]
OK = 200
# A reset that the API names by the minute is at least so many seconds away.
SHORTEST_OUTAGE = 8
BUSY_WITH = 12
ANY_MOMENT = 0.25


@dataclass(slots=True, kw_only=True)
class Scene:
    """One phase while it is played. `promised` are the jobs that waited when the judge came back, at `back_at`."""

    site: Site
    stream: Stream
    rng: Random
    quick: bool
    promised: list[int] = field(default_factory=list)
    back_at: dt.datetime | None = None
    kills_left: int = 0
    remarks: list[str] = field(default_factory=list)

    def pause(self, seconds: float) -> float:
        """How long a fault of so many seconds lasts here."""
        return seconds / 2 if self.quick else seconds


def play(scripts: list[Script], site: Site) -> None:
    """Run scripts side by side, in one thread, until all have ended. What fell by itself is started again."""
    count = itertools.count()
    waiting = [(time.monotonic(), next(count), script) for script in scripts]
    while waiting:
        due, _number, script = heapq.heappop(waiting)
        time.sleep(max(0.0, due - time.monotonic()))
        site.revive()
        pause = next(script, None)
        if pause is not None:
            heapq.heappush(waiting, (time.monotonic() + pause, next(count), script))


# --- what agents do --------------------------------------------------------------------------------------------------


def sessions(scene: Scene, count: int, every: float = 0.2) -> Script:
    """A stream of sessions, one in two of which ended long ago: backlog."""
    for _ in range(count):
        scene.stream.send(minutes_ago=scene.rng.choice([1, 90]))
        yield every


def busy(scene: Scene) -> Script:
    """As many sessions as keep the workers busy until the kills are over."""
    while scene.kills_left:
        if JudgeJob.objects.open().count() < BUSY_WITH:
            scene.stream.send()
        yield 0.05


# --- the judge -------------------------------------------------------------------------------------------------------


def quota_gone(scene: Scene) -> Script:
    """The 400 that names its reset. In quick mode an operator, who knows better, asks before that."""
    yield scene.pause(2)
    now = timezone.now()
    named = minute_after(now + dt.timedelta(hours=2) if scene.quick else now + dt.timedelta(seconds=SHORTEST_OUTAGE))
    scene.site.order(mode="usage_limits", options={"regain": f"{named:%Y-%m-%d at %H:%M}"})
    yield scene.pause(4) if scene.quick else (named - now).total_seconds() - 0.5
    back(scene)
    if scene.quick:
        quota.probe_now()
    else:
        scene.back_at = named


def minute_after(moment: dt.datetime) -> dt.datetime:
    return moment.replace(second=0, microsecond=0) + dt.timedelta(minutes=1)


def credit_gone(scene: Scene) -> Script:
    """The 400 that names none: probes find out that credit was bought."""
    yield scene.pause(2)
    scene.site.order(mode="no_credit")
    yield scene.pause(4)
    back(scene)


def key_refused(scene: Scene) -> Script:
    yield scene.pause(2)
    scene.site.order(mode="auth")
    yield scene.pause(3)
    back(scene)
    quota.probe_now()


def paused(scene: Scene) -> Script:
    yield scene.pause(2)
    quota.pause(by=None, note="drill")
    yield scene.pause(3)
    back(scene)
    quota.resume(by=None)


def back(scene: Scene) -> None:
    """The judge is back. What waits now is given a worth by lot, so that the promised order is put to the test."""
    waiting = JudgeJob.objects.filter(state=JobState.QUEUED, purpose=Purpose.VERDICT)
    for job_id in waiting.values_list("pk", flat=True):
        JudgeJob.objects.filter(pk=job_id).update(worth=scene.rng.randrange(5) / 10)
    scene.promised = list(waiting.filter(next_attempt_at__lte=timezone.now()).values_list("pk", flat=True))
    scene.site.order(mode="verdict")
    scene.back_at = timezone.now()


def overloaded(scene: Scene) -> Script:
    yield scene.pause(2)
    scene.site.order(mode="overloaded")
    yield scene.pause(3)
    scene.site.order(mode="verdict")


def rate_limited(scene: Scene) -> Script:
    yield scene.pause(2)
    scene.site.order(mode="rate_limit", options={"retry_after": 2})
    yield scene.pause(3)
    scene.site.order(mode="verdict")


def late_reply(scene: Scene) -> Script:
    """A worker stands still while its calls are answered; its leases end, another does the work; then it goes on.

    Once more where that worker happened to have no calls.
    """
    for _ in range(3):
        scene.site.order(mode="hang")
        for _session in range(2 * THREADS):
            scene.stream.send()
        yield 0.7
        scene.site.freeze(WORKERS[0])
        scene.site.order(mode="verdict", release=True)
        yield settings.JUDGE_LEASE_SECONDS + 2
        scene.site.thaw(WORKERS[0])
        yield 0.5
        if JudgeAttempt.objects.filter(outcome=AttemptOutcome.LOST, http_status=OK).exists():
            return


# --- our own processes -----------------------------------------------------------------------------------------------


def kills(scene: Scene, worker: str) -> Script:
    """End a worker by -9, again and again, until all kills of the phase are done. It is started again at once.

    One in four at any moment after its start, the others a moment after a call began.
    """
    while scene.kills_left:
        while not scene.site.is_ready(worker):
            yield 0.1
        if scene.rng.random() < ANY_MOMENT:
            yield scene.rng.uniform(0, 2)
        else:
            yield from call_since(timezone.now())
            yield scene.rng.uniform(0, 0.6)
        if scene.kills_left:
            scene.kills_left -= 1
            scene.site.kill(worker)
            scene.site.start(worker)


def call_since(moment: dt.datetime) -> Script:
    """Waits until a call has begun since then, but not for ever."""
    for _ in range(100):
        if JudgeAttempt.objects.filter(started_at__gt=moment).exists():
            return
        yield 0.05


def broker_flushed(scene: Scene) -> Script:
    for _ in range(5):
        yield scene.pause(scene.rng.uniform(0.3, 1.5))
        scene.site.broker.ask("FLUSHALL")
    scene.remarks.append("5 flushes")


def broker_stopped(scene: Scene) -> Script:
    yield scene.pause(2)
    scene.site.kill(BROKER)
    yield scene.pause(5)
    scene.site.start(BROKER)
    yield 0.5


def beat_stopped(scene: Scene) -> Script:
    yield scene.pause(2)
    scene.site.kill(BEAT)
    yield scene.pause(5)
    scene.site.start(BEAT)


def duplicates(scene: Scene) -> Script:
    """Doorbells by the hundred, and agents that send again what was accepted."""
    for _ in range(4):
        yield scene.pause(1)
        for _ring in range(100):
            doorbell.publish()
        scene.stream.send_again(4)
    scene.remarks += ["400 doorbells", "16 submissions delivered again"]


# --- phases ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A named fault. `many` sessions in multiples of the usual number, `kills` as a share of all.

    `is_out`: the judge is out for everybody, so an order is promised, and an alarm where `alarms`; meanwhile `probes`
    are expected. `alone` phases are left out of a quick drill: their faults are in the last phase too.
    """

    name: str
    scripts: tuple[Callable[[Scene], Script], ...] = ()
    many: float = 1
    kills: float = 0
    is_out: bool = False
    alarms: bool = True
    probes: bool = False
    alone: bool = False


KILLS = tuple(lambda scene, worker=worker: kills(scene, worker) for worker in WORKERS)
PHASES = (
    Phase(name="none"),
    Phase(name="quota gone, reset named (400)", scripts=(quota_gone,), many=3, is_out=True),
    Phase(name="credit gone, no reset (400)", scripts=(credit_gone,), is_out=True, probes=True, alone=True),
    Phase(name="key refused (401)", scripts=(key_refused,), is_out=True),
    Phase(name="paused by an operator", scripts=(paused,), is_out=True, alarms=False),
    Phase(name="overloaded (529)", scripts=(overloaded,)),
    Phase(name="rate limited (429)", scripts=(rate_limited,)),
    Phase(name="replies after their lease", scripts=(late_reply,), many=0.5),
    Phase(name="workers killed (-9)", scripts=(busy, *KILLS), many=0, kills=0.8),
    Phase(name="broker flushed", scripts=(broker_flushed,), alone=True),
    Phase(name="broker killed, started later", scripts=(broker_stopped,), alone=True),
    Phase(name="beat killed, started later", scripts=(beat_stopped,), alone=True),
    Phase(name="everything delivered again", scripts=(duplicates,), alone=True),
    Phase(
        name="all of it at once",
        scripts=(*KILLS, broker_flushed, broker_stopped, beat_stopped, duplicates, credit_gone, busy),
        many=2,
        kills=0.2,
    ),
)
