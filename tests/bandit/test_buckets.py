"""Buckets and the ledger come to the same columns, bit for bit, whatever happened."""

import random
from datetime import date, timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from bandit import audit, buckets, ledger
from bandit.buckets import KEY, RewardSums, signed_sums
from bandit.core.table import ABSTAINED
from bandit.erasure import permit
from bandit.models import Arm, Bandit, Bucket, LedgerEntry
from tests.bandit.helpers import DAY, reward

ALWAYS = (date(2000, 1, 1), date(2100, 1, 1))


def category():
    return Bandit.objects.get(name="category")


def described(sums):
    rows = [repr(row) for row in sums.rows(with_abstentions=True) if row.n]
    return sorted(rows), sums.productive, sums.abstentions


def from_buckets():
    return described(buckets.read_sums(category(), ALWAYS))


def from_ledger():
    entries = LedgerEntry.objects.filter(bandit=category(), recorded_at__lte=timezone.now()).order_by()
    return described(RewardSums.from_values(category(), entries.values_list(*KEY).annotate(**signed_sums())))


@pytest.mark.django_db
class TestBuckets:
    def test_any_changes_leave_what_the_ledger_says(self):
        dice = random.Random(5)
        for number in range(60):
            for _ in range(dice.randrange(1, 4)):
                source = dice.choice(["judge", "human", "trajectory", ABSTAINED])
                value = 0.0 if source == ABSTAINED else dice.random()
                arms = {dice.choice(["code", "infra", "news"]): value} if dice.random() < 0.85 else {}
                day = DAY - timedelta(days=dice.randrange(4))
                reward(f"s{dice.randrange(12)}", source=source, day=day, **arms)
            assert from_buckets() == from_ledger(), number
        assert audit.audit() == []

    def test_erased_repaired_and_rolled_back_rewards_do_not_count(self):
        reward("s1", code=0.9)
        reward("s2", code=0.3)
        before = from_buckets()
        with permit(who="olga", why="asked to be forgotten") as counts:
            ledger.erase(["s1"], counts)
        reward("s3", infra=0.4)
        assert from_buckets() == from_ledger() != before
        Bucket.objects.filter(arm__name="code").update(s=0, q=0)
        audit.replay(write=True)
        assert from_buckets() == from_ledger()
        with transaction.atomic():
            reward("s4", code=0.1)
            transaction.set_rollback(True)
        reward("s5", code=0.7)
        assert LedgerEntry.objects.count() == 3
        assert from_buckets() == from_ledger()

    def test_arms_have_the_names_they_have_now(self):
        reward("s1", code=0.9)
        Arm.objects.filter(name="code").update(name="coding")
        rows = buckets.read_sums(category(), ALWAYS).rows(with_abstentions=True)
        assert {kind.arm for kind in rows.kinds} == {"coding"}

    def test_productive_rewards_are_those_above_a_half(self):
        for number, value in enumerate((0.5, 0.500001, 0.9, 0.0)):
            reward(f"s{number}", code=value)
        reward("s2", infra=1.0)
        assert buckets.read_sums(category(), ALWAYS).productive == {"code": 1, "infra": 1}

    def test_abstentions_are_counted_and_only_read_where_they_are_asked_for(self):
        reward("s1", code=0.0, source=ABSTAINED)
        reward("s2", code=0.4)
        sums = buckets.read_sums(category(), ALWAYS)
        assert (sums.abstentions, sums.productive) == ({"code": 1}, {})
        assert [row.n for row in sums.rows(with_abstentions=False)] == [1]
        assert len(list(sums.rows(with_abstentions=True))) == 2

    def test_only_these_days_are_read(self):
        reward("s1", code=0.9)
        reward("s2", code=0.8, day=DAY - timedelta(days=1))
        assert len(buckets.read_sums(category(), (DAY, DAY)).keys) == 1
