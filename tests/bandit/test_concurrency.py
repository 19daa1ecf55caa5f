"""Eight writers at once, a fifth of what they send delivered again: every sum exact (L4, I58)."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.db import connection, transaction
from django.db.models import Sum

from bandit import audit, ledger
from bandit.arms import add
from bandit.core.table import MOMENTS
from bandit.ledger import Credit, GraderKey
from bandit.merging import merge
from bandit.models import Arm, Bucket, LedgerEntry, Selection
from bandit.selection import complete, select
from tests.bandit.helpers import DAY, buckets, reward

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
    """I58, a valid file and a lost update: impossible. Sums move in the database, each in its own row; eight writers at
    once lose nothing.
    """
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
    assert ledger.live_entries("category", ["s1"]).count() == 1
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


def test_concurrent_sessions_of_several_bandits_with_lessons_and_costs_are_exact():
    """A session credits a category, a harness, two lessons; a fifth come twice, and some are corrected at once."""
    lessons = [make_lesson(name) for name in ("read-the-diff", "small-steps")]
    dice = random.Random(2)
    first = [(f"s{i}", dice.randrange(1_000_001), dice.choice([None, dice.randrange(10**6)])) for i in range(40)]
    jobs = first + dice.sample(first, 8)
    dice.shuffle(jobs)

    def give(job):
        observation, micro, cost = job
        for bandit, arms in (("category", ["code"]), ("harness", ["codex"]), ("lesson", lessons)):
            give_all(bandit, observation, arms, micro, cost)

    at_once(give, jobs)
    known = [cost for _, _, cost in first if cost is not None]
    micros = [micro for _, micro, _ in first]
    expected = (40, sum(micros), sum(micro**2 for micro in micros), sum(known), len(known))
    for bandit, arms in (("category", ["code"]), ("harness", ["codex"]), ("lesson", lessons)):
        for arm in arms:
            rows = Bucket.objects.filter(bandit__name=bandit, arm__name=arm)
            assert tuple(rows.aggregate(**{name: Sum(name) for name in MOMENTS}).values()) == expected
    assert LedgerEntry.objects.count() == 4 * len(first)
    assert audit.audit() == []


def test_concurrent_decisions_with_their_completions_close_once_each():
    """Ask, finish, be paid, with every fifth call of each made again."""
    dice = random.Random(3)
    names = [f"d{i}" for i in range(24)]
    jobs = names + dice.sample(names, 5)

    def work(name):
        made = select(bandit="category", decision_id=name, supply={"code": 1, "infra": 1}, now=NOW)
        complete(made, observation=f"for-{name}", executed_arm=made.arm.name, now=NOW)
        reward(f"for-{name}", **{made.arm.name: 0.5})

    at_once(work, jobs)
    closed = list(Selection.objects.values_list("decision_id", "observation", "arm", "executed_arm"))
    assert sorted(name for name, *_ in closed) == sorted(names)
    assert all(observation == f"for-{name}" and arm == ran for name, observation, arm, ran in closed)
    assert sum(row[4] for row in buckets()) == len(names)
    assert audit.audit() == []


def test_a_merge_amid_rewards_loses_none():
    news, social = (Arm.objects.get(name=name) for name in ("news", "social"))
    for i in range(20):
        reward(f"before-{i}", news=0.5)

    def work(i):
        if i == 0:
            merge(news, social, by="otto")
        reward(f"at-once-{i}", news=0.25)

    at_once(work, list(range(32)))
    assert [(row[0], row[4], row[5]) for row in buckets()] == [("social", 52, 20 * 500_000 + 32 * 250_000)]
    assert audit.audit() == []


def make_lesson(name):
    return add("lesson", name, by="otto").name


def give_all(bandit, observation, arms, micro, cost):
    usd = None if cost is None else cost / 1e6
    made = Credit(value=micro / 1e6, grader=GraderKey(source="judge"), cost_usd=usd)
    with transaction.atomic():
        ledger.set_credits(
            {bandit: dict.fromkeys(arms, made)},
            observation=observation,
            effective_day=DAY,
            settlement="s",
            policy_version="test",
        )
