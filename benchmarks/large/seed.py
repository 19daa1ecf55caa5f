"""The sessions that are copied: logs, journals and patches of two agents, taken in over the API's own code, judged by
the simulated judge, some of them graded by a person, some of them given lessons.
"""

import datetime as dt
from contextlib import suppress
from random import Random

from benchmarks.intake import log, patch

AGENTS = ("alice", "bob")
CATEGORIES = ("code", "cross-repo", "infra", "content", "triage", "research", "news", "social")
LESSONS = ("read-twice", "ask-first")
GRADED = 1


def sow(sessions: int) -> None:
    """So many sessions of the last day. Every fourth leaves no patch, every fifth has its log alone."""
    from django.conf import settings
    from django.contrib.auth.models import User

    from bandit.models import Arm, Bandit
    from bandit.selection import NothingEligible, select
    from grading import judging, monitoring, review
    from grading.models import Agent, JudgeJob, ReviewItem
    from grading.models.review import Answer
    from grading.simulator import Simulator

    now, dice = dt.datetime.now(dt.UTC), Random(3)
    Arm.objects.bulk_create(Arm(bandit=Bandit.objects.get(name="lesson"), name=name) for name in LESSONS)
    Agent.objects.bulk_create(Agent(name=name) for name in AGENTS)
    with Simulator() as judge:
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "sk-pages", judge.url
        for number in range(sessions):
            agent = AGENTS[number % len(AGENTS)]
            with suppress(NothingEligible):  # this agent's arms may be at their limits: a session without a decision
                select(bandit="category", decision_id=f"d{number}", agent=agent, supply=None, now=now)
            take_in(number, now - dt.timedelta(minutes=20 * number), words=dice.randrange(40))
        JudgeJob.objects.open().update(next_attempt_at=now - dt.timedelta(hours=1))
        judging.pump(seconds=600)
    person = User.objects.create_superuser("olga", password="not used")  # noqa: S106
    for item in ReviewItem.objects.open().order_by("pk")[:GRADED]:
        review.submit(item.session, person, answer=Answer.GRADE, value=round(dice.random(), 2), reason="seen it")
    judging.sweep()
    monitoring.watch()
    monitoring.watch_at_night()


def take_in(number: int, ended_at: dt.datetime, *, words: int = 0) -> None:
    """One session, the outcome of the selection of its number, if there was one; every fourth with lessons."""
    from bandit import holdout
    from bandit.models import Selection
    from grading.models import Agent
    from tests.site import Site

    name, agent = f"s{number}x", Agent.objects.get(name=AGENTS[number % len(AGENTS)])
    decision, with_lessons = f"d{number}", number % 4 == 1
    chosen = Selection.objects.filter(bandit__name="category", agent=agent.name, decision_id=decision).exists()
    if with_lessons:
        holdout.assign("lesson", f"l{number}", LESSONS, agent=agent.name, now=ended_at - dt.timedelta(hours=1))
    journal = f"# Session {name}\nSubmitted the fix; all tests pass. " + "Words of the journal. " * words
    Site().upload(
        name,
        log(name),
        journal=journal if number % 5 else None,
        patch=patch(name) if number % 4 else None,
        agent=agent,
        category=CATEGORIES[number % len(CATEGORIES)],
        harness="claude-code",
        ended_at=ended_at,
        title=f"Fix {name}, and write down why",
        selection_id=decision if chosen else None,
        lessons_decision_id=f"l{number}" if with_lessons else None,
    )
