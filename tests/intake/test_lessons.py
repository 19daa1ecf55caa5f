"""Lessons: drawn over HTTP, told with a session, credited with what is left once the category is taken out."""

import json

import pytest
import time_machine
from django.test import Client

from bandit.models import Arm, ArmAlias, Assignment, LedgerEntry
from bandit.reading import posterior_of
from grading.intake import erasing
from grading.models import ApiToken, Session, SessionLesson
from grading.reward import rewards
from tests.api.test_api import Caller, assert_explained
from tests.bandit.helpers import policy
from tests.casts import lesson as lesson_cast
from tests.intake.test_intake import codes
from tests.site import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def lessons():
    return [lesson_cast.lesson(name) for name in ("read-the-diff", "run-the-tests", "ask-first")]


@pytest.fixture
def bob():
    return Caller()


def assign(caller, **body):
    body = {"decision_id": "run-17", "lessons": ["read-the-diff", "run-the-tests"], **body}
    return caller.client.post("/api/v1/assignments", json.dumps(body), content_type="application/json")


def given(session):
    """What is on record of the session's lessons: name to (taken, salience, drawn)."""
    rows = session.lessons.select_related("arm")
    return {row.arm.name: (row.taken, row.salience, row.assignment_id is not None) for row in rows}


def credited(session):
    entries = LedgerEntry.objects.filter(bandit__name="lesson", observation=session.observation).live()
    return {entry.arm.name: (entry.value, entry.grader.context, entry.grader.salience) for entry in entries}


# --- over HTTP


def test_each_lesson_is_answered_with_what_to_do_its_chance_and_why(bob):
    Arm.objects.filter(name="ask-first").update(paused=True)
    said = assign(bob, lessons=["Read_the_Diff", "ask-first"], context="cross-repo").json()
    assert said["decision_id"] == "run-17"
    drawn, left_out = said["lessons"]
    assert (drawn["lesson"], drawn["asked"], drawn["chance"]) == ("read-the-diff", "Read_the_Diff", 0.6)
    assert "40 % are held out by chance, to see what it causes" in drawn["why"]
    assert drawn["why"].startswith("taken" if drawn["taken"] else "held out")
    assert left_out == {
        "lesson": "ask-first", "asked": "ask-first", "taken": False, "chance": None, "why": "left out: paused"
    }  # fmt: skip


def test_a_retry_over_http_gets_the_same_answer(bob):
    policy("lesson", holdout=0.5)
    assert assign(bob).json() == assign(bob).json()
    assert Assignment.objects.count() == 2


def test_an_unknown_lesson_is_told_with_the_nearest_and_nothing_is_drawn(bob):
    said = assert_explained(assign(bob, lessons=["read-the-diff", "run-the-test"]), 422)
    assert "Did you mean 'run-the-tests'" in said["got"]
    assert not Assignment.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"lessons": []},
        {"lessons": "read-the-diff"},
        {"lessons": [7]},
        {"lessons": ["x" * 101]},
        {"lessons": ["read-the-diff"] * 201},
        {"decision_id": " "},
        {"decision_id": "a\0b"},
        {"context": "cooking"},
        {"salience": 1},
    ],
)
def test_a_bad_request_is_explained(bob, wrong):
    assert_explained(assign(bob, **wrong), 422)
    assert not Assignment.objects.exists()


def test_another_agents_decision_of_the_same_name_is_its_own(bob):
    assign(bob)
    assert assign(Caller("eve"), lessons=["ask-first"]).status_code == 200
    assert sorted(Assignment.objects.values_list("agent", flat=True)) == ["bob", "bob", "eve"]


def test_without_a_token_nothing_is_drawn():
    said = Client(raise_request_exception=False).post("/api/v1/assignments", "{}", content_type="application/json")
    assert said.status_code == 401
    assert ApiToken.objects.count() == 0


