"""Deciding is not doing, eligibility comes before any draw, and every decision explains itself (L12)."""

import math
from datetime import UTC, date, datetime, timedelta

import pytest

from bandit.eligibility import supply_bound
from bandit.models import Arm, ArmAlias, Bandit, LedgerEntry, Selection, UnknownArm, UnknownBandit
from bandit.reading import posterior_of
from bandit.selection import AlreadyCompleted, NothingEligible, complete, select
from bandit.whatif import what_if_changed
from tests.bandit.helpers import DAY, hypothetical, policy, reward, what_if, with_cost

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def decide(decision_id="d1", *, supply=None, now=NOW, bandit="category", **fields):
    return select(bandit=bandit, decision_id=decision_id, supply=supply, now=now, **fields)


def teach():
    """Some days of grades: code best, social worst."""
    for i in range(12):
        day = DAY - timedelta(days=1 + i % 6)
        for arm, value in (("code", 0.7), ("infra", 0.6), ("news", 0.4), ("social", 0.2)):
            reward(f"{arm}-{i}", day=day, **{arm: value + (i % 3 - 1) / 10})


def test_a_decision_is_logged_with_everything_it_rests_on():
    teach()
    selection = decide(agent="bob", supply={"code": 3, "infra": 1, "news": 0})
    assert selection.arm.name in {"code", "infra"}
    assert selection.agent == "bob"
    assert selection.requested["supply"] == {"code": 3, "infra": 1, "news": 0}
    odds = {name: odd for name, odd in selection.eligible.items() if not isinstance(odd, str)}
    assert odds.keys() == {"code", "infra"}
    assert math.isclose(sum(odds.values()), 1)
    assert selection.propensity == odds[selection.arm.name]
    assert selection.eligible["news"] == "no work available"
    assert selection.eligible["triage"] == "not in the supply given"
    assert selection.posterior_version == posterior_of("category", NOW).posterior.version
    assert selection.explanation["sentences"][0].startswith(f"{selection.arm.name} was drawn with probability ")
    assert "news was left out: no work available." in selection.explanation["sentences"]
    assert selection.explanation["arms"]["code"]["propensity"] == odds["code"]


def test_deciding_writes_no_reward():
    decide()
    assert not LedgerEntry.objects.exists()


def test_a_retry_gets_the_same_row_even_if_the_world_moved():
    first = decide()
    teach()
    assert decide(supply={"social": 1}, now=NOW + timedelta(days=1)) == first


def test_another_decision_is_another_draw():
    arms = {decide(f"d{i}", supply={"code": 1, "infra": 1, "triage": 1}).arm.name for i in range(40)}
    assert arms == {"code", "infra", "triage"}


def test_a_bandit_without_evidence_gives_every_arm_the_same_chance():
    odds = decide(bandit="harness").eligible
    assert list(odds.values()) == pytest.approx([1 / 3] * 3)


def test_paused_and_retired_arms_are_left_out_before_the_draw():
    """I88: an explorer drew an arm that the scorer had ruled out."""
    Arm.objects.filter(name="codex").update(paused=True)
    Arm.objects.filter(name="gptme").update(retired_at=NOW)
    selections = [decide(f"d{i}", bandit="harness") for i in range(20)]
    assert {selection.arm.name for selection in selections} == {"claude-code"}
    assert selections[0].eligible["codex"] == "paused"
    assert selections[0].eligible["gptme"] == "retired on 2026-03-31"


def test_nothing_eligible_says_why_for_each_arm_and_may_be_asked_again():
    with pytest.raises(NothingEligible, match="code: no work available") as caught:
        decide(supply={"code": 0})
    assert caught.value.reasons["news"] == "not in the supply given"
    assert decide(supply={"code": 1}).arm.name == "code"


@pytest.mark.parametrize("supply", [{"code": -1}, {"code": 1.5}, {"code": True}, {"code": "1"}])
def test_a_supply_that_is_no_count_is_refused(supply):
    with pytest.raises(ValueError, match="a whole number from 0"):
        decide(supply=supply)


def test_a_strange_arm_in_the_supply_is_refused():
    with pytest.raises(UnknownArm, match="Did you mean 'triage'"):
        decide(supply={"triags": 1})
    with pytest.raises(UnknownBandit):
        decide(bandit="moods")
    with pytest.raises(UnknownBandit):
        decide(bandit="category\0")


