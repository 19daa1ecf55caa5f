"""Incidents of selection, exploration and supply (I83 to I108, but for those about quota)."""

import datetime as dt

import pytest
import time_machine

from bandit import arms, ledger, policies
from bandit.eligibility import supply_bound
from bandit.models import Arm, Assignment, Bandit, Bucket, LedgerEntry, UnknownArm
from bandit.reading import posterior_of
from bandit.selection import NothingEligible, complete, select
from grading.models import Session, SessionLesson
from grading.reward import lessons
from tests.bandit.helpers import reward
from tests.casts import lesson as lesson_cast
from tests.casts.page import flat
from tests.incidents.helpers import submit
from tests.site import NOON

pytestmark = pytest.mark.django_db

SOON = NOON + dt.timedelta(minutes=5)


def decide(number: int, *, bandit: str = "category", at: dt.datetime = NOON, **said):
    return select(bandit=bandit, decision_id=f"d{number}", supply=said.pop("supply", None), now=at, **said)


def test_i83_the_work_that_ran_is_credited_and_both_are_kept():
    """I83, credit to the recommended category: impossible, and told. Both are kept, the one that ran is credited; a
    mismatch of a quarter is said on the page.

    Ten of twenty sessions pivoted, and content had its .54 from code.
    """
    decision = decide(1, supply={"content": 1})
    session = submit("71a3", category="code", selection_id="d1")
    decision.refresh_from_db()
    assert (decision.arm.name, decision.executed_arm.name) == ("content", "code")
    credited = LedgerEntry.objects.filter(bandit__name="category", observation=session.observation)
    assert {entry.arm.name for entry in credited} == {"code"}


def test_i84_a_decision_that_never_came_back_teaches_nothing_and_says_so(site, client):
    """I84, exploration wins without updates: told. In the answer itself, and on the bandit's page as decisions that
    led to no session within a day.
    """
    for number in range(11):
        decide(number, supply={"code": 1})
    assert not LedgerEntry.objects.exists()
    sentences = " ".join(decide(11, supply={"code": 1}).explanation["sentences"])
    assert "finished" in sentences
    client.force_login(site.person("vera", "viewer"))
    with time_machine.travel(NOON + dt.timedelta(days=1), tick=False):
        page = flat(client.get("/bandits/category/"))
    assert "Of the last 12 decisions, 12 led to no session within a day (no agent 12 of 12)." in page


def test_i85_a_substitute_has_the_credit_alone_and_the_substituted_leaves_the_draw():
    """I85, the substitute: impossible. It has the credit alone; after three in a row the substituted arm leaves the
    draw for the day.
    """
    for number in range(3):
        decision = decide(number, bandit="harness", supply={"codex": 1})
        complete(decision, observation=f"s{number}", executed_arm="gptme", now=SOON)
        reward(f"s{number}", bandit="harness", day=NOON.date(), gptme=0.5)
    learnt = dict(Bucket.objects.filter(bandit__name="harness").values_list("arm__name", "n"))
    assert learnt == {"gptme": 3}
    with pytest.raises(NothingEligible, match="substituted: its last 3 sessions today were run by gptme"):
        decide(3, bandit="harness", supply={"codex": 1})
    assert decide(4, bandit="harness", supply={"codex": 1}, at=NOON + dt.timedelta(days=1)).arm.name == "codex"


def test_i86_a_grade_lands_on_the_run_that_it_names():
    """I86, a grade lands on the host: impossible. A grade is of the session it names; the model is the transcript's.

    A grade for one model was posted from another's session, and taken for that one's.
    """
    session = submit("71a3")
    shown = session.model
    submit("71a3", model="somebody-else")
    session.refresh_from_db()
    assert shown
    assert session.model == shown
    assert {grade.session_id for grade in session.grades.all()} == {session.pk}


def test_i87_nothing_is_explored_where_it_may_not_run():
    """I87, exploring where the arm may not run: impossible. Eligibility by arm and category before any draw,
    exploration included.
    """
    arm = arms.add("harness", "new-engine", by="otto")
    arms.put_on_probation(arm, by="otto")
    with pytest.raises(NothingEligible, match="only for low-stakes work, and code is not"):
        decide(1, bandit="harness", supply={"new-engine": 1}, context="code")


def test_i88_eligibility_comes_before_every_draw():
    """I88, an explorer drew what the scorer had ruled out: impossible. Eligibility comes before any draw."""
    arms.retire(Arm.objects.resolve("harness", "codex"), by="otto")
    drawn = [decide(number, bandit="harness") for number in range(40)]
    assert {each.arm.name for each in drawn} == {"claude-code", "gptme"}
    assert all(each.eligible["codex"].startswith("retired on") for each in drawn)
    assert {"claude-code", "gptme"} == {name for name, odds in drawn[0].eligible.items() if not isinstance(odds, str)}


def test_i89_sessions_that_nobody_decided_for_count_as_well():
    """I89, manual runs that the bandit never saw: impossible. Every rewarded session counts, decided or not.

    The bandit knew of 3 runs of an arm, the store of 19, 18 of them dead.
    """
    for number in range(19):
        lesson_cast.session(0.1, at=NOON - dt.timedelta(days=number))
    assert Session.objects.filter(category__name="cross-repo").count() == 19
    assert posterior_of("category", NOON).arms["cross-repo"].evidence[0].n == 19


