"""What the tests of the review desk share: sessions that wait in the queue, as rules and chance would have put them."""

import datetime as dt

from django.db.models import F
from django.utils import timezone

from grading.models import ReviewItem, Session
from grading.models.review import QueueEntry
from grading.vocabulary import Source
from tests.site import Site

site = Site()

ARMS = ("cross-repo", "code", "infra", "news", "triage", "research")


def judged(value: float = 0.62, **fields) -> Session:
    """A session that a judge and its trajectory have graded."""
    return (
        site.session(**fields)
        .graded(Source.TRAJECTORY, 0.41, detail="2 commits, 1 of 9 calls failed")
        .judged(
            value,
            detail="A sealed verdict.",
            model="claude-sonnet-5-5",
            rubric="4e1c",
            evidence={
                "rationale": "A focused fix, tests pass [3].",
                "citations": [3, 5],
                "dimensions": {"execution": value},
            },
        )
        .settle()
    )


def by_journal(value: float = 0.32, **fields) -> Session:
    """A session that only its journal has graded, provisionally."""
    return (
        site.session(**fields)
        .graded(Source.JOURNAL, value, detail="“Submitted PR” found in the journal")
        .with_judge_job()
        .settle()
    )


def waits(session: Session, entered_as: QueueEntry = QueueEntry.SLICE, **fields) -> ReviewItem:
    """The session in the queue."""
    return site.on(session).in_queue(entered_as, **fields).item


def queue_of(number: int, *, value: float = 0.32) -> list[Session]:
    """So many sessions, each of another impact, in the order in which they come."""
    now = timezone.now()
    made = []
    for index in range(number):
        ended = now - dt.timedelta(minutes=17 * index + 5)
        session = by_journal(
            value, category=ARMS[index % len(ARMS)], ended_at=ended, title=f"Task {index} of the queue"
        )
        entry = QueueEntry.RULE if index < number // 2 else QueueEntry.SLICE
        waits(session, entry, impact=float(number - index), entered_at=ended, why="1 pull request, yet no real grade")
        made.append(session)
    return made


def claims_run_out() -> None:
    """As if five minutes had passed for everybody who holds something."""
    ReviewItem.objects.exclude(claim="").update(claimed_until=F("claimed_until") - dt.timedelta(minutes=6))
