"""Whatever is done to an arm leaves an event, and no act takes evidence away (I57, I114)."""

from datetime import UTC, datetime

import pytest

from bandit import arms
from bandit.models import Arm, ArmAlias, ArmEvent, Bandit, UnknownArm
from bandit.reading import posterior_of
from tests.bandit.helpers import reward

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)


def arm(name, bandit="category"):
    return Arm.objects.get(bandit__name=bandit, name=name)


def revision():
    return Bandit.objects.get(name="category").revision


def events():
    return list(ArmEvent.objects.order_by("pk").values_list("arm__name", "act", "by", "why"))


def test_a_new_arm_has_a_canonical_name_and_an_event():
    before = revision()
    made = arms.add("category", " Data_Cleaning ", by="otto", why="we do it daily", title="Data", probation=True)
    assert (made.name, made.title, made.probation) == ("data-cleaning", "Data", True)
    assert events() == [("data-cleaning", "added", "otto", "we do it daily")]
    assert Arm.objects.resolve("category", "data cleaning") == made
    assert revision() != before


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Infrastructure", "'infrastructure' is an alias of infra"),
        ("Code", "'code' is an arm of category already"),
        (" -_ ", "1 to 100 printable characters; got ' -_ '"),
        ("x" * 101, "101 long"),
        ("a\x07b", "printable"),
    ],
)
def test_a_name_that_means_something_already_is_refused(name, words):
    with pytest.raises(ValueError, match=words):
        arms.add("category", name, by="otto")
    with pytest.raises(ValueError, match=words):
        arms.add_alias(arm("news"), name, by="otto")
    assert events() == []


def test_a_name_near_another_one_is_told():
    assert arms.near("category", "triags") == "triage"
    assert arms.near("category", "infrastructur") == "infrastructure"
    assert arms.near("category", "poetry") is None


def test_an_alias_comes_and_goes_with_an_event_each():
    arms.add_alias(arm("code"), "Coding", by="otto", why="bob says so")
    assert Arm.objects.resolve("category", "coding") == arm("code")
    arms.remove_alias(arm("code"), "coding", by="rita")
    with pytest.raises(UnknownArm):
        Arm.objects.resolve("category", "coding")
    assert events() == [
        ("code", "renamed", "otto", "Also called coding. bob says so"),
        ("code", "renamed", "rita", "No longer called coding."),
    ]
    with pytest.raises(ValueError, match="code is not called 'coding'"):
        arms.remove_alias(arm("code"), "coding", by="rita")
    assert not ArmAlias.objects.filter(alias="coding").exists()


def test_a_title_changes_and_the_name_stays():
    arms.rename(arm("infra"), "Infrastructure", by="otto")
    assert (arm("infra").title, events()[0][3]) == ("Infrastructure", "infra is now Infrastructure.")
    with pytest.raises(ValueError, match="a title has up to 100"):
        arms.rename(arm("infra"), "x" * 101, by="otto")


@pytest.mark.parametrize(
    ("there", "back", "field", "acts"),
    [
        (arms.pause, arms.resume, "paused", ["paused", "resumed"]),
        (arms.retire, arms.bring_back, "retired_at", ["retired", "returned"]),
        (arms.put_on_probation, arms.end_probation, "probation", ["tried", "passed"]),
    ],
)
def test_a_state_is_entered_and_left_by_an_event_each(there, back, field, acts):
    held = arm("code")
    with pytest.raises(ValueError, match="nothing was changed"):
        back(held, by="otto")
    revisions = {revision()}
    assert getattr(there(held, by="otto", why="a test"), field)
    revisions.add(revision())
    with pytest.raises(ValueError, match="already; nothing was changed"):
        there(held, by="rita")
    assert not getattr(back(held, by="rita"), field)
    assert [act for _, act, _, _ in events()] == acts
    assert len(revisions | {revision()}) == 3


def test_a_retired_arm_is_not_chosen_and_its_record_stays():
    reward("s1", code=0.8)
    arms.retire(arm("code"), by="otto", why="done with it")
    outlook = posterior_of("category", NOON)
    assert "code" not in outlook.chances
    assert outlook.arms["code"].evidence[0].n == 1
    reward("s2", code=0.7)
    assert posterior_of("category", NOON).arms["code"].evidence[0].n == 2