def test_a_session_closes_what_was_drawn_for_it(bob):
    policy("lesson", holdout=0.5)
    drawn = {each["lesson"]: each["taken"] for each in assign(bob).json()["lessons"]}
    metadata = {"lessons_decision_id": "run-17", "lessons": [], "ended_at": None}
    response = bob.submit(metadata=metadata, journal=b"Merged the fix.")
    assert response.status_code == 201, response.json()
    session = Session.objects.get(pk=response.json()["id"])
    assert given(session) == {name: (taken, None, True) for name, taken in drawn.items()}
    assert set(Assignment.objects.values_list("observation", flat=True)) == {session.observation}


@pytest.mark.parametrize("wrong", [{"name": ""}, {"name": "a", "salience": 1.1}, {"salience": 1}, "read-the-diff"])
def test_a_bad_entry_is_explained(bob, wrong):
    assert_explained(bob.submit(metadata={"lessons": [wrong]}), 422)


def test_the_page_of_the_api_describes_lessons():
    page = Client().get("/api/v1/docs").content.decode()
    assert "metadata.lessons[].salience" in page
    assert "lessons[].why" in page


# --- told with a session


def test_lessons_without_a_draw_are_what_the_caller_says(site, lessons):
    ArmAlias.objects.create(arm=lessons[0], alias="diff-first")
    receipt = site.upload("71a3", lessons=[{"name": "Diff First", "salience": 0.4}, {"name": "ask-first"}])
    assert receipt.problems == ()
    assert given(receipt.session) == {"read-the-diff": (True, 0.4, False), "ask-first": (True, None, False)}


def test_an_unknown_lesson_loses_nothing_else(site):
    receipt = site.upload("71a3", lessons=[{"name": "read-teh-diff"}, {"name": "ask-first"}], journal="Merged it.")
    assert codes(receipt) == ["unknown_lesson"]
    assert "Did you mean 'read-the-diff'" in receipt.problems[0].todo
    assert given(receipt.session) == {"ask-first": (True, None, False)}
    assert not Arm.objects.filter(name="read-teh-diff").exists()


def test_a_draw_holds_and_the_list_says_the_salience(site):
    policy("lesson", holdout=0.5)
    drawn = lesson_cast.draw("run-17", "read-the-diff", "run-the-tests", "ask-first")
    took = [name for name, row in drawn.items() if row.taken]
    said = {"lessons_decision_id": "run-17", "lessons": [{"name": name, "salience": 0.5} for name in took]}
    receipt = site.upload("71a3", **said)
    assert receipt.problems == ()
    assert given(receipt.session) == {
        name: (row.taken, 0.5 if row.taken else None, True) for name, row in drawn.items()
    }


def test_a_lesson_given_although_it_was_held_out_is_told_and_taken_for_what_happened(site):
    decision = lesson_cast.drawn_as("ask-first", taken=False)
    receipt = site.upload("71a3", lessons_decision_id=decision, lessons=[{"name": "ask-first"}])
    assert codes(receipt) == ["held_out_but_given"]
    assert not receipt.problems[0].is_error
    assert given(receipt.session) == {"ask-first": (True, None, True)}


def test_a_later_submission_adds_lessons_and_salience_and_takes_nothing_back(site):
    site.upload("71a3", lessons=[{"name": "read-the-diff"}, {"name": "ask-first", "salience": 0.2}])
    more = [
        {"name": "read-the-diff", "salience": 0.6},
        {"name": "ask-first", "salience": 0.9},
        {"name": "run the tests"},
    ]
    receipt = site.upload("71a3", lessons=more)
    expected = {
        "read-the-diff": (True, 0.6, False),
        "ask-first": (True, 0.2, False),
        "run-the-tests": (True, None, False),
    }
    assert given(receipt.session) == expected
    site.upload("71a3")
    assert given(receipt.session) == expected


def test_the_same_lessons_again_change_nothing(site):
    said = {"lessons": [{"name": "read-the-diff", "salience": 0.6}]}
    site.upload("71a3", **said, journal="Merged it.")
    before = LedgerEntry.objects.count(), SessionLesson.objects.count()
    site.upload("71a3", **said, journal="Merged it.")
    assert (LedgerEntry.objects.count(), SessionLesson.objects.count()) == before


