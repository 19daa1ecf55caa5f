"""What a grader's key says of a reward: kept apart in the ledger, and read by nothing yet."""

from datetime import timedelta

import pytest
from django.db import transaction

from bandit import audit, ledger
from bandit.ledger import GraderKey
from bandit.models import Bandit, Bucket, Grader, LedgerEntry
from bandit.reading import BanditReading, policy_of, read, rows_of
from bandit.whatif import row_of_entry
from tests.bandit.helpers import DAY, credit

SAID = {"version": "trajectory/2", "view": "full log", "witness": "hook", "standing": "plain", "agent": "bob"}
pytestmark = pytest.mark.django_db


def category():
    return Bandit.objects.get(name="category")


def give(observation, value=0.5, *, day=DAY, renew=False, source="journal", **key):
    with transaction.atomic():
        return ledger.set_credits(
            {"category": {"code": credit(value, source, **key)}},
            observation=observation,
            effective_day=day,
            settlement="s",
            policy_version="test",
            renew=renew,
        )


def posterior():
    bandit = category()
    arms = list(bandit.arms.values_list("name", flat=True))
    found = read(bandit, policy_of(bandit), arms, DAY + timedelta(days=1))
    assert isinstance(found, BanditReading)
    return found.posterior.alpha.tobytes() + found.posterior.beta.tobytes()


@pytest.mark.parametrize("name", SAID)
def test_two_rewards_that_differ_in_what_is_said_of_them_share_no_bucket(name):
    give("s1", **SAID)
    give("s2", **SAID)
    assert Bucket.objects.count() == 1
    give("s3", **SAID | {name: "other"})
    assert sorted(Bucket.objects.values_list("n", f"grader__{name}")) == [(1, "other"), (2, SAID[name])]


def test_a_row_says_all_of_it_from_either_table():
    entry = give("s1", **SAID).applied[0]
    now, then = (list(rows_of(category(), policy_of(category()), DAY, known)) for known in (None, entry.recorded_at))
    assert now == then == [row_of_entry(entry, sign=1)]
    assert {name: getattr(now[0], name) for name in SAID} == SAID
    assert str(entry.grader) == "journal trajectory/2 full log hook plain bob"


def test_how_rewards_are_told_apart_moves_no_bit(monkeypatch):
    """Each sum is moved by its offset, and clipped, as one: however many agents and views it came from."""
    from bandit.core.machine_human import Offset
    from bandit.versions import set_calibration

    offset = Offset(arm="code", source="journal", stratum="", offset=-0.4, pairs=20, low=-0.5, high=-0.3)
    set_calibration("category", None, [offset], version=2, by="otto")
    values = (0.1, 0.2, 0.9, 0.3)
    for n, value in enumerate(values):
        give(f"s{n}", value)
    together = posterior()
    for n, value in enumerate(values):
        give(f"s{n}", value, renew=True, **SAID | {"agent": f"agent-{n}", "view": f"view {n}"})
    assert Bucket.objects.filter(n__gt=0).count() == len(values)
    assert posterior() == together


def test_a_reward_from_before_stays_as_it_is_until_it_is_renewed():
    give("s1", model="m")
    assert not give("s1", model="m", **SAID)
    assert LedgerEntry.objects.count() == 1
    before = posterior()
    change = give("s1", model="m", renew=True, **SAID)
    assert [len(change.reversed), len(change.applied)] == [1, 1]
    assert posterior() == before
    assert not give("s1", model="m", renew=True, **SAID)
    assert audit.audit() == []


def test_a_reward_from_before_that_changes_is_given_under_its_full_key():
    give("s1", 0.5)
    give("s1", 0.6, **SAID)
    assert ledger.live_entries("category", ["s1"]).get().grader.agent == "bob"


def test_a_reward_of_another_view_replaces_the_one_that_said_its_own():
    give("s1", **SAID)
    assert give("s1", **SAID | {"view": "part of it"})


def test_a_key_and_a_grader_name_the_same():
    assert {field.name for field in Grader._meta.concrete_fields} - {"id"} == set(GraderKey.__slots__)


def test_an_abstention_has_no_value():
    with pytest.raises(ValueError, match="an abstention has no value"):
        credit(0.5, "unscored")
