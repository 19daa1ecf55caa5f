"""A policy is a version: refused in words, shown before it holds, put back by one more row (I72, I141, I142)."""

import math
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from bandit.core.machine_human import MachineHumanPair, advise_cap
from bandit.core.policy import MIN_HALF_LIFE, memory
from bandit.models import Bandit, UnknownBandit
from bandit.policies import NUMBERS, costs_of, find_policy_version, new_site_numbers, numbers_of, preview, set_policy
from bandit.reading import policy_of, posterior_of, rows_of, version_of
from bandit.versions import StaleVersion
from tests.bandit.helpers import DAY, policy, reward, with_cost

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _the_day():
    with time_machine.travel(NOW, tick=False):
        yield


def category():
    return Bandit.objects.get(name="category")


def teach(days=10, a_day=3):
    for age in range(1, days + 1):
        for i in range(a_day):
            day = DAY - timedelta(days=age)
            reward(f"code-{age}-{i}", day=day, code=0.7)
            reward(f"infra-{age}-{i}", day=day, source="journal", infra=0.4)


def put(numbers, *, version=2, **fields):
    return set_policy("category", numbers, version=version, by="otto", **fields)


def refused(numbers):
    with pytest.raises(ValidationError) as caught:
        put(numbers)
    assert version_of(category()).version == 1
    return caught.value


def test_a_new_version_holds_from_now_on_and_keeps_what_was_not_said():
    before = category().revision
    made = put({"half_life_days": 14, "weights": {"journal": 0.1}}, note="the journal flatters")
    assert version_of(category()) == made
    assert (made.version, made.by, made.note) == (2, "otto", "the journal flatters")
    assert (made.half_life_days, made.prior_strength) == (14, 12)
    policy = policy_of(category())
    assert (policy.half_life, policy.weights["journal"], policy.weights["judge"]) == (14, 0.1, 1)
    assert category().revision != before


def test_taking_back_appends_the_earlier_numbers():
    teach()
    first = posterior_of("category", NOW).posterior
    put({"half_life_days": 7, "caps": {"journal": 5}, "exploration": 0.02})
    assert posterior_of("category", NOW).posterior.alpha.tobytes() != first.alpha.tobytes()
    earlier = find_policy_version(category(), 1)
    back = set_policy("category", numbers_of(earlier), version=3, by="rita")
    assert numbers_of(back) == numbers_of(earlier)
    assert posterior_of("category", NOW).posterior.alpha.tobytes() == first.alpha.tobytes()
    with pytest.raises(ValueError, match="has had no policy 9; its versions are 1 to 3"):
        find_policy_version(category(), 9)


def test_a_stale_page_changes_nothing():
    put({"exploration": 0.02})
    with pytest.raises(StaleVersion, match="the next version is 3, not"):
        put({"exploration": 0.04})
    with pytest.raises(StaleVersion):
        put({"exploration": 0.04}, version=4)
    with pytest.raises(UnknownBandit):
        set_policy("moods", {}, version=1, by="otto")
    assert category().policies.count() == 2


def test_a_memory_of_fewer_than_three_days_is_refused_with_the_number():
    """I72: a memory of about one day."""
    said = refused({"half_life_days": 1}).message_dict["half_life_days"]
    assert said[0] == (
        "With a half-life of 1 days the bandit remembers 2.0 days of its traffic, 1 ÷ (1 − 2^(−1/1)). "
        "At least 3 are expected: a half-life from 1.71 days on."
    )
    put({"half_life_days": 1.71})


def test_a_cap_that_holds_fewer_than_three_days_of_traffic_is_refused_with_the_number():
    """I76 asks for a cap, I72 for its bound: 3 judge grades a day, each worth e = 6, are 18 a day."""
    teach()
    said = refused({"evidence_scale": 6, "evidence_cap": 50}).message_dict["evidence_cap"]
    assert said[0] == (
        "A cap of 50 pseudo-observations holds 2.8 days of the busiest arm's traffic, 18.0 a day. "
        "At least 3 days are expected: a cap from 54 on, or none."
    )
    put({"evidence_scale": 6, "evidence_cap": 54})


def test_a_cap_without_traffic_says_nothing_yet():
    assert put({"evidence_cap": 1}).evidence_cap == 1