@pytest.mark.parametrize("bandit", ["lesson", "model"])
def test_nothing_is_chosen_from_names_or_from_what_is_taken_together(bandit):
    with pytest.raises(ValueError, match="Expected one of category, harness"):
        decide(bandit=bandit)


@pytest.mark.parametrize("decision_id", ["", " ", "a\0b", "x" * 201])
def test_an_id_that_no_retry_could_repeat_is_refused(decision_id):
    with pytest.raises(ValueError, match="needs an id of the caller's own"):
        decide(decision_id)


def test_two_names_of_one_arm_in_the_supply_add_up():
    assert decide(supply={"infra": 0, "infrastructure": 2}).arm.name == "infra"


def test_the_supply_may_use_an_alias():
    assert decide(supply={"Infrastructure": 2}).arm.name == "infra"


def test_an_override_is_obeyed_and_says_what_it_overrode():
    selection = decide(supply={"code": 1}, override="News")
    assert selection.arm.name == "news"
    assert selection.propensity == 1
    assert selection.override == {"arm": "news", "drawn": "code", "left_out": "not in the supply given"}
    assert selection.eligible["code"] == 1.0
    assert selection.explanation["sentences"][0] == (
        "news was chosen because the caller overrode the draw; the draw would have chosen code."
    )


def test_an_override_works_when_nothing_is_eligible():
    assert decide(supply={}, override="code").override["drawn"] is None


def run_consumption(name, *, now=NOW, arm="news"):
    return decide(name, supply={arm: 1}, now=now)


def test_a_third_consumption_session_of_a_day_is_refused():
    run_consumption("d1")
    run_consumption("d2", arm="social")
    with pytest.raises(NothingEligible, match="news: 2 of 2 consumption sessions used today"):
        run_consumption("d3")
    policy(consumption_per_agent=3)
    run_consumption("d3")


def test_the_limit_is_over_with_the_sites_day(settings):
    settings.TIME_ZONE = "Pacific/Auckland"
    late = datetime(2026, 3, 31, 10, 59, tzinfo=UTC)  # 23:59 in Auckland
    run_consumption("d1", now=late)
    run_consumption("d2", now=late)
    with pytest.raises(NothingEligible):
        run_consumption("d3", now=late)
    run_consumption("d3", now=late + timedelta(minutes=1))


def test_sessions_that_no_decision_asked_for_count_too():
    reward("s1", news=0.5)
    run_consumption("d1")
    with pytest.raises(NothingEligible):
        run_consumption("d2")


def test_a_decided_session_counts_once_when_its_reward_comes():
    selection = run_consumption("d1")
    complete(selection, observation="s1", executed_arm="news", now=NOW)
    reward("s1", news=0.5)
    run_consumption("d2")
    with pytest.raises(NothingEligible):
        run_consumption("d3")


def test_a_pivot_to_other_work_gives_its_slot_back():
    for name in ("d1", "d2"):
        complete(run_consumption(name), observation=name, executed_arm="code", now=NOW)
    run_consumption("d3")


def test_seed_000s_feedback_moves_the_chance_of_reading():
    def chance(value):
        for i in range(6):
            reward(f"n{i}", day=DAY - timedelta(days=1 + i), news=value)
            reward(f"c{i}", day=DAY - timedelta(days=1 + i), code=value)
        return decide(f"d{value}", supply={"news": 1, "code": 1})

    good, fair, poor = chance(0.6), chance(0.4), chance(0.2)
    assert fair.eligible["news"] == pytest.approx(0.5)
    assert good.eligible["news"] == pytest.approx(0.0025 + 0.995 * 1.1 / 2.1)
    assert poor.eligible["news"] == pytest.approx(0.0025 + 0.995 * 0.8 / 1.8)
    assert (
        "news: 14-day average 0.20 over 6 rewards, below 0.3: penalised, probability × 0.8."
        in poor.explanation["sentences"]
    )


def test_rewards_older_than_the_window_move_nothing():
    for i in range(6):
        reward(f"n{i}", day=DAY - timedelta(days=14), news=0.1)
        reward(f"c{i}", day=DAY - timedelta(days=14), code=0.1)
    assert decide(supply={"news": 1, "code": 1}).eligible["news"] == pytest.approx(0.5)


