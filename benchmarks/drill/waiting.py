"""What keeps verdicts waiting and must end none of them: a service that hangs, evidence that is away, a key that is
refused for a while, a session that kills its readers, and a clock that jumps.
"""

from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from benchmarks.drill.scene import Scene, Script
from benchmarks.drill.site import WORKERS, armed_poison
from grading.judging import taking_up
from grading.models import Alarm, JudgeAttempt, JudgeJob
from grading.models.judging import AttemptOutcome, JobState, Purpose
from grading.vocabulary import Reason

HANGS_MINUTES, STEP_MINUTES = 40, 5
HOUR = 3600
# A wait for something that ought to happen (seconds).
PATIENCE = 90


def service_hangs(scene: Scene) -> Script:
    """Forty minutes without an answer, on the site's clock. The first call that gets none is an alarm."""
    yield scene.pause(1)
    scene.site.order(mode="hang")
    yield from until(lambda: JudgeAttempt.objects.filter(reason=Reason.TIMEOUT).exists())
    first = JudgeAttempt.objects.filter(reason=Reason.TIMEOUT).order_by("finished_at")[0].finished_at
    yield from until(lambda: Alarm.objects.filter(rule="A2", opened_at__gte=first).exists(), 30)
    alarm = Alarm.objects.filter(rule="A2", opened_at__gte=first).order_by("opened_at").first()
    scene.need(alarm is not None, "no alarm within 30 s of the first call without an answer")
    if alarm is not None and first is not None:
        scene.remarks.append(f"alarm {(alarm.opened_at - first).total_seconds():.1f} s after the first time-out")
    for minutes in range(STEP_MINUTES, HANGS_MINUTES + 1, STEP_MINUTES):
        shift(60 * minutes)
        yield scene.pause(4)
    scene.site.order(mode="verdict", release=True)
    yield 1
    shift(0)


def evidence_away(scene: Scene) -> Script:
    """The folder is gone while sessions wait for their verdict, and comes back."""
    folder = Path(settings.MEDIA_ROOT)
    aside = folder.with_name(f"{folder.name}-away")
    scene.site.order(mode="hang")
    for _ in range(6):
        scene.stream.send()
    folder.rename(aside)
    scene.site.order(mode="verdict", release=True)
    unread = JudgeJob.objects.filter(reason=Reason.UNREADABLE)
    yield from until(lambda: unread.exists() or not JudgeJob.objects.open().exists())
    scene.need(unread.exists(), "no session says that its evidence cannot be read")
    yield scene.pause(6)
    if folder.exists():  # somebody made a new one
        folder.rename(folder.with_name(f"{folder.name}-made"))
    aside.rename(folder)


def key_mended(scene: Scene) -> Script:
    """The key is refused for a while and mended at the provider; nobody tells the site."""
    yield scene.pause(2)
    scene.site.order(mode="auth")
    yield scene.pause(8)
    scene.site.order(mode="verdict")


def poison(scene: Scene) -> Script:
    """A session over which the reader dies, and one over which the whole worker does. The others must go on."""
    armed = armed_poison(scene.site.logs)
    armed.touch()
    names = [scene.stream.send(title=title) for title in ("kills-reader", "kills-worker")]
    for _ in range(6):
        scene.stream.send()
    poisoned = JudgeJob.objects.filter(session__external_id__in=names, purpose=Purpose.VERDICT)
    yield from until(lambda: poisoned.filter(state=JobState.PARKED).count() == len(names), 2 * PATIENCE)
    parked = poisoned.filter(state=JobState.PARKED).count()
    scene.need(parked == len(names), f"{parked} of {len(names)} sessions that kill were put aside")
    others = JudgeJob.objects.open().filter(
        session__external_id__startswith=scene.stream.prefix, purpose=Purpose.VERDICT
    )
    yield from until(lambda: not others.exclude(session__external_id__in=names).exists())
    scene.need(not others.exclude(session__external_id__in=names).exists(), "the others did not go on")
    yield from until(lambda: Alarm.objects.filter(rule="A45", resolved_at=None).exists(), 60)
    scene.need(Alarm.objects.filter(rule="A45", resolved_at=None).exists(), "no alarm names the session that kills")
    tries = JudgeAttempt.objects.filter(job__in=poisoned).exclude(outcome=AttemptOutcome.GRADED).count()
    fell = [name for name in scene.site.fell if name in WORKERS]
    scene.remarks.append(f"{tries} attempts, {len(fell)} workers lost over 2 sessions; then mended, and tried by hand")
    armed.unlink()
    for name in fell:  # they were meant to
        scene.site.fell.remove(name)
    taking_up.try_now(by=None)


def clock_jumps(scene: Scene) -> Script:
    """An hour forth, two back, and right again, while sessions come in and are judged."""
    for seconds in (HOUR, -HOUR, 0):
        yield scene.pause(4)
        shift(seconds)
    yield 1
    scene.remarks.append("an hour forth, two back, one forth")


def shift(seconds: int) -> None:
    """Make the site's clock wrong by so much: a new file in the old one's place, so that nobody reads half of it."""
    path = Path(settings.CLOCK_SHIFT_FILE)
    new = path.with_suffix(".new")
    new.write_text(str(seconds))
    new.replace(path)


def until(holds: Callable[[], bool], seconds: float = PATIENCE) -> Script:
    """Waits for something, but not for ever."""
    for _ in range(int(seconds / 0.2)):
        if holds():
            return
        yield 0.2
