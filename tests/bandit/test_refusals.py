"""What the database itself refuses, on both databases."""

import pytest
from django.db import IntegrityError, connection, transaction

from bandit.checks import ledger_is_append_only, missing_triggers
from bandit.erasure import permit
from bandit.models import Arm, ArmEvent, Bandit, Bucket, Erasure, Grader, LedgerEntry, PolicyVersion, Selection
from tests.bandit.helpers import DAY, policy, reward

pytestmark = pytest.mark.django_db


def entry(**fields):
    """A row of the ledger written past `bandit.ledger`."""
    arm = Arm.objects.resolve("category", fields.pop("arm", "code"))
    fields.setdefault("bandit", arm.bandit)
    grader, _ = Grader.objects.get_or_create(source="judge", model="", route="", rubric="")
    base = {"observation": "s1", "revision": 1, "op": "apply", "value_micro": 500_000, "effective_day": DAY}
    with transaction.atomic():
        return LedgerEntry.objects.create(**({"arm": arm, "grader": grader} | base | fields))


def test_changing_an_entry_is_refused():
    reward("s1", code=0.5)
    with pytest.raises(IntegrityError, match="append-only: add a new row"), transaction.atomic():
        LedgerEntry.objects.update(value_micro=1)


def test_deleting_an_entry_is_refused():
    reward("s1", code=0.5)
    with pytest.raises(IntegrityError, match="only an erasure"), transaction.atomic():
        LedgerEntry.objects.all().delete()


def test_an_erasure_may_delete_and_is_closed_with_its_transaction():
    reward("s1", code=0.5)
    with permit(who="olga", why="a test"):
        LedgerEntry.objects.all().delete()
    reward("s1", code=0.5)
    with pytest.raises(IntegrityError, match="only an erasure"), transaction.atomic():
        LedgerEntry.objects.all().delete()


def test_an_erasure_that_fails_undoes_everything():
    reward("s1", code=0.5)
    with pytest.raises(ZeroDivisionError), permit(who="olga", why="a test"):
        LedgerEntry.objects.filter(revision=LedgerEntry.objects.all().delete()[0] // 0).delete()
    assert LedgerEntry.objects.count() == 1
    assert not Erasure.objects.exists()


def test_an_erasure_says_who_and_why():
    with pytest.raises(ValueError, match="who asks for it and why"), permit(who="olga", why=" "):
        pass


def test_the_record_of_an_erasure_stays():
    with permit(who="olga", why="a test"):
        pass
    with pytest.raises(IntegrityError, match="never changes once it is closed"), transaction.atomic():
        Erasure.objects.update(why="another")
    with pytest.raises(IntegrityError, match="never deleted"), transaction.atomic():
        Erasure.objects.all().delete()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"revision": 2}, "reverse the revision before"),
        ({"op": "reverse"}, "a reverse repeats"),
        ({"revision": 0}, "bandit_revision_from_1"),
        ({"value_micro": 1_000_001}, "bandit_value_0_to_1"),
        ({"op": "replace"}, "bandit_op_known"),
        ({"observation": ""}, "bandit_observation_named"),
    ],
)
def test_an_impossible_entry_is_refused(fields, message):
    with pytest.raises(IntegrityError, match=message):
        entry(**fields)


@pytest.mark.parametrize("fields", [{"revision": 2}, {"revision": 3}])
def test_a_second_live_reward_is_refused(fields):
    entry()
    with pytest.raises(IntegrityError, match="reverse the revision before this one first; revisions have no gaps"):
        entry(**fields)


def test_the_same_revision_twice_is_refused():
    entry()
    with pytest.raises(IntegrityError):
        entry(value_micro=600_000)


@pytest.mark.parametrize("fields", [{"value_micro": 400_000}, {"effective_day": "2026-03-30"}])
def test_a_reverse_that_differs_from_its_apply_is_refused(fields):
    entry()
    with pytest.raises(IntegrityError, match="a reverse repeats"):
        entry(op="reverse", **fields)


def test_an_arm_of_another_bandit_is_refused():
    with pytest.raises(IntegrityError, match="belongs to another bandit"):
        entry(bandit=Bandit.objects.get(name="harness"))


@pytest.mark.parametrize("change", [{"n": -1}, {"s": 1_000_001}, {"q": 10**12 + 1}])
def test_a_bucket_that_no_rewards_could_leave_is_refused(change):
    reward("s1", code=1.0)
    with pytest.raises(IntegrityError), transaction.atomic():
        Bucket.objects.update(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"floor": 1.1}, {"evidence_scale": 9}, {"half_life_days": 0}, {"prior_strength": 0}, {"half_life_days": 200},
        {"evidence_cap": 0}, {"cost_weight": -1}, {"consumption_boost": 0.9}, {"consumption_penalty": 0},
        {"consumption_window_days": 0}, {"probation_sessions": 0}, {"salience_floor": 2}, {"holdout": 0.6},
    ],
)  # fmt: skip
def test_a_policy_out_of_range_is_refused(change):
    with pytest.raises(IntegrityError), transaction.atomic():
        policy(**change)


@pytest.mark.parametrize("rows", [PolicyVersion, ArmEvent])
def test_what_people_decided_of_a_bandit_stays_as_it_was(rows):
    ArmEvent.objects.create(arm=Arm.objects.resolve("category", "code"), act="paused", by="otto")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        rows.objects.update(by="rita")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        rows.objects.all().delete()


@pytest.mark.parametrize("change", [{"propensity": 0}, {"propensity": 1.5}, {"observation": "s1"}])
def test_an_impossible_decision_is_refused(change):
    arm = Arm.objects.resolve("category", "code")
    fields = {"bandit": arm.bandit, "decision_id": "d", "arm": arm, "propensity": 1, "created": "2026-03-31T12:00Z"}
    with pytest.raises(IntegrityError), transaction.atomic():
        Selection.objects.create(**(fields | change))


def test_an_arm_with_a_record_cannot_be_deleted():
    """I57, an agent deleted arms while tidying: impossible. An arm with a record is retired; the database refuses to
    delete it.
    """
    reward("s1", code=0.5)
    with pytest.raises(IntegrityError):
        Arm.objects.resolve("category", "code").delete()


def test_a_lost_trigger_is_found():
    assert ledger_is_append_only(None, databases=["default"]) == []
    on = " ON bandit_ledgerentry" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER bandit_ledgerentry_no_delete{on}")
    (error,) = ledger_is_append_only(None, databases=["default"])
    assert "trigger bandit_ledgerentry_no_delete is missing" in error.msg


def test_every_append_only_table_is_guarded_after_all_migrations():
    tables = ["bandit_ledgerentry", "grading_evidence", "grading_grade", "grading_settlement", "grading_judgepolicy"]
    tables += ["grading_abstentiondraw", "grading_auditevent"]
    assert missing_triggers(tables) == []


def test_a_second_live_reward_is_refused_where_one_arm_was_chosen():
    reward("s1", code=0.5)
    with pytest.raises(IntegrityError, match="another arm of this bandit has a live reward of this observation"):
        entry(arm="infra")
    reward("s1")
    entry(arm="infra")
