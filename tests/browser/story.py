"""A small day for the browser: judged, read, provisional, ungraded, dead sessions, an outage, an alarm, an attack."""

import datetime as dt
import io
import json

from django.db import transaction
from django.utils import timezone

from bandit.selection import complete, select
from grading.evidence import store
from grading.judging.core.verdict_score import VERSION
from grading.models import Evidence, Session
from grading.models.evidence import EvidenceKind
from grading.models.quota import QuotaState
from grading.review import queue
from grading.reward import rewards
from grading.vocabulary import Outcome, Reason, Source
from tests.casts import quota as quota_cast
from tests.site import Site

ATTACK = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"
GRADER = {"model": "claude-sonnet-5-5", "route": "api.anthropic.com", "rubric": "4e1c" * 16, "version": VERSION}
UNSEEN = "A question, answered"
TERMS = [
    {"kind": "idea", "count": 3, "diminishing": 1.0, "weight": 0.4, "adds": 0.4},
    {"kind": "engagement", "count": 1, "diminishing": 0.5, "weight": 0.2, "adds": 0.1},
    {"kind": "showed-up", "count": 1, "diminishing": 1.0, "weight": 0.1, "adds": 0.1},
]


def tell() -> Session:
    """Fill the database; gives the session that waits for a correction, with hostile evidence in it."""
    now = timezone.now()
    for number in range(24):
        _judged(now, number)
    _died(now)
    _unseen(now)
    quota_cast.quota(
        QuotaState.EXHAUSTED, until=now + dt.timedelta(hours=4), changed_at=now - dt.timedelta(hours=7),
        detail="You have reached your specified API usage limits.",
    )  # fmt: skip
    for number in (1, 2):
        _contradicted(now, number)
    return _contradicted(now, 0)


def _judged(now: dt.datetime, number: int) -> None:
    category = ("code", "infra", "triage", "news", "research", "content")[number % 6]
    ended = now - dt.timedelta(hours=9 + 11 * number)
    decision = select(bandit="category", decision_id=f"d-{number}", supply=None, override=category, now=ended)
    session = (
        Site()
        .session(
            category=category,
            harness=("claude-code", "gptme", "codex")[number % 3],
            ended_at=ended,
            selection=decision,
            started_at=ended - dt.timedelta(minutes=34),
            title=f"Task {number} of the backlog",
            model="claude-sonnet-5-5",
        )
        .session
    )
    complete(decision, observation=session.observation, executed_arm=category, now=ended)
    Site().on(session).graded(Source.TRAJECTORY, 0.3 + number % 5 / 10, detail="2 commits, 1 of 9 calls failed")
    if number % 4:
        Site().on(session).graded(Source.JUDGE, 0.4 + number % 6 / 10, detail="Solid, tests pass.", **GRADER)
    if category == "news":
        Site().on(session).graded(Source.CONSUMPTION, 0.6, detail="3 ideas, 1 post", evidence={"terms": TERMS})
    settled(session)


def _died(now: dt.datetime) -> None:
    settled(
        Site().session(ended_at=now, outcome=Outcome.INFRASTRUCTURE, outcome_reason="the login had expired").session
    )


def _unseen(now: dt.datetime) -> None:
    session = Site().session(ended_at=now, category="research", title=UNSEEN).session
    receive(session, EvidenceKind.TRANSCRIPT, transcript(session), "conversation.jsonl")
    why = "12 tool calls, none with a visible result"
    Site().on(session).graded(Source.TRAJECTORY, None, Reason.NOTHING_OBSERVABLE, detail=why)
    Site().on(session).with_judge_job()
    settled(session)


def _contradicted(now: dt.datetime, number: int) -> Session:
    """Seed 001's session: a pull request exists, yet only the journal graded it."""
    session = (
        Site()
        .session(
            title=ATTACK if number == 0 else "Add a retry guard", ended_at=now - dt.timedelta(hours=number, minutes=1)
        )
        .session
    )
    receive(session, EvidenceKind.TRANSCRIPT, transcript(session), "conversation.jsonl")
    receive(session, EvidenceKind.JOURNAL, f"Submitted PR #{619 + number}.\n{ATTACK}".encode())
    receive(session, EvidenceKind.PATCH, f"+++ b/hook_{number}.py\n-old\n+new {ATTACK} {'long ' * 80}\n".encode())
    Site().on(session).graded(Source.TRAJECTORY, None, Reason.STUB_NO_TOOL_CALLS)
    Site().on(session).graded(Source.JUDGE, None, Reason.QUOTA_EXHAUSTED)
    Site().on(session).graded(Source.JOURNAL, 0.32, detail="“Submitted PR” found in the journal")
    Site().on(session).with_pull_request()
    Site().on(session).with_judge_job(reason=Reason.QUOTA_EXHAUSTED)
    settled(session)
    return session


def transcript(session: Session) -> bytes:
    task = f"Submit the guard of {session.external_id}. {ATTACK}"
    lines = [{"role": "user", "content": task, "timestamp": "2026-03-31T13:46:00"}]
    lines += [
        {"role": "assistant", "content": f"Step {n} {'wide' * 60}", "timestamp": "2026-03-31T13:47:00"}
        for n in range(130)
    ]
    return "\n".join(json.dumps(line) for line in lines).encode()


def receive(session: Session, kind: EvidenceKind, data: bytes, filename: str = "") -> None:
    stored = store.store(io.BytesIO(data))
    Evidence.objects.create(session=session, kind=kind, sha256=stored.sha256, size=stored.size, filename=filename)


def settled(session: Session) -> None:
    with transaction.atomic():
        rewards.settle(session)
        queue.recheck(session)
