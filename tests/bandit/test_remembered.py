"""A reading is remembered while the bandit's revision stands, no longer: bit for bit what reading afresh says."""

import random
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from bandit import audit, ledger, reading, versions
from bandit.core.machine_human import Offset
from bandit.erasure import permit
from bandit.models import Arm, Bandit, Bucket, PolicyVersion
from bandit.reading import outlook, policy_of, posterior_of, rows_of, site_day
from bandit.selection import select
from tests.bandit.helpers import DAY, reward
from tests.bandit.test_concurrency import at_once

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def afresh(name="category", now=NOW):
    """As `posterior_of`, from the database alone."""
    row, today = Bandit.objects.named(name), site_day(now)
    policy = policy_of(row)
    return outlook(row, policy, rows_of(row, policy, today), today)


def says_the_same(name="category", now=NOW):
    held, fresh = posterior_of(name, now), afresh(name, now)
    return (held.posterior.version, held.chances) == (fresh.posterior.version, fresh.chances)


@pytest.mark.django_db
class TestWhatIsRemembered:
    def test_a_second_reading_asks_for_no_buckets(self):
        reward("s1", code=0.5)
        first = posterior_of("category", NOW)
        with CaptureQueriesContext(connection) as captured:
            assert posterior_of("category", NOW).posterior is first.posterior
        assert not [query["sql"] for query in captured if 'FROM "bandit_bucket"' in query["sql"]]

    def test_every_change_is_seen_at_once(self):
        category = Bandit.objects.get(name="category")
        offset = Offset(arm="code", source="judge", stratum="", offset=0.2, pairs=20, low=0.1, high=0.3)

        def erase():
            with permit(who="olga", why="asked to be forgotten") as counts:
                ledger.erase(["s2"], counts)

        def spoil_and_replay():
            Bucket.objects.filter(arm__name="code").update(s=0, q=0)
            audit.replay(write=True)

        changes = [
            lambda: reward("s1", code=0.9),
            lambda: reward("s2", infra=0.3),
            lambda: reward("s1", code=0.2, source="human"),
            lambda: reward("s1"),
            lambda: reward("s3", code=0.8),
            erase,
            spoil_and_replay,
            lambda: PolicyVersion.objects.create(bandit=category, version=7, half_life_days=3, by="olga"),
            lambda: versions.set_calibration("category", None, [offset], version=2, by="olga"),
            lambda: versions.switch_off_calibration("category", version=3, by="olga"),
            lambda: Arm.objects.create(bandit=category, name="brand-new"),
            lambda: Arm.objects.filter(name="code").update(paused=True),
        ]
        seen = set()
        for change in changes:
            change()
            assert says_the_same()
            held = posterior_of("category", NOW)
            seen.add((held.posterior.version, *held.chances))
        assert len(seen) == len(changes) - 1  # the replay leads back to what was before

    def test_the_next_day_is_another_reading(self):
        reward("s1", code=0.9)
        versions = [posterior_of("category", NOW + timedelta(days=days)).posterior.version for days in range(3)]
        assert len(set(versions)) == 3
        assert says_the_same(now=NOW + timedelta(days=2))

    def test_a_decision_rests_on_what_was_remembered_and_on_nothing_older(self):
        reward("s1", code=0.9)
        posterior_of("category", NOW)
        reward("s1", code=0.1, source="human")
        decision = select(bandit="category", decision_id="d1", supply=None, now=NOW)
        assert decision.posterior_version == afresh().posterior.version

    def test_what_was_rolled_back_says_nothing_of_what_came_instead(self):
        """Another reward takes the place of one that was read and then rolled back."""
        reward("s0", code=0.5)
        before = posterior_of("category", NOW).posterior.version
        with transaction.atomic():
            reward("s1", code=0.9)
            gone = posterior_of("category", NOW).posterior.version
            transaction.set_rollback(True)
        assert posterior_of("category", NOW).posterior.version == before
        reward("s1", code=0.1)
        assert posterior_of("category", NOW).posterior.version not in {before, gone}
        assert says_the_same()

    def test_a_bandit_that_was_never_written_to_is_not_remembered(self):
        assert Bandit.objects.get(name="category").revision == 0
        posterior_of("category", NOW)
        Bucket.objects.create(
            bandit=Bandit.objects.get(name="category"),
            arm=Arm.objects.get(bandit__name="category", name="code"),
            grader=ledger.Grader.objects.create(source="judge"),
            effective_day=DAY,
            n=1,
        )
        assert says_the_same()

    def test_only_so_many_readings_are_remembered(self):
        reward("s1", code=0.9)
        for days in range(2 * reading.CACHED_READINGS):
            posterior_of("category", NOW + timedelta(days=days))
        assert reading._read.cache_info().currsize == reading.CACHED_READINGS

    def test_nobody_can_spoil_what_is_remembered(self):
        reward("s1", code=0.9)
        row = Bandit.objects.named("category")
        held = reading.read(row, policy_of(row), ["code", "infra"], date(2026, 3, 31)).posterior
        held.chance_of_best(["code", "infra"])["code"] = 7.0
        assert held.chance_of_best(["infra", "code"])["code"] < 1


@pytest.mark.django_db(transaction=True)
def test_readers_and_writers_at_once_never_see_an_old_posterior():
    """Eight threads correct rewards, roll some back, and read under the bandit's lock: each reading is the latest."""
    dice = random.Random(3)
    jobs = [(f"s{dice.randrange(6)}", dice.randrange(101) / 100, dice.random() < 0.3) for _ in range(48)]

    def work(job):
        observation, value, fails = job
        with transaction.atomic():
            Bandit.objects.locked("category")
            reward(observation, code=value)
            sound = says_the_same()
            transaction.set_rollback(fails)
        with transaction.atomic():
            Bandit.objects.locked("category")
            return sound and says_the_same()

    assert all(at_once(work, jobs))
    assert says_the_same()
