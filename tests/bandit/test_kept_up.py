"""Buckets that a process remembers are kept up with the ledger: bit for bit what reading all of them says."""

import random
from datetime import date, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from bandit import audit, buckets, ledger
from bandit.erasure import permit
from bandit.models import Arm, Bandit, Bucket, LedgerEntry
from tests.bandit.helpers import DAY, reward

ALWAYS = (date(2000, 1, 1), date(2100, 1, 1))


def category():
    return Bandit.objects.get(name="category")


def said():
    """What is kept up, as rows and counts, in an order of its own."""
    bandit = category()
    rows = buckets.rows(bandit, ALWAYS, with_abstentions=True)
    return sorted(map(repr, rows)), buckets.productive(bandit, ALWAYS)


def afresh():
    buckets.forget()
    return said()


@pytest.mark.django_db
class TestKeptUp:
    def test_any_changes_give_what_reading_all_gives(self):
        dice = random.Random(5)
        for number in range(60):
            for _ in range(dice.randrange(1, 4)):
                arms = {dice.choice(["code", "infra", "news"]): dice.random()} if dice.random() < 0.85 else {}
                source = dice.choice(["judge", "human", "trajectory"])
                day = DAY - timedelta(days=dice.randrange(4))
                reward(f"s{dice.randrange(12)}", source=source, day=day, **arms)
            kept = said()
            assert kept == afresh(), number

    def test_after_a_reward_only_its_buckets_are_read(self):
        for number in range(5):
            reward(f"s{number}", code=0.1 * number, day=DAY - timedelta(days=number))
        buckets.columns(category())
        reward("s9", code=0.9)
        with CaptureQueriesContext(connection) as captured:
            kept = buckets.columns(category())
        (read,) = (query["sql"] for query in captured if 'FROM "bandit_bucket"' in query["sql"])
        assert "effective_day" in read.partition("WHERE")[2]
        assert len(kept.keys) == 5

    def test_nothing_is_kept_that_was_erased_or_put_right(self):
        reward("s1", code=0.9)
        reward("s2", code=0.3)
        before = said()
        with permit(who="olga", why="asked to be forgotten") as counts:
            ledger.erase(["s1"], counts)
        reward("s3", infra=0.4)
        assert said() == afresh() != before
        Bucket.objects.filter(arm__name="code").update(s=0, q=0)
        audit.replay(write=True)
        reward("s4", infra=0.4)
        assert said() == afresh()

    def test_nothing_is_kept_of_what_was_rolled_back(self):
        reward("s1", code=0.9)
        said()
        with transaction.atomic():
            reward("s2", code=0.1)
            reward("s3", code=0.2)
            said()
            transaction.set_rollback(True)
        reward("s4", code=0.7)
        reward("s5", infra=0.7)
        assert LedgerEntry.objects.count() == 3
        assert said() == afresh()

    def test_a_new_name_of_an_arm_is_seen(self):
        reward("s1", code=0.9)
        said()
        Arm.objects.filter(name="code").update(name="coding")
        ledger.touch(category())
        rows = buckets.rows(category(), ALWAYS, with_abstentions=True)
        assert {kind.arm for kind in rows.kinds} == {"coding"}

    def test_productive_are_those_above_a_half(self):
        for number, value in enumerate((0.5, 0.500001, 0.9, 0.0)):
            reward(f"s{number}", code=value)
        reward("s2", infra=1.0)
        assert buckets.productive(category(), ALWAYS) == {"code": 1, "infra": 1}
        assert audit.audit() == []
