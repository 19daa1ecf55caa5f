"""Eight writers at once, a fifth of what they send delivered again: every sum exact (L4, N12, I58)."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.db import connection

from bandit import audit, ledger
from bandit.models import LedgerEntry, Selection
from bandit.selection import select
from tests.bandit.helpers import buckets, reward

WRITERS = 8
NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(work, jobs):
    """Run `work(job)` in eight threads that start together, each on a connection of its own; their results."""
    start = threading.Barrier(WRITERS)

    def run(share):
        start.wait()
        try:
            return [work(job) for job in share]
        finally:
            connection.close()

    with ThreadPoolExecutor(WRITERS) as pool:
        return [result for share in pool.map(run, [jobs[i::WRITERS] for i in range(WRITERS)]) for result in share]


def test_concurrent_writers_with_redelivery_are_exact():
    dice = random.Random(1)
    first = [(f"s{i}", dice.choice(["code", "infra"]), dice.randrange(1_000_001) / 1e6) for i in range(80)]
    jobs = first + dice.sample(first, 16)
    dice.shuffle(jobs)
    at_once(lambda job: reward(job[0], **{job[1]: job[2]}), jobs)
    assert LedgerEntry.objects.count() == len(first)
    for arm in ("code", "infra"):
        micros = [round(value * 1e6) for _, name, value in first if name == arm]
        assert [row[4:] for row in buckets() if row[0] == arm] == [
            (len(micros), sum(micros), sum(micro**2 for micro in micros))
        ]
    assert audit.audit() == []


def test_concurrent_corrections_of_one_session_leave_one_live_reward():
    arms = ["code", "infra", "news", "social"]
    at_once(lambda i: reward("s1", **{arms[i % 4]: i / 100}), list(range(32)))
    assert ledger.live_entries("category", "s1").count() == 1
    assert sum(row[4] for row in buckets()) == 1
    assert audit.audit() == []


def test_concurrent_retries_of_a_decision_get_one_answer():
    chosen = at_once(
        lambda _: select(bandit="category", decision_id="d1", supply=None, now=NOW).pk, list(range(WRITERS))
    )
    assert len(set(chosen)) == 1
    assert Selection.objects.count() == 1


def test_concurrent_decisions_share_the_two_consumption_slots():
    supply = {"news": 5, "code": 5}
    at_once(lambda i: select(bandit="category", decision_id=f"d{i}", supply=supply, now=NOW), list(range(5 * WRITERS)))
    assert Selection.objects.filter(arm__name="news").count() == 2
