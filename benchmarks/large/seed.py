"""The sessions that are copied: logs, journals and patches of two agents. They come in through the site's own code and
are judged by the simulated judge. A person grades one of them, and some have lessons.
"""

import datetime as dt
from contextlib import suppress
from random import Random

from benchmarks.intake import session_log, session_patch

AGENTS = ("alice", "bob")
CATEGORIES = ("code", "cross-repo", "infra", "content", "triage", "research", "news", "social")
LESSONS = ("read-twice", "ask-first")


def create_sessions(count: int) -> None:
    """Create the sessions of the last day. Every fourth has no patch, every fifth only its log."""
    from django.conf import settings
    from django.contrib.auth.models import User

    from bandit.models import Arm, Bandit
    from bandit.selection import NothingEligible, select
    from grading.judging import sweeper, worker
    from grading.models import Agent, JudgeJob, ReviewItem
    from grading.models.review import Answer
    from grading.monitoring.watch import watch, watch_at_night
    from grading.review import answers
    from grading.simulator import Simulator

    now, dice = dt.datetime.now(dt.UTC), Random(3)
    Arm.objects.bulk_create(Arm(bandit=Bandit.objects.get(name="lesson"), name=name) for name in LESSONS)
    Agent.objects.bulk_create(Agent(name=name) for name in AGENTS)
    with Simulator() as judge:
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "sk-pages", judge.url
        for number in range(count):
            agent = AGENTS[number % len(AGENTS)]
            with suppress(NothingEligible):  # this agent's arms may be at their limits: a session without a decision
                select(bandit="category", decision_id=f"d{number}", agent=agent, supply=None, now=now)
            take_in(number, now - dt.timedelta(minutes=20 * number), journal_sentences=dice.randrange(40))
        JudgeJob.objects.open().update(next_attempt_at=now - dt.timedelta(hours=1))
        worker.pump(seconds=600)
    person = User.objects.create_superuser("olga", password="not used")  # noqa: S106
    item = ReviewItem.objects.open().order_by("pk").first()
    if item is not None:
        answers.submit(item.session, person, answer=Answer.GRADE, value=round(dice.random(), 2), reason="seen it")
    sweeper.sweep()
    watch()
    watch_at_night()


def take_in(number: int, ended_at: dt.datetime, *, journal_sentences: int = 0) -> None:
    """Take in a session. It belongs to the selection of its number, if there was one; every fourth has lessons."""
    from bandit import holdout
    from bandit.models import Selection
    from grading.models import Agent
    from tests.site import Site

    name, agent = f"s{number}x", Agent.objects.get(name=AGENTS[number % len(AGENTS)])
    decision, has_lessons = f"d{number}", number % 4 == 1
    is_selected = Selection.objects.filter(bandit__name="category", agent=agent.name, decision_id=decision).exists()
    if has_lessons:
        holdout.assign("lesson", f"l{number}", LESSONS, agent=agent.name, now=ended_at - dt.timedelta(hours=1))
    journal = f"# Session {name}\nSubmitted the fix; all tests pass. " + "Words of the journal. " * journal_sentences
    Site().upload(
        name,
        session_log(name),
        journal=journal if number % 5 else None,
        patch=session_patch(name) if number % 4 else None,
        agent=agent,
        category=CATEGORIES[number % len(CATEGORIES)],
        harness="claude-code",
        ended_at=ended_at,
        title=f"Fix {name}, and write down why",
        selection_id=decision if is_selected else None,
        lessons_decision_id=f"l{number}" if has_lessons else None,
    )
