"""The ledger added up again: compared with the buckets, and put in place of them."""

from datetime import timedelta

import pytest

from bandit import audit, ledger
from bandit.erasure import permit
from bandit.models import Bandit, BanditKind, Bucket, Erasure, LedgerEntry
from tests.bandit.helpers import DAY, buckets, credit, reward

pytestmark = pytest.mark.django_db


def history():
    """Rewards of two bandits, one of them corrected; five rows, and a bucket that is empty again."""
    reward("s1", code=0.5)
    reward("s2", day=DAY - timedelta(days=1), code=0.25)
    reward("s3", day=DAY - timedelta(days=1), infra=0.75)
    reward("s1", infra=0.9, source="human")
    reward("s1", bandit="harness", gptme=0.4)


def test_a_replay_of_sound_buckets_finds_nothing():
    history()
    found = audit.replay()
    assert (found.rows, found.buckets, found.differences) == (6, 4, ())


@pytest.mark.parametrize("rows", [1, 2, 200_000])
def test_a_replay_puts_every_bucket_back_bit_for_bit(monkeypatch, rows):
    """However many rows are added up at once; the first read ends among ours, wherever the sequence stands."""
    history()
    monkeypatch.setattr(audit, "SUMMED_ROWS", LedgerEntry.objects.earliest("pk").pk - 1 + rows)
    before = buckets(), buckets("harness")
    Bucket.objects.filter(arm__name="code").delete()
    Bucket.objects.filter(arm__name="gptme").update(n=7, cost=5, costed=1)
    Bucket.objects.filter(arm__name="infra", grader__source="human").update(effective_day=DAY - timedelta(days=9))
    assert len(audit.replay(write=True).differences) == 4
    assert (buckets(), buckets("harness")) == before
    assert audit.audit() == []


def test_a_replay_starts_again_after_an_erasure_and_keeps_what_it_has_written():
    history()
    wrong = Bucket.objects.filter(bandit__name="category", n__gt=0).update(q=0)
    steps = []

    def erase_meanwhile(rows: int) -> None:
        """When the rows that came since are added to the first bandit, whose buckets are replaced right after."""
        steps.append(rows)
        if len(steps) == 2:
            Erasure.objects.create(who="olga", why="asked")

    assert len(audit.replay(write=True, step=erase_meanwhile).differences) == wrong > 0
    assert len(steps) > 1 + Bandit.objects.count(), "it started again"
    assert audit.audit() == []


def test_a_replay_without_write_changes_nothing():
    history()
    Bucket.objects.update(q=0)
    held = buckets()
    assert audit.replay().differences
    assert buckets() == held


def test_a_difference_says_where_it_is_and_both_sums():
    reward("s1", code=0.5)
    Bucket.objects.update(n=2)
    (difference,) = audit.audit()
    assert str(difference) == (
        "category/code, judge, 2026-03-31: the ledger says n, s, q, cost, costed, productive = "
        "(1, 500000, 250000000000, 0, 0, 0), the bucket says (2, 500000, 250000000000, 0, 0, 0)"
    )


def test_costs_are_added_up_where_they_are_known():
    dear = ledger.Credit(value=0.5, grader=credit(0.5).grader, cost_usd=1.25)
    for observation, given in {"s1": dear, "s2": credit(0.5), "s3": dear}.items():
        ledger.set_credits(
            {"category": {"code": given}},
            observation=observation,
            effective_day=DAY,
            settlement="s",
            policy_version="test",
        )
    Bucket.objects.update(cost=0, costed=0)
    (difference,) = audit.replay(write=True).differences
    assert difference.expected == (3, 1_500_000, 750_000_000_000, 2_500_000, 2, 0)
    assert Bucket.objects.get().cost == 2_500_000


def test_a_lost_bucket_is_found_and_one_that_nothing_is_in_is_no_difference():
    history()
    Bucket.objects.filter(n=0).delete()
    assert audit.audit() == []
    Bucket.objects.filter(arm__name="gptme").delete()
    assert [each.stored for each in audit.audit()] == [audit.NOTHING]


def test_what_was_read_before_a_replay_wrote_holds_no_more():
    history()
    revision = Bandit.objects.get(name="category").revision
    audit.replay(write=True)
    assert Bandit.objects.get(name="category").revision == revision
    Bucket.objects.filter(arm__name="infra").update(s=0, q=0)
    audit.replay(write=True)
    assert Bandit.objects.get(name="category").revision != revision


def test_rewards_that_come_in_meanwhile_are_counted():
    history()
    late = iter(["s8", "s9"])

    def meanwhile(_rows):
        for observation in late:
            reward(observation, news=0.5)

    found = audit.replay(step=meanwhile)
    assert (found.rows, found.differences) == (8, ())


def test_an_erasure_meanwhile_starts_it_again():
    """What had been added up of the erased session is no reward any more."""
    history()
    told = []

    def meanwhile(rows):
        told.append(rows)
        if len(told) == 1:
            with permit(who="olga", why="asked to be forgotten") as counts:
                ledger.erase(["s1"], counts)

    found = audit.replay(write=True, step=meanwhile)
    assert (found.rows, found.differences) == (2, ())
    assert told[0] == 6


@pytest.fixture
def counted_twice():
    """As a site of before may have it: the correction of a merged session was undone, then the arms were parted."""
    reward("s2", news=0.5)
    reward("s1", bandit="harness", gptme=0.5)
    Bandit.objects.filter(name="category").update(kind=BanditKind.MANY)
    reward("s1", code=0.5)
    reward("s1", code=0.5, infra=0.5)
    Bandit.objects.filter(name="category").update(kind=BanditKind.CHOICE)


@pytest.mark.usefixtures("counted_twice")
def test_an_observation_that_counts_twice_is_found_though_every_bucket_is_right():
    assert audit.audit() == []
    assert [str(each) for each in audit.doubled()] == ["category: s1 has 2 live rewards: code 0.500, infra 0.500"]


@pytest.mark.usefixtures("counted_twice")
def test_of_several_rewards_the_latest_stays():
    assert audit.undouble() == 1
    assert audit.doubled() == []
    assert audit.audit() == []
    assert ledger.live_entries("category", ["s1"]).get().arm.name == "infra"
    assert audit.undouble() == 0