@pytest.mark.parametrize("agent", ["bob", "eve"])
def test_a_draw_that_is_not_ones_own_is_told(site, agent):
    lesson_cast.draw("run-17", "ask-first", agent="eve")
    site.upload("a", agent="eve", lessons_decision_id="run-17")
    receipt = site.upload("b", agent=agent, lessons_decision_id="run-17")
    assert codes(receipt) == ["unknown_assignment" if agent == "bob" else "assignment_completed"]
    assert given(receipt.session) == {}


def test_a_draw_from_after_the_session_is_none(site):
    """I108: what was drawn when the outcome was known decided nothing."""
    with time_machine.travel(NOON, tick=False):
        lesson_cast.draw("run-17", "ask-first", at=NOON.replace(hour=15))
        receipt = site.upload("71a3", lessons_decision_id="run-17", lessons=[{"name": "ask-first"}])
    assert codes(receipt) == ["drawn_afterwards"]
    assert given(receipt.session) == {"ask-first": (True, None, False)}


# --- credited


def test_a_lesson_earns_the_sessions_reward_by_its_salience_and_category(site):
    receipt = site.upload("71a3", lessons=[{"name": "read-the-diff", "salience": 0.4}], journal="Merged it.")
    value = rewards.live(receipt.session).value
    assert credited(receipt.session) == {"read-the-diff": (value, "cross-repo", 40)}


def test_a_lesson_that_is_told_later_is_credited_then(site):
    receipt = site.upload("71a3", journal="Merged it.")
    assert credited(receipt.session) == {}
    site.upload("71a3", lessons=[{"name": "ask-first"}])
    assert list(credited(receipt.session)) == ["ask-first"]
    site.upload("71a3", lessons=[{"name": "ask-first", "salience": 0.1}])
    assert credited(receipt.session)["ask-first"][2] == 10


def test_a_lesson_that_was_held_out_earns_nothing(site):
    decision = lesson_cast.drawn_as("ask-first", taken=False)
    receipt = site.upload("71a3", lessons_decision_id=decision, journal="Merged it.")
    assert credited(receipt.session) == {}


def test_a_session_without_a_reward_teaches_its_lessons_nothing(site):
    """I78: consumers read the ledger, which has no reward without a grade."""
    receipt = site.upload("71a3", lessons=[{"name": "ask-first"}])
    assert rewards.live(receipt.session).weight == 0
    assert not LedgerEntry.objects.rewards().filter(observation=receipt.session.observation).exists()
    assert posterior_of("lesson", NOON).arms["ask-first"].evidence == ()
    site.on(receipt.session).judged(0.7)
    rewards.settle(receipt.session)
    assert credited(receipt.session)["ask-first"][0] == 0.7


def test_a_session_that_died_of_infrastructure_takes_its_credit_back(site):
    receipt = site.upload("71a3", lessons=[{"name": "ask-first"}], journal="Merged it.")
    site.upload("71a3", exit_code=137)
    assert credited(receipt.session) == {}


def test_a_salience_of_a_tenth_weighs_less_than_one_of_all():
    """I109: 0.3 + 0.7 · salience, at the policy's floor."""
    lesson_cast.session(0.9, read_the_diff=1.0, ask_first=0.1)
    arms = posterior_of("lesson", NOON).arms
    (full,), (little,) = arms["read-the-diff"].evidence, arms["ask-first"].evidence
    assert little.pseudo / full.pseudo == pytest.approx(0.3 + 0.7 * 0.1)


def test_erasing_a_session_takes_its_lessons_and_unlinks_its_draws(site):
    decision = lesson_cast.drawn_as("ask-first", taken=True)
    receipt = site.upload("71a3", lessons_decision_id=decision, journal="Merged it.")
    erased = erasing.erase(Session.objects.filter(pk=receipt.session.pk), who="olga", why="asked to")
    assert (erased["sessionlesson"], erased["assignments unlinked"]) == (1, 1)
    assert Assignment.objects.get().observation == ""
    assert posterior_of("lesson", NOON).arms["ask-first"].evidence == ()
