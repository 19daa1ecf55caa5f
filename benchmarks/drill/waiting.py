"""Faults that delay verdicts and must prevent none: a service that hangs, missing evidence, a key that is refused for a
while, sessions that kill their readers, and a clock that jumps.
"""

from pathlib import Path

from django.conf import settings
from django.db.models import Min

from benchmarks.drill.noticing import wait_for, wait_until_noticed
from benchmarks.drill.scene import Scene, Script
from benchmarks.drill.site import WORKERS, armed_poison
from grading.judging import sweeper
from grading.models import JudgeAttempt, JudgeJob
from grading.models.judging import AttemptOutcome, JobState, Purpose
from grading.vocabulary import Reason

HANGS_MINUTES, STEP_MINUTES = 40, 5
HOUR = 3600
# For how long something is awaited that should happen.
PATIENCE = 90


def service_hangs(scene: Scene) -> Script:
    """Forty minutes without an answer, by the site's clock. The first call without one opens an alarm."""
    jobs = JudgeJob.objects.filter(session__external_id__startswith=scene.stream.prefix, purpose=Purpose.VERDICT)
    timed_out = JudgeAttempt.objects.filter(job__in=jobs, reason=Reason.TIMEOUT)
    # Before its first answer, a judge is asked about one or two sessions at a time.
    yield from wait_for(jobs.filter(state=JobState.DONE).exists, PATIENCE)
    scene.site.script_judge(mode="hang")
    yield from wait_for(timed_out.exists, PATIENCE)
    scene.begin_fault(timed_out.aggregate(at=Min("finished_at"))["at"])
    for minutes in range(STEP_MINUTES, HANGS_MINUTES + 1, STEP_MINUTES):
        shift_clock(60 * minutes)
        yield scene.pause(4)
    tried = jobs.filter(attempts__gt=settings.JUDGE_MAX_ATTEMPTS)
    yield from wait_for(tried.exists, 2 * PATIENCE)
    scene.need(tried.exists(), f"no session was tried more than {settings.JUDGE_MAX_ATTEMPTS} times")
    given_up = jobs.filter(state=JobState.ABANDONED)
    scene.need(not given_up.exists(), f"{given_up.count()} sessions that got no answer were given up")
    scene.remarks.append(f"{timed_out.count()} calls without an answer, {tried.count()} sessions beyond their tries")
    scene.site.script_judge(mode="verdict", release=True)
    # What came in by the shifted clock waits until that time, so the clock is set right when all is done.
    yield from wait_for(lambda: not JudgeJob.objects.open().exists(), PATIENCE)
    shift_clock(0)


def evidence_away(scene: Scene) -> Script:
    """The folder of evidence is missing while sessions wait for their verdict, and comes back."""
    folder = Path(settings.MEDIA_ROOT)
    aside = folder.with_name(f"{folder.name}-away")
    scene.site.script_judge(mode="hang")
    for _ in range(6):
        scene.stream.send()
    scene.begin_fault()
    folder.rename(aside)
    scene.site.script_judge(mode="verdict", release=True)
    unread = JudgeJob.objects.filter(reason=Reason.UNREADABLE)
    yield from wait_for(lambda: unread.exists() or not JudgeJob.objects.open().exists(), PATIENCE)
    scene.need(unread.exists(), "no session says that its evidence cannot be read")
    yield from wait_until_noticed(scene)
    if folder.exists():  # the site made a new one
        folder.rename(folder.with_name(f"{folder.name}-made"))
    aside.rename(folder)


def key_mended(scene: Scene) -> Script:
    """The key is refused for a while and accepted again without anybody telling the site."""
    yield scene.pause(2)
    scene.begin_fault()
    scene.site.script_judge(mode="auth")
    yield scene.pause(8)
    scene.site.script_judge(mode="verdict")


def poison(scene: Scene) -> Script:
    """A session that kills its reader and one that kills the whole worker. Other sessions must be judged."""
    armed = armed_poison(scene.site.logs)
    armed.touch()
    names = [scene.stream.send(title=title) for title in ("kills-reader", "kills-worker")]
    for _ in range(6):
        scene.stream.send()
    poisoned = JudgeJob.objects.filter(session__external_id__in=names, purpose=Purpose.VERDICT)
    parked = poisoned.filter(state=JobState.PARKED)
    yield from wait_for(parked.exists, PATIENCE)
    scene.begin_fault(parked.aggregate(at=Min("parked_at"))["at"])
    yield from wait_for(lambda: parked.count() == len(names), PATIENCE)
    scene.need(parked.count() == len(names), f"{parked.count()} of {len(names)} sessions that kill were put aside")
    others = JudgeJob.objects.open().filter(
        session__external_id__startswith=scene.stream.prefix, purpose=Purpose.VERDICT
    )
    yield from wait_for(lambda: not others.exclude(session__external_id__in=names).exists(), PATIENCE)
    scene.need(not others.exclude(session__external_id__in=names).exists(), "the others did not go on")
    yield from wait_until_noticed(scene)
    tries = JudgeAttempt.objects.filter(job__in=poisoned).exclude(outcome=AttemptOutcome.GRADED).count()
    crashed = [name for name in scene.site.crashed if name in WORKERS]
    scene.remarks.append(
        f"{tries} attempts and {len(crashed)} workers lost over 2 sessions, which were then tried by hand"
    )
    armed.unlink()
    for name in crashed:  # intended
        scene.site.crashed.remove(name)
    sweeper.try_now(by=None)
    scene.by_hand = True


def clock_jumps(scene: Scene) -> Script:
    """The clock is an hour fast, an hour slow and right again, while sessions come in and are judged."""
    for seconds in (HOUR, -HOUR, 0):
        yield scene.pause(4)
        shift_clock(seconds)
    yield 1
    scene.remarks.append("an hour fast, an hour slow, then right")


def shift_clock(seconds: int) -> None:
    """Make the site's clock fast by so many seconds. The file is replaced, so that no process reads half of it."""
    path = Path(settings.CLOCK_SHIFT_FILE)
    new = path.with_suffix(".new")
    new.write_text(str(seconds))
    new.replace(path)