def test_completion_keeps_what_was_chosen_beside_what_ran():
    """I83, I85: a substitute's quality went to the arm that was recommended."""
    selection = decide(supply={"code": 1})
    closed = complete(selection, observation="s1", executed_arm="Cross Repo", now=NOW)
    assert (closed.arm.name, closed.executed_arm.name, closed.observation) == ("code", "cross-repo", "s1")
    assert complete(selection, observation="s1", executed_arm="cross-repo", now=NOW) == closed


def test_a_decision_is_closed_by_one_session_and_a_session_closes_one():
    first, second = decide("d1"), decide("d2")
    complete(first, observation="s1", executed_arm="code", now=NOW)
    with pytest.raises(AlreadyCompleted, match="'d1' was closed by s1"):
        complete(first, observation="s2", executed_arm="code", now=NOW)
    with pytest.raises(AlreadyCompleted, match="s1 closed decision 'd1' already"):
        complete(second, observation="s1", executed_arm="code", now=NOW)
    with pytest.raises(ValueError, match="a blank one"):
        complete(second, observation="", executed_arm="code", now=NOW)


def test_what_if_says_what_a_correction_will_do_to_the_bit():
    teach()
    day = DAY - timedelta(days=4)
    before, after = what_if("code-3", "code", 0.95, day=day, source="human", now=NOW)
    assert before.posterior.version == posterior_of("category", NOW).posterior.version
    assert after.arms["code"].mean > before.arms["code"].mean
    assert after.share_of_next_100("code") > before.share_of_next_100("code")
    reward("code-3", day=day, source="human", code=0.95)
    assert after.posterior.version == posterior_of("category", NOW).posterior.version


def test_what_if_a_session_were_excluded_or_had_never_been_graded():
    teach()
    day = DAY - timedelta(days=4)
    _, without = what_if("code-3", "code", None, day=day, now=NOW)
    _, added = what_if("new", "code", 0.5, day=day, source="human", now=NOW)
    assert [e.n for e in without.arms["code"].evidence] == [11]
    assert [(e.source, e.n) for e in added.arms["code"].evidence] == [("human", 1), ("judge", 12)]


def test_what_if_of_many_changes_says_what_all_of_them_will_do_to_the_bit():
    teach()
    reward("content-0", day=DAY, source="journal", content=0.2)
    given = [("code-3", "code", 0.95), ("infra-1", "infra", None), ("content-0", "triage", 0.4), ("new", "code", 0.1)]
    changes = [
        hypothetical(name, arm, value, source="human", day=DAY - timedelta(days=1)) for name, arm, value in given
    ]
    before, after = what_if_changed("category", {"category": changes}, NOW)
    assert before.posterior.version == posterior_of("category", NOW).posterior.version
    for name, arm, value in given:
        reward(name, day=DAY - timedelta(days=1), source="human", **({} if value is None else {arm: value}))
    assert after.posterior.version == posterior_of("category", NOW).posterior.version


def test_what_if_of_nothing_changes_nothing_and_twice_the_same_is_refused():
    teach()
    before, after = what_if_changed("category", {"category": []}, NOW)
    assert before.posterior.version == after.posterior.version
    change = hypothetical("code-3", "code", 0.5, source="human")
    with pytest.raises(ValueError, match="2 changes of 1 arms' rewards"):
        what_if_changed("category", {"category": [change, change]}, NOW)


def test_what_if_of_something_too_old_to_count_changes_nothing():
    old = date(2000, 1, 1)
    reward("s1", day=old, code=0.5)
    before, after = what_if("s1", "code", 0.9, source="human", day=old, now=NOW)
    assert before.posterior.version == after.posterior.version


def test_a_merged_arm_keeps_the_rewards_of_its_old_name():
    """I62: a rename is an alias, and the record stays where it was earned."""
    reward("s1", code=0.5)
    arm = Arm.objects.resolve("category", "code")
    ArmAlias.objects.create(arm=arm, alias="Programming Work")
    assert not reward("s1", **{"programming-work": 0.5})


def test_a_paused_arm_has_no_share_of_the_next_hundred():
    Arm.objects.filter(name="codex").update(paused=True)
    outlook = posterior_of("harness", NOW)
    assert outlook.share_of_next_100("codex") == 0
    assert outlook.share_of_next_100("gptme") == pytest.approx(50)


def test_an_extreme_half_life_is_read_all_the_same():
    policy(long_run_half_life_days=1e12)
    reward("s1", code=0.5)
    assert posterior_of("category", NOW).arms["code"].evidence[0].n == 1


