"""What the tests of the judge share: a simulator that the site uses as its judge, and sessions with evidence."""

from grading.judging.allowance import budget
from grading.models import Evidence, JudgeAttempt
from tests.casts import logs
from tests.site import Site

site = Site()

KEY = "sk-test"


def use(settings, sim) -> None:
    """Make `sim` the site's judge, with waits that tests can afford."""
    settings.ANTHROPIC_API_KEY = KEY
    settings.ANTHROPIC_BASE_URL = sim.url
    settings.JUDGE_TIMEOUT = 20
    settings.JUDGE_BACKOFF_SECONDS = 0.01
    settings.JUDGE_PROBE_SECONDS = 60


def in_batches(settings) -> None:
    """The backlog goes in batches, from two jobs on, and each is asked after at once."""
    settings.JUDGE_BATCH_LEAST = 2
    settings.JUDGE_BATCH_POLL_SECONDS = 0
    budget.set_policy(by=None, use_batches=True, repeat_share=0, second_share=0)


def give(session, kind, data: bytes, filename: str = "") -> Evidence:
    return site.on(session).with_file(kind, data, filename).evidence


def transcript(session) -> bytes:
    return logs.worked(session.external_id)


def session(**fields):
    """A session with something to judge."""
    return site.session(**fields).with_work().session


def job(**fields):
    """An open job for a session with evidence."""
    return site.judge_job(**fields)


def attempts(job) -> list[JudgeAttempt]:
    return list(JudgeAttempt.objects.filter(job=job))
