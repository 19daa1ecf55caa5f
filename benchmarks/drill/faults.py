"""Faults of the judge, the workers and the broker: one script each."""

import datetime as dt

from django.conf import settings
from django.utils import timezone

from benchmarks.drill.scene import Scene, Script
from benchmarks.drill.site import BROKER, IN_FLIGHT, THREADS, WORKERS
from grading import wakeup
from grading.judging.allowance import quota
from grading.models import JudgeAttempt, JudgeJob, Quota
from grading.models.judging import AttemptOutcome, JobState, Purpose

OK = 200
# The reset that the API names is a whole minute, at least so many seconds away.
MIN_OUTAGE_SECONDS = 8
# The share of kills at any moment after a worker's start.
RANDOM_KILLS = 0.25
# The promised order, repeated here so that another order in the code is noticed: new sessions first, then those that
# teach most. Sessions that were drawn to represent abstentions go in between and are not promised an order.
PROMISED_ORDER = ("backlog", "-worth", "pk")


# The judge


def quota_gone(scene: Scene) -> Script:
    """The 400 that names its reset. In quick mode an operator probes before that."""
    yield 0.5
    now = timezone.now()
    reset_at = minute_after(
        now + dt.timedelta(hours=2) if scene.quick else now + dt.timedelta(seconds=MIN_OUTAGE_SECONDS)
    )
    scene.begin_fault()
    scene.site.script_judge(mode="usage_limits", options={"regain": f"{reset_at:%Y-%m-%d at %H:%M}"})
    if scene.quick:
        yield from wait_for_backlog()
    else:
        yield (reset_at - now).total_seconds() - 0.5
    judge_is_back(scene)
    if scene.quick:
        quota.probe_now()
    else:
        scene.back_at = reset_at


def wait_for_backlog() -> Script:
    """Until so many jobs wait that a wrong order would show, for so long at most."""
    for _ in range(200):
        if JudgeJob.objects.filter(state=JobState.QUEUED).count() >= 2 * IN_FLIGHT:
            return
        yield 0.1


def minute_after(moment: dt.datetime) -> dt.datetime:
    return moment.replace(second=0, microsecond=0) + dt.timedelta(minutes=1)


def credit_gone(scene: Scene) -> Script:
    """The 400 that names no reset: probes find out that credit was bought."""
    yield scene.pause(2)
    scene.begin_fault()
    scene.site.script_judge(mode="no_credit")
    yield scene.pause(4)
    judge_is_back(scene)


def key_refused(scene: Scene) -> Script:
    yield scene.pause(2)
    scene.begin_fault()
    scene.site.script_judge(mode="auth")
    yield from wait_for_refusal()
    yield scene.pause(3)
    judge_is_back(scene)
    quota.probe_now()


def wait_for_refusal() -> Script:
    """Until the site knows that its key is refused and no call is under way, which would be refused after the probe.

    For half a minute at most.
    """
    for _ in range(300):
        if Quota.objects.out().exists() and not JudgeJob.objects.filter(state=JobState.LEASED).exists():
            return
        yield 0.1


def paused(scene: Scene) -> Script:
    yield scene.pause(2)
    quota.pause(by=None, note="drill")
    yield scene.pause(3)
    judge_is_back(scene)
    quota.resume(by=None)


def judge_is_back(scene: Scene) -> None:
    """The judge answers again. Jobs that wait get a random worth, so that the promised order is tested."""
    waiting = JudgeJob.objects.filter(state=JobState.QUEUED, purpose=Purpose.VERDICT)
    for job_id in waiting.values_list("pk", flat=True):
        JudgeJob.objects.filter(pk=job_id).update(worth=scene.rng.randrange(5) / 10)
    due = waiting.filter(next_attempt_at__lte=timezone.now(), reserved=False)
    scene.promised = list(due.order_by(*PROMISED_ORDER).values_list("pk", flat=True))
    scene.site.script_judge(mode="verdict")
    scene.back_at = timezone.now()


def overloaded(scene: Scene) -> Script:
    yield scene.pause(2)
    scene.site.script_judge(mode="overloaded")
    yield scene.pause(3)
    scene.site.script_judge(mode="verdict")


def rate_limited(scene: Scene) -> Script:
    yield scene.pause(2)
    scene.site.script_judge(mode="rate_limit", options={"retry_after": 2})
    yield scene.pause(3)
    scene.site.script_judge(mode="verdict")


def one_after_another(scene: Scene) -> Script:
    for trouble in (credit_gone, overloaded, rate_limited, paused, key_refused):
        yield from trouble(scene)


def late_reply(scene: Scene) -> Script:
    """A worker is suspended while its calls are answered. Its leases end and the other worker does the work.

    Again if that worker happened to have no calls. Nothing is submitted meanwhile: the worker may be suspended in a
    transaction, and a submission would wait for its lock.
    """
    for _ in range(3):
        scene.site.script_judge(mode="hang")
        for _session in range(2 * THREADS):
            scene.stream.send()
        yield 0.7
        scene.site.freeze(WORKERS[0])
        scene.site.script_judge(mode="verdict", release=True)
        yield settings.JUDGE_LEASE_SECONDS + 2
        scene.site.thaw(WORKERS[0])
        yield 0.5
        if JudgeAttempt.objects.filter(outcome=AttemptOutcome.LOST, http_status=OK).exists():
            return


# Our own processes


def kills(scene: Scene, worker: str) -> Script:
    """Kill a worker by -9, again and again, until all kills of the phase are done. It is started again at once.

    One in four kills comes at any moment after the start, the others during a call or just after it.
    """
    while scene.kills_left:
        while not scene.site.is_ready(worker):
            yield 0.1
        if scene.rng.random() < RANDOM_KILLS:
            yield scene.rng.uniform(0, 2)
        else:
            yield from wait_for_call_since(timezone.now())
            yield scene.rng.uniform(0.1, 1.0)
        if scene.kills_left:
            scene.kills_left -= 1
            scene.site.kill(worker)
            scene.site.start(worker)


def wait_for_call_since(moment: dt.datetime) -> Script:
    """Until a call has begun since then, for so long at most."""
    for _ in range(100):
        if JudgeAttempt.objects.filter(started_at__gt=moment).exists():
            return
        yield 0.05


def broker_flushed(scene: Scene) -> Script:
    for _ in range(5):
        yield scene.pause(scene.rng.uniform(0.3, 1.5))
        scene.site.broker.execute("FLUSHALL")
    scene.remarks.append("5 flushes")


def broker_stopped(scene: Scene) -> Script:
    yield scene.pause(2)
    scene.site.kill(BROKER)
    yield scene.pause(5)
    scene.site.start(BROKER)
    yield 0.5


def duplicates(scene: Scene) -> Script:
    """Hundreds of wakeups, and agents that send accepted sessions again."""
    for _ in range(4):
        yield scene.pause(1)
        for _ring in range(100):
            wakeup.publish()
        scene.stream.send_again(4)
    scene.remarks += ["400 wakeups", "16 submissions delivered again"]
