"""What the replayed incidents share: sessions through intake itself, a worker's turn, worlds to compare."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager

from django.utils import timezone

from bandit.models import Bucket
from grading.judging import sweeper, worker
from grading.judging.allowance import budget
from grading.models import Alarm, JudgeJob, Session
from grading.models.judging import JobState
from grading.simulator import Simulator
from tests.casts import judge as judge_cast
from tests.casts import logs
from tests.site import Site


@contextmanager
def simulated(settings) -> Iterator[Simulator]:
    """The site's judge: the simulator. A failed call is tried again when `work` is called, and not before; further
    opinions only where a test wants them.
    """
    with Simulator() as running:
        judge_cast.use(settings, running)
        settings.JUDGE_BACKOFF_SECONDS = 3600
        budget.set_policy(by=None, repeat_share=0, second_share=0)
        yield running


def submit(session_id: str, *, log: bytes | None = None, **parts) -> Session:
    """A session as an agent hands it in: by default with a log of its own, of one test run and one commit;
    b"" stands for no log."""
    log = logs.claude(session_id, ("pytest -q", "8 passed"), logs.COMMIT) if log is None else log or None
    journal = f"# {session_id}\n\nSubmitted the fix upstream.\n"
    return Site().upload(session_id, log, journal=journal, **parts).session


def work() -> int:
    """What a worker and its clock do: sweep, then judge whatever may be judged, retries included. How many calls."""
    JudgeJob.objects.filter(state=JobState.QUEUED).update(next_attempt_at=timezone.now())
    sweeper.sweep()
    return worker.pump()


def answers(sim: Simulator, *moods: str | dict) -> None:
    """One new session for each mood of the judge, asked about once."""
    for mood in moods:
        sim.script(mood)
        submit(f"session {Session.objects.count()}")
        worker.pump()
        JudgeJob.objects.filter(state=JobState.QUEUED).update(next_attempt_at=timezone.now() + dt.timedelta(days=1000))


def alarms(rule: str) -> list[str]:
    """What the rule's open alarms say."""
    return list(Alarm.objects.filter(rule=rule, resolved_at=None).order_by("pk").values_list("detail", flat=True))


def learned() -> list[tuple]:
    """All that the bandits know, to the last bit."""
    rows = Bucket.objects.filter(n__gt=0)
    names = ("bandit__name", "arm__name", "grader__source", "grader__model", "grader__rubric", "effective_day")
    return sorted(rows.values_list(*names, "n", "s", "q"))


def regained(days: int) -> dict[str, str]:
    """The API's own sentence that the quota is gone, until midnight in so many days."""
    return {"mode": "usage_limits", "regain": f"{timezone.now() + dt.timedelta(days=days):%F} at 00:00"}