def pair(name="claude-code/opus-4"):
    harness = Bandit.objects.get(name="harness")
    return Arm.objects.create(bandit=harness, name=name, probation=True)


def reasons(**fields):
    """Why each arm of the harness bandit is left out now."""
    count = Selection.objects.count()
    eligible = decide(f"why-{count}", bandit="harness", **fields).eligible
    return {name: why for name, why in eligible.items() if isinstance(why, str)}


def ran(chosen, executed, *, now=NOW):
    """A decision for one harness that another one carried out."""
    number = Selection.objects.count()
    selection = decide(f"run-{number}", bandit="harness", supply={chosen: 1}, now=now)
    return complete(selection, observation=f"run:{number}", executed_arm=executed, now=now)


def test_an_arm_on_probation_has_one_session_a_day():
    """I102: a broken model was explored live, twice."""
    new = pair()
    assert reasons() == {}
    made = decide("d1", bandit="harness", supply={new.name: 1})
    assert made.explanation["sentences"][1] == (
        "claude-code/opus-4 is on probation: it has 0 of the 3 sessions with a reward that end the probation."
    )
    assert reasons() == {new.name: "on probation: 1 of 1 sessions used today"}
    assert reasons(now=NOW + timedelta(days=1)) == {}


def test_an_arm_on_probation_is_tried_in_low_stakes_work_only():
    """I88: eligibility is of an arm in a category, and comes before the draw."""
    new = pair()
    assert reasons(context="Infrastructure") == {
        new.name: "on probation, so it is chosen only for low-stakes work, and infra is not low-stakes"
    }
    assert reasons(context="news") == {}
    assert decide("d1", bandit="harness", context="Infrastructure").context == "infra"


def test_a_probation_ends_by_itself_with_enough_rewards():
    new = pair()
    for i in range(3):
        assert new.name in reasons(context="code")
        with_cost(f"s{i}", 0.5, usd=None, arm=new.name, bandit="harness")
    assert reasons(context="code") == {}
    assert Arm.objects.get(pk=new.pk).probation


def test_everybody_on_probation_is_nothing_eligible():
    Arm.objects.filter(bandit__name="harness").update(probation=True)
    with pytest.raises(
        NothingEligible,
        match="codex: on probation, so it is chosen only for low-stakes work, and code is not low-stakes",
    ):
        decide(bandit="harness", context="code")


def test_a_context_is_a_name_that_is_known():
    with pytest.raises(UnknownArm, match="Did you mean 'triage'"):
        decide(bandit="harness", context="triags")
    with pytest.raises(ValueError, match="the bandit 'category' takes no context"):
        decide(context="code")


def test_an_arm_that_others_run_for_leaves_the_draw_until_the_day_is_over():
    """I85: a substituted arm stays at nothing, and is explored for ever."""
    for _ in range(2):
        ran("gptme", "codex")
    assert reasons() == {}
    ran("gptme", "claude-code")
    assert reasons() == {"gptme": "substituted: its last 3 sessions today were run by claude-code"}
    assert reasons(now=NOW + timedelta(days=1)) == {}


def test_one_session_of_its_own_keeps_an_arm_in_the_draw():
    for executed in ("codex", "codex", "gptme", "codex"):
        ran("gptme", executed)
    assert reasons() == {}


def test_an_arm_whose_decisions_come_to_nothing_says_so():
    """I84: thousands of decisions, and no session."""
    for i in range(10):
        last = decide(f"d{i}", supply={"code": 1})
    assert last.explanation["sentences"][1:2] != ["None of code's last 10 decisions led to a finished session."]
    assert decide("d10", supply={"code": 1}).explanation["sentences"][1] == (
        "None of code's last 10 decisions led to a finished session."
    )
    complete(last, observation="s1", executed_arm="code", now=NOW)
    assert "None of code's" not in " ".join(decide("d11", supply={"code": 1}).explanation["sentences"])


def test_an_arm_without_work_in_most_decisions_is_bound_by_supply():
    """I97: a greater weight for an empty lane changes nothing."""
    for i in range(20):
        decide(f"d{i}", supply={"code": 1, "news": 0} if i < 18 else {"code": 1, "news": 1, "infra": 1})
    bound = supply_bound(Bandit.objects.get(name="category"))
    assert (bound["news"], bound["infra"], bound["triage"]) == (18, 18, 20)
    assert "code" not in bound
