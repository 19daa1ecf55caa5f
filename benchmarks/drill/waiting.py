"""What keeps verdicts waiting and must end none of them: a service that hangs, evidence that is away, a key that is
refused for a while, a session that kills its readers, and a clock that jumps.
"""

from pathlib import Path

from django.conf import settings
from django.db.models import Min

from benchmarks.drill.noticing import noticed, until
from benchmarks.drill.scene import Scene, Script
from benchmarks.drill.site import WORKERS, armed_poison
from grading.judging import taking_up
from grading.models import JudgeAttempt, JudgeJob
from grading.models.judging import AttemptOutcome, JobState, Purpose
from grading.vocabulary import Reason

HANGS_MINUTES, STEP_MINUTES = 40, 5
HOUR = 3600
# A wait for something that ought to happen (seconds).
PATIENCE = 90


def service_hangs(scene: Scene) -> Script:
    """Forty minutes without an answer, on the site's clock. The first call that gets none is an alarm."""
    jobs = JudgeJob.objects.filter(session__external_id__startswith=scene.stream.prefix, purpose=Purpose.VERDICT)
    timed_out = JudgeAttempt.objects.filter(job__in=jobs, reason=Reason.TIMEOUT)
    # Before its first answer, a judge is asked about one or two sessions at a time.
    yield from until(jobs.filter(state=JobState.DONE).exists, PATIENCE)
    scene.site.order(mode="hang")
    yield from until(timed_out.exists, PATIENCE)
    scene.fault(timed_out.aggregate(at=Min("finished_at"))["at"])
    for minutes in range(STEP_MINUTES, HANGS_MINUTES + 1, STEP_MINUTES):
        shift(60 * minutes)
        yield scene.pause(4)
    tried = jobs.filter(attempts__gt=settings.JUDGE_MAX_ATTEMPTS)
    yield from until(tried.exists, 2 * PATIENCE)
    scene.need(tried.exists(), f"no session was tried more than {settings.JUDGE_MAX_ATTEMPTS} times")
    given_up = jobs.filter(state=JobState.ABANDONED)
    scene.need(not given_up.exists(), f"{given_up.count()} sessions that got no answer were given up")
    scene.remarks.append(f"{timed_out.count()} calls without an answer, {tried.count()} sessions beyond their tries")
    scene.site.order(mode="verdict", release=True)
    # What came in by the wrong clock would wait until then: it is right again when all is done.
    yield from until(lambda: not JudgeJob.objects.open().exists(), PATIENCE)
    shift(0)


def evidence_away(scene: Scene) -> Script:
    """The folder is gone while sessions wait for their verdict, and comes back."""
    folder = Path(settings.MEDIA_ROOT)
    aside = folder.with_name(f"{folder.name}-away")
    scene.site.order(mode="hang")
    for _ in range(6):
        scene.stream.send()
    scene.fault()
    folder.rename(aside)
    scene.site.order(mode="verdict", release=True)
    unread = JudgeJob.objects.filter(reason=Reason.UNREADABLE)
    yield from until(lambda: unread.exists() or not JudgeJob.objects.open().exists(), PATIENCE)
    scene.need(unread.exists(), "no session says that its evidence cannot be read")
    yield from noticed(scene)
    if folder.exists():  # somebody made a new one
        folder.rename(folder.with_name(f"{folder.name}-made"))
    aside.rename(folder)


def key_mended(scene: Scene) -> Script:
    """The key is refused for a while and mended at the provider; nobody tells the site."""
    yield scene.pause(2)
    scene.fault()
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
    parked = poisoned.filter(state=JobState.PARKED)
    yield from until(parked.exists, PATIENCE)
    scene.fault(parked.aggregate(at=Min("parked_at"))["at"])
    yield from until(lambda: parked.count() == len(names), PATIENCE)
    scene.need(parked.count() == len(names), f"{parked.count()} of {len(names)} sessions that kill were put aside")
    others = JudgeJob.objects.open().filter(
        session__external_id__startswith=scene.stream.prefix, purpose=Purpose.VERDICT
    )
    yield from until(lambda: not others.exclude(session__external_id__in=names).exists(), PATIENCE)
    scene.need(not others.exclude(session__external_id__in=names).exists(), "the others did not go on")
    yield from noticed(scene)
    tries = JudgeAttempt.objects.filter(job__in=poisoned).exclude(outcome=AttemptOutcome.GRADED).count()
    fell = [name for name in scene.site.fell if name in WORKERS]
    scene.remarks.append(f"{tries} attempts, {len(fell)} workers lost over 2 sessions; then mended, and tried by hand")
    armed.unlink()
    for name in fell:  # they were meant to
        scene.site.fell.remove(name)
    taking_up.try_now(by=None)
    scene.by_hand = True


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