@given(half_life=st.floats(0.1, 1000))
def test_memory_is_the_sum_of_all_weights(half_life):
    lam = 2 ** (-1 / half_life)
    days = memory(half_life).days
    assert math.isclose(days, 1 / (1 - lam), rel_tol=1e-9)
    assert (days < 3) == (half_life < MIN_HALF_LIFE) or math.isclose(half_life, MIN_HALF_LIFE)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"half_life_days": -1}, "A half-life is a number of days above 0."),
        ({"half_life_days": 200}, "The long-run half-life is at least as long"),
        ({"prior_strength": 4}, "at least 5 pseudo-observations"),
        ({"evidence_scale": 9}, "from 1 to 8"),
        ({"floor": 1.5, "exploration": None}, "a chance from 0 to 1"),
        ({"floor": 0.05}, "No arm has a floor of its own while 0.005 is shared"),
        ({"exploration": 0.6}, "a chance from 0 to .5"),
        ({"sharpness": 0.5}, "a power from 1 to 4"),
        ({"follows_change": 1}, "true or false; got 1"),
        ({"floor": math.nan}, "Expected a number up to 1,000,000; got nan"),
        ({"half_life_days": math.inf, "long_run_half_life_days": math.inf}, "Expected a number"),
        ({"floor": "lots"}, "got 'lots'"),
        ({"floor": True}, "got True"),
        ({"evidence_cap": 0}, "A cap on evidence is above 0"),
        ({"cost_weight": -0.1}, "a number from 0"),
        ({"consumption_boost": 0.9}, "The boost is a factor of at least 1"),
        ({"probation_sessions": 0}, "at least 1 rewarded session"),
        ({"consumption_per_day": 1.5}, "Expected a whole number; got 1.5."),
        ({"holdout": 0.6}, "the holdout a chance from 0 to .5"),
        ({"weights": {"journal": 1.5}}, "Of journal: expected a number from 0 to 1; got 1.5."),
        ({"weights": {"judge": math.nan}}, "got nan"),
        ({"weights": {"floor": 0.5}}, "got 'floor'. It never carries evidence."),
        ({"weights": {"moods": 0.5}}, "The sources are consumption, human, journal, judge, trajectory; got 'moods'."),
        ({"weights": [1]}, "Expected a number for each source"),
        ({"caps": {"journal": 0}}, "Of journal: expected a number above 0; got 0."),
        ({"mood": 1}, "got mood as well"),
    ],
)
def test_a_number_out_of_range_is_refused_in_words(numbers, words):
    assert words in " ".join(refused(numbers).messages)


def test_only_what_differs_from_the_sites_own_weights_is_kept():
    assert put({"weights": {"journal": 0.3, "judge": 0.9}}).weights == {"judge": 0.9}


def test_a_preview_is_what_then_holds():
    teach()
    seen = preview("category", {"half_life_days": 5, "weights": {"journal": 0}}, NOW)
    assert version_of(category()).version == 1
    assert seen.before.posterior.alpha.tobytes() == posterior_of("category", NOW).posterior.alpha.tobytes()
    put({"half_life_days": 5, "weights": {"journal": 0}})
    held = posterior_of("category", NOW)
    assert held.posterior.version == seen.after.posterior.version
    assert held.chances == seen.after.chances
    with pytest.raises(ValidationError, match=r"remembers 1\.5 days"):
        preview("category", {"half_life_days": 0.6}, NOW)


def test_every_number_of_a_version_may_be_set():
    assert {"half_life_days", "weights", "caps", "cost_weight", "holdout"} <= set(NUMBERS)
    assert not {"by", "note", "version", "bandit", "created_at", "id"} & set(NUMBERS)


def test_costs_come_with_their_coverage_and_below_80_percent_as_a_lower_bound():
    """I142, a cost that nobody told taken for nothing: impossible. Figures of cost carry their coverage; below 80 %
    they are a lower bound.
    """
    with_cost("s1", 0.5, usd=2.0, arm="code")
    for i in range(3):
        with_cost(f"t{i}", 0.5, usd=None, arm="code")
    cost = costs_of(rows_of(category(), policy_of(category()), DAY))["code"]
    assert (cost.n, cost.costed, cost.coverage) == (4, 1, 0.25)
    assert (cost.each, cost.at_least) == (2.0, 0.5)


def test_without_any_known_cost_there_is_no_figure():
    with_cost("s1", 0.5, usd=None, arm="code")
    cost = costs_of(rows_of(category(), policy_of(category()), DAY))["code"]
    assert (cost.each, cost.at_least) == (None, None)


def pair(machine, human, *, source="journal", probability=0.2):
    return MachineHumanPair(
        arm="code", source=source, stratum="", machine=machine, human=human, probability=probability
    )


def test_the_advised_cap_by_hand():
    """Differences +.2, +.4, +.3 of people's .4, .4, .4: b = .3, σ_f² = .01, so .24 / (.09 + .01/3)."""
    found = advise_cap([pair(0.6, 0.4), pair(0.8, 0.4), pair(0.7, 0.4)], "journal")
    assert found.bias == pytest.approx(0.3)
    assert found.bias_variance == pytest.approx(0.01 / 3)
    assert found.cap == pytest.approx(0.24 / (0.09 + 0.01 / 3))
    # 0.40·(1 − 0.40) ÷ (0.30² + 0.0033) = 2.6
    assert (found.pairs, round(found.cap, 1)) == (3, 2.6)


def test_a_session_drawn_half_as_likely_counts_twice():
    found = advise_cap([pair(0.7, 0.4), pair(0.4, 0.4, probability=0.1)], "journal")
    assert found.bias == pytest.approx(0.1)


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [pair(0.6, 0.4)],
        [pair(0.5, 0.5), pair(0.5, 0.5)],
        [pair(0.6, 0.4, source="judge"), pair(0.6, 0.4)],
        [pair(0.6, 0), pair(0.6, 0)],
    ],
)
def test_too_few_pairs_or_no_error_advise_nothing(pairs):
    assert advise_cap(pairs, "journal") is None


@pytest.mark.parametrize("bandit", ["category", "harness", "lesson"])
def test_a_new_site_begins_with_the_numbers_of_a_new_site(bandit):
    assert new_site_numbers(version_of(Bandit.objects.get(name=bandit))) == {}


def test_only_a_bandit_that_holds_arms_out_is_offered_another_holdout():
    for name in ("category", "lesson"):
        policy(name, holdout=0.1, holdout_decided=None, agent_cap_alone=10)
    offered = [new_site_numbers(version_of(Bandit.objects.get(name=name))) for name in ("category", "lesson")]
    assert offered == [{}, {"holdout": 0.4, "holdout_decided": 0.05}]
