"""Taking each of several arms, or holding it out by a chance that is on record."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from bandit import holdout
from bandit.models import Arm, ArmAlias, Assignment, Bandit, LedgerEntry, UnknownArm
from bandit.reading import version_of
from tests.bandit.helpers import policy
from tests.examples import examples
from tests.site import NOON

pytestmark = pytest.mark.django_db

LESSONS = [f"lesson-{number}" for number in range(40)]


@pytest.fixture(autouse=True)
def lessons():
    bandit = Bandit.objects.get(name="lesson")
    return {name: Arm.objects.create(bandit=bandit, name=name) for name in LESSONS}


def assign(decision="d-1", arms=LESSONS, **more):
    return holdout.assign("lesson", decision, arms, **{"agent": "bob", "now": NOON, **more})


def taken(drawn):
    return {row.arm.name: row.taken for row in drawn.rows}


def test_every_lesson_is_drawn_with_the_chance_of_the_policy():
    policy("lesson", holdout=0.25)
    drawn = assign(context="cross-repo")
    assert [row.arm.name for row in drawn.rows] == sorted(LESSONS)
    assert {row.chance for row in drawn.rows} == {0.75}
    assert {(row.context, row.agent, row.created) for row in drawn.rows} == {("cross-repo", "bob", NOON)}
    assert not LedgerEntry.objects.exists()


def test_as_many_are_held_out_as_the_policy_says():
    policy("lesson", holdout=0.2, open_decisions=None)
    for number in range(25):
        assign(f"d-{number}")
    held_out = Assignment.objects.filter(taken=False).count() / Assignment.objects.count()
    assert held_out == pytest.approx(0.2, abs=0.03)


def test_what_becomes_of_one_lesson_says_nothing_of_another():
    policy("lesson", holdout=0.5, open_decisions=None)
    draws = [taken(assign(f"d-{number}", LESSONS[:2])) for number in range(200)]
    both = sum(each["lesson-0"] and each["lesson-1"] for each in draws)
    assert both == pytest.approx(50, abs=18)


def test_asking_again_gives_the_same_answer_whatever_changed():
    policy("lesson", holdout=0.5)
    first = taken(assign())
    policy("lesson", holdout=0.1)
    Arm.objects.filter(name="lesson-3").update(paused=True)
    again = assign()
    assert taken(again) == first
    assert again.left_out == {}


def test_more_lessons_later_add_rows():
    policy("lesson", holdout=0.5)
    first = taken(assign(arms=LESSONS[:2]))
    more = taken(assign(arms=LESSONS[1:4]))
    assert sorted(more) == LESSONS[:4]
    assert first.items() <= more.items()


def test_the_order_of_asking_changes_no_draw():
    policy("lesson", holdout=0.5)
    one_by_one = [taken(assign("d-1", [name]))[name] for name in reversed(LESSONS)]
    Assignment.objects.all().delete()
    assert [taken(assign())[name] for name in reversed(LESSONS)] == one_by_one


def test_a_decided_lesson_is_held_out_by_a_chance_of_its_own():
    policy("lesson", holdout=0.3, holdout_decided=0.02)
    drawn = assign(arms=LESSONS[:2], decided={"lesson-1"})
    assert {row.arm.name: row.chance for row in drawn.rows} == {"lesson-0": 0.7, "lesson-1": 0.98}


@pytest.mark.parametrize(("decided", "chance"), [(None, 0.9), (0.5, 0.9), (0.0, 1.0)])
def test_a_decided_lesson_is_never_held_out_more_often(decided, chance):
    policy("lesson", holdout=0.1, holdout_decided=decided)
    (row,) = assign(arms=LESSONS[:1], decided=LESSONS[:1]).rows
    assert row.chance == chance


def test_without_a_holdout_all_are_taken_for_certain():
    policy("lesson", holdout=0)
    assert {(row.taken, row.chance) for row in assign().rows} == {(True, 1.0)}


def test_paused_and_retired_lessons_are_left_out_with_the_reason():
    Arm.objects.filter(name="lesson-1").update(paused=True)
    Arm.objects.filter(name="lesson-2").update(retired_at=NOON)
    drawn = assign(arms=LESSONS[:3])
    assert [row.arm.name for row in drawn.rows] == ["lesson-0"]
    assert drawn.left_out == {"lesson-1": "paused", "lesson-2": "retired on 2026-03-31"}


def test_a_lesson_on_probation_is_drawn_like_any_other():
    Arm.objects.filter(name="lesson-0").update(probation=True)
    assert len(assign(arms=LESSONS[:1]).rows) == 1


def test_two_names_of_one_lesson_are_drawn_once(lessons):
    ArmAlias.objects.create(arm=lessons["lesson-0"], alias="zero")
    lessons["lesson-1"].merged_into = lessons["lesson-0"]
    lessons["lesson-1"].save()
    drawn = assign(arms=["Zero", "lesson_0", "lesson 1"])
    assert [row.arm.name for row in drawn.rows] == ["lesson-0"]
    assert drawn.names == {"Zero": "lesson-0", "lesson_0": "lesson-0", "lesson 1": "lesson-0"}


def test_a_lesson_that_was_merged_since_keeps_its_draw(lessons):
    first = assign(arms=["lesson-1"])
    lessons["lesson-1"].merged_into = lessons["lesson-0"]
    lessons["lesson-1"].save()
    assert assign(arms=["lesson-1", "lesson-0"]).rows == first.rows


def test_an_unknown_name_makes_no_arm_and_no_row():
    with pytest.raises(UnknownArm, match="Did you mean 'lesson-1'"):
        assign(arms=["lesson-0", "lesson-1x"])
    with pytest.raises(UnknownArm, match="Did you mean 'cross-repo'"):
        assign(arms=["lesson-0"], context="cross-repose")
    assert not Assignment.objects.exists()
    assert not Arm.objects.filter(name="lesson-1x").exists()


def test_an_id_is_its_agents_own():
    policy("lesson", holdout=0.5)
    bobs = assign()
    eves = assign(agent="eve")
    assert {row.agent for row in eves.rows} == {"eve"}
    assert taken(eves) != taken(bobs)
    assert assign() == bobs


def test_nothing_is_drawn_for_a_session_that_is_over():
    """I108: who belongs to which side is fixed at the start."""
    assign(arms=LESSONS[:1])
    holdout.close("lesson", "d-1", observation="session:1", agent="bob")
    assert len(assign(arms=LESSONS[:1]).rows) == 1
    Arm.objects.filter(name="lesson-3").update(paused=True)
    assert assign(arms=[LESSONS[0], "lesson-3"]).left_out == {"lesson-3": "paused"}
    with pytest.raises(holdout.Taken, match="draw before the work begins"):
        assign(arms=LESSONS[:2])


def test_a_bandit_that_chooses_one_arm_holds_nothing_out():
    with pytest.raises(ValueError, match="one of its arms is chosen"):
        holdout.assign("category", "d-1", ["code"], now=NOON)


@pytest.mark.parametrize("decision", ["", " ", "d\n1", "d" * 201])
def test_a_decision_needs_an_id(decision):
    with pytest.raises(ValueError, match="id of the caller's own"):
        assign(decision)


@given(decision=st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=200), number=st.integers(1, 5))
@examples(20, HealthCheck.function_scoped_fixture)
def test_any_decision_repeats_itself(decision, number):
    Assignment.objects.all().delete()
    assert taken(assign(decision, LESSONS[:number])) == taken(assign(decision, LESSONS[:number]))
    assert version_of(Bandit.objects.get(name="lesson")).holdout == 0.4
