"""What goes wrong, and when: one script for each fault."""

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
# A reset that the API names by the minute is at least so many seconds away.
SHORTEST_OUTAGE = 8
ANY_MOMENT = 0.25
# Said here once more, so that another order in the code is noticed: new ones first, then those that teach most. The
# ones that were drawn to speak for their arm's abstentions go in between, as far as their share of the calls goes.
PROMISED = ("backlog", "-worth", "pk")


# --- the judge -------------------------------------------------------------------------------------------------------


def quota_gone(scene: Scene) -> Script:
    """The 400 that names its reset. In quick mode an operator, who knows better, asks before that."""
    yield 0.5
    now = timezone.now()
    named = minute_after(now + dt.timedelta(hours=2) if scene.quick else now + dt.timedelta(seconds=SHORTEST_OUTAGE))
    scene.fault()
    scene.site.order(mode="usage_limits", options={"regain": f"{named:%Y-%m-%d at %H:%M}"})
    if scene.quick:
        yield from enough_wait()
    else:
        yield (named - now).total_seconds() - 0.5
    back(scene)
    if scene.quick:
        quota.probe_now()
    else:
        scene.back_at = named


def enough_wait() -> Script:
    """Until so many jobs wait that a wrong order would show; not for ever."""
    for _ in range(200):
        if JudgeJob.objects.filter(state=JobState.QUEUED).count() >= 2 * IN_FLIGHT:
            return
        yield 0.1


def minute_after(moment: dt.datetime) -> dt.datetime:
    return moment.replace(second=0, microsecond=0) + dt.timedelta(minutes=1)


def credit_gone(scene: Scene) -> Script:
    """The 400 that names none: probes find out that credit was bought."""
    yield scene.pause(2)
    scene.fault()
    scene.site.order(mode="no_credit")
    yield scene.pause(4)
    back(scene)


def key_refused(scene: Scene) -> Script:
    yield scene.pause(2)
    scene.fault()
    scene.site.order(mode="auth")
    yield from refusal_known()
    yield scene.pause(3)
    back(scene)
    quota.probe_now()


def refusal_known() -> Script:
    """Until the site knows that it is refused, and no call is under way that would tell it once more after the probe.

    Only a person asks again then. Not for ever: on a slow machine half a minute.
    """
    for _ in range(300):
        if Quota.objects.out().exists() and not JudgeJob.objects.filter(state=JobState.LEASED).exists():
            return
        yield 0.1


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
    due = waiting.filter(next_attempt_at__lte=timezone.now(), reserved=False)
    scene.promised = list(due.order_by(*PROMISED).values_list("pk", flat=True))
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


def one_after_another(scene: Scene) -> Script:
    for trouble in (credit_gone, overloaded, rate_limited, paused, key_refused):
        yield from trouble(scene)


def late_reply(scene: Scene) -> Script:
    """A worker stands still while its calls are answered; its leases end, another does the work; then it goes on.

    Once more where that worker happened to have no calls. Nothing is handed in meanwhile: the worker may stand still in
    a transaction, and whoever waits for its lock could not wake it.
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

    One in four at any moment after its start, the others while the calls go on that it began, or just after.
    """
    while scene.kills_left:
        while not scene.site.is_ready(worker):
            yield 0.1
        if scene.rng.random() < ANY_MOMENT:
            yield scene.rng.uniform(0, 2)
        else:
            yield from call_since(timezone.now())
            yield scene.rng.uniform(0.1, 1.0)
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
        scene.site.broker.execute("FLUSHALL")
    scene.remarks.append("5 flushes")


def broker_stopped(scene: Scene) -> Script:
    yield scene.pause(2)
    scene.site.kill(BROKER)
    yield scene.pause(5)
    scene.site.start(BROKER)
    yield 0.5


def duplicates(scene: Scene) -> Script:
    """Wakeups by the hundred, and agents that send again what was accepted."""
    for _ in range(4):
        yield scene.pause(1)
        for _ring in range(100):
            wakeup.publish()
        scene.stream.send_again(4)
    scene.remarks += ["400 wakeups", "16 submissions delivered again"]