@pytest.mark.parametrize("number", [1, 2])
def test_i95_i96_supply_is_what_the_caller_has_now(number):
    """I95, I96, drained and cooling supply counted as work: impossible. Supply is the caller's count of now; 0 leaves
    out.

    Drained or cooling items were counted as supply, since their verdict was fresh.
    """
    decision = decide(number, supply={"research": 0, "code": number})
    assert decision.arm.name == "code"
    assert decision.eligible["research"] == "no work available"
    assert decision.requested["supply"] == {"research": 0, "code": number}


def test_i97_a_lane_without_work_is_bound_by_its_supply_whatever_it_weighs():
    """I97, a weight on an empty lane: told. "Supply-bound" beside the arm in a policy's preview."""
    for number in range(20):
        decide(number, supply={"code": 1, "research": 0})
    assert supply_bound(Arm.objects.resolve("category", "code").bandit)["research"] == 20
    policies.set_policy("category", {"consumption_boost": 1.5}, version=2, by="otto")
    assert decide(20, supply={"code": 1, "research": 0}).arm.name == "code"


def test_i98_an_alias_is_no_second_lane():
    """I98, the boost through an alias: impossible. One arm, whatever the spelling.

    Monitoring was neglected, and its boost went to infrastructure, which had 30 % already.
    """
    reward("s1", infra=0.6)
    assert Arm.objects.resolve("category", "Infrastructure").name == "infra"
    decision = decide(1, supply={"infrastructure": 1, "infra": 2})
    assert (decision.arm.name, decision.eligible["infra"]) == ("infra", 1.0)


def test_i102_a_new_arm_is_on_probation_until_it_has_worked():
    """I102, paying to discover a broken engine: impossible. Probation: one session a day in low-stakes work until three
    earned a reward.

    An engine that could not call a tool was explored live, twice: 69 % of its sessions came to nothing.
    """
    arms.put_on_probation(arms.add("harness", "new-engine", by="otto"), by="otto")
    asked = {"bandit": "harness", "supply": {"new-engine": 1}, "context": "content"}
    assert decide(1, **asked).arm.name == "new-engine"
    with pytest.raises(NothingEligible, match="on probation: 1 of 1 sessions used today"):
        decide(2, **asked)
    for number in range(3):
        reward(f"ran-{number}", bandit="harness", day=NOON.date(), **{"new-engine": 0.5})
    assert decide(3, **{**asked, "context": "code"}).arm.name == "new-engine"


def test_i104_a_policy_is_switched_off_as_easily_as_on():
    """I104, routing by the time of day: in part. Any policy is taken back by one act; no version has a date of review.

    Routing by time of day cost .13 to .28 until a preset date of review.
    """
    before = posterior_of("category", NOON).posterior
    policies.set_policy("category", {"prior_strength": 40}, version=2, by="otto", note="an experiment")
    earlier = policies.find_policy_version(Bandit.objects.named("category"), 1)
    policies.set_policy("category", policies.numbers_of(earlier), version=3, by="otto")
    after = posterior_of("category", NOON).posterior
    assert (before.alpha.tobytes(), before.beta.tobytes()) == (after.alpha.tobytes(), after.beta.tobytes())


def test_i106_an_experiment_begins_with_the_first_session_and_its_arms_have_types():
    """I106, an experiment approved and never delivered: impossible. Typed names, and figures that begin with the first
    session that carries it.

    The flag was read as that of another experiment: lesson ids as harnesses, and no run ever saw it.
    """
    lesson_cast.lesson("read-the-diff")
    with pytest.raises(UnknownArm):
        decide(1, bandit="harness", supply={"read-the-diff": 1})
    draws = lesson_cast.draw("run-1", "read-the-diff")
    assert not SessionLesson.objects.exists()
    lesson_cast.session(0.5, read_the_diff=draws["read-the-diff"])
    assert SessionLesson.objects.get().assignment == draws["read-the-diff"]


def test_i107_outcomes_that_are_null_are_no_outcomes():
    """I107, outcomes that were all null: told at the first. What has no reward is counted as that, beside each lesson
    and in no figure.

    340 of 340 outcomes were null, and the experiment looked delivered.
    """
    for number in range(5):
        lesson_cast.session(None, at=NOON - dt.timedelta(days=number), read_the_diff=None)
    bandit = Arm.objects.resolve("lesson", "read-the-diff").bandit
    (lesson,) = lessons.load_lessons(bandit, NOON).lessons.values()
    figures = lesson.figures()
    assert (figures.rewards, figures.without_reward) == (0, 5)
    assert figures.effect.difference is None


def test_i108_the_cohort_is_fixed_when_the_work_begins():
    """I108, the flag flips mid-flight: impossible. Draws are rows from before the work; none is added once the session
    came in.

    By end time there were four sessions in the wave, by start time none.
    """
    lesson_cast.lesson("read-the-diff")
    first = lesson_cast.draw("run-1", "read-the-diff")["read-the-diff"]
    policies.set_policy("lesson", {"holdout": 0.5}, version=2, by="otto")
    again = lesson_cast.draw("run-1", "read-the-diff", at=NOON + dt.timedelta(hours=3))["read-the-diff"]
    assert (again.pk, again.taken, again.chance) == (first.pk, first.taken, 0.6)
    assert Assignment.objects.get().created < NOON
    assert not ledger.history("run-1").exists()
