"""The sessions that are copied: logs, journals and patches of two agents, taken in over the API's own code, judged by
the simulated judge, some of them graded by a person.
"""

import datetime as dt
from random import Random

from benchmarks.intake import log, patch

AGENTS = ("alice", "bob")
CATEGORIES = ("code", "cross-repo", "infra", "content", "triage", "research", "news", "social")
GRADED = 1


def sow(sessions: int) -> None:
    """So many sessions of the last day. Every fourth leaves no patch, every fifth has its log alone."""
    import io

    from django.conf import settings
    from django.contrib.auth.models import User

    from bandit.selection import select
    from grading import intake, judging, monitoring, review
    from grading.intake.submission import SubmittedSession
    from grading.models import Agent, JudgeJob, ReviewItem
    from grading.models.review import Answer
    from grading.simulator import Simulator

    settings.ANTHROPIC_API_KEY = "sk-pages"  # from the start: without a key nothing is queued for the judge
    now, dice = dt.datetime.now(dt.UTC), Random(3)
    agents = [Agent.objects.create(name=name) for name in AGENTS]
    for number in range(sessions):
        name, agent = f"s{number}x", agents[number % len(agents)]
        select(bandit="category", decision_id=f"d{number}", agent=agent.name, supply=None, now=now)
        said = SubmittedSession(
            session_id=name,
            category=CATEGORIES[number % len(CATEGORIES)],
            harness="claude-code",
            ended_at=now - dt.timedelta(minutes=20 * number),
            title=f"Fix {name}, and write down why",
            selection_id=f"d{number}",
        )
        journal = f"# Session {name}\nSubmitted the fix; all tests pass. " + "Words of the journal. " * dice.randrange(
            40
        )
        files = {"transcript": io.BytesIO(log(name))}
        if number % 5:
            files["journal"] = io.BytesIO(journal.encode())
        if number % 4:
            files["patch"] = io.BytesIO(patch(name))
        intake.submit(agent=agent, metadata=said, **files)
    with Simulator() as judge:
        settings.ANTHROPIC_BASE_URL = judge.url
        JudgeJob.objects.open().update(next_attempt_at=now - dt.timedelta(hours=1))
        judging.pump(seconds=600)
    person = User.objects.create_superuser("olga", password="not used")  # noqa: S106
    for item in ReviewItem.objects.open().order_by("pk")[:GRADED]:
        review.submit(item.session, person, answer=Answer.GRADE, value=round(dice.random(), 2), reason="seen it")
    judging.sweep()
    monitoring.watch()
    monitoring.watch_at_night()
