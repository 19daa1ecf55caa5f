"""The bandit of harnesses and models shares what is known of both, by a number of its policy that can be taken back."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.exceptions import ValidationError

from bandit import arms, merging
from bandit.models import Arm, Bandit
from bandit.policies import find_policy_version, numbers_of, preview, set_policy
from bandit.reading import parts_of, posterior_of, version_of
from bandit.selection import complete, select
from bandit.whatif import what_if_rows, what_if_without
from tests.bandit.helpers import DAY, reward, what_if

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
PAIRS = ("claude-code/opus", "claude-code/haiku", "codex/opus", "codex/haiku")


@pytest.fixture(autouse=True)
def _the_day():
    with time_machine.travel(NOW, tick=False):
        yield


def harness():
    return Bandit.objects.get(name="harness")


def pairs(*names):
    return {name: arms.add("harness", name, by="otto") for name in names or PAIRS}


def teach(days=10, *, but=()):
    worth = {"claude-code/opus": 0.8, "claude-code/haiku": 0.6, "codex/opus": 0.6, "codex/haiku": 0.4}
    for age in range(1, days + 1):
        for name, value in worth.items():
            if name not in but:
                day = DAY - timedelta(days=age)
                reward(f"{name}-{age}", bandit="harness", day=day, **{name: value + 0.1 * (-1) ** age})


def believed(**known):
    return posterior_of("harness", NOW, **known).posterior


def bits(posterior):
    return posterior.version, posterior.alpha.tobytes(), posterior.beta.tobytes()


def put(pooling):
    version = version_of(harness()).version + 1
    return set_policy("harness", {"pooling": pooling}, version=version, by="otto")


def test_a_new_site_shares_from_the_start_and_only_there():
    assert version_of(harness()).pooling
    assert version_of(harness()).by == "installation"
    assert not any(version_of(Bandit.objects.get(name=name)).pooling for name in ("category", "lesson", "model"))


def test_a_pair_that_was_never_tried_starts_where_harness_and_model_stand():
    pairs()
    teach(but=("claude-code/opus",))
    found = believed().arms
    assert found["claude-code/opus"].mean > 0.55
    assert found["claude-code/opus"].shared.mean > found["codex/opus"].shared.mean
    assert found["claude-code/opus"].shared.parts == ("claude-code", "opus")
    assert found["claude-code"].shared.parts == ("claude-code", "")
    # No arm has gptme as a part: it shares nothing.
    assert found["gptme"].shared is None


def test_without_pooling_the_same_rewards_are_read_as_before():
    pairs()
    teach()
    pooled = believed()
    put(pooling=False)
    alone = believed()
    assert alone.pooled is None
    assert bits(alone) != bits(pooled)
    assert alone.policy.parts == {}
    put(pooling=True)
    assert believed().alpha.tobytes() == pooled.alpha.tobytes()


def test_arms_without_parts_share_nothing_though_the_policy_would():
    """The categories' bandit, bit for bit."""
    reward("s1", code=0.8, day=DAY - timedelta(days=1))
    before = posterior_of("category", NOW).posterior
    set_policy("category", {"pooling": True}, version=2, by="otto")
    after = posterior_of("category", NOW).posterior
    assert after.pooled is None
    assert (after.alpha.tobytes(), after.beta.tobytes()) == (before.alpha.tobytes(), before.beta.tobytes())
    assert after.policy.parts == {}


def test_a_merged_harness_or_model_counts_as_what_it_was_merged_into():
    made = pairs(*PAIRS, "clyde/opus")
    clyde = arms.add("harness", "clyde", by="otto")
    models = {name: arms.add("model", name, by="otto") for name in ("opus", "opus-4", "haiku")}
    merging.merge(clyde, Arm.objects.get(bandit__name="harness", name="claude-code"), by="otto")
    merging.merge(models["opus"], models["opus-4"], by="otto")
    found = parts_of(harness())
    assert found["clyde/opus"] == ("claude-code", "opus-4")
    assert found["codex/opus"] == ("codex", "opus-4")
    assert found["codex/haiku"] == ("codex", "haiku")
    assert found["clyde"] == ("claude-code", "")
    assert "gptme" not in found
    assert made.keys() <= found.keys()


@pytest.mark.parametrize(("one", "into"), [("clyde", "codex"), ("clyde/opus", "codex/opus")])
def test_the_preview_of_a_merge_is_what_comes_of_it(one, into):
    made = pairs(*PAIRS, "clyde/opus", "clyde/haiku", "clyde")
    teach()
    for age in range(1, 6):
        for name, value in (("clyde/opus", 0.1), ("clyde/haiku", 0.2)):
            reward(f"{name}-{age}", bandit="harness", day=DAY - timedelta(days=age), **{name: value})
    target = Arm.objects.get(bandit__name="harness", name=into)
    seen = merging.preview_merge(made[one], target, NOW)
    assert bits(seen.before.posterior) == bits(believed())
    merging.merge(made[one], target, by="otto")
    assert bits(seen.after.posterior) == bits(believed())


def test_a_name_is_parted_at_its_first_stroke():
    pairs("codex/openrouter/terra")
    assert parts_of(harness())["codex/openrouter/terra"] == ("codex", "openrouter/terra")


def test_the_preview_does_what_putting_it_in_force_does_and_back():
    pairs()
    teach()
    put(pooling=False)
    seen = preview("harness", {"pooling": True}, NOW)
    assert seen.before.posterior.alpha.tobytes() == believed().alpha.tobytes()
    put(pooling=True)
    assert bits(believed())[1:] == bits(seen.after.posterior)[1:]
    back = set_policy("harness", numbers_of(find_policy_version(harness(), 2)), version=4, by="otto")
    assert not back.pooling
    assert believed().alpha.tobytes() == seen.before.posterior.alpha.tobytes()


@pytest.mark.parametrize("strange", [1, "yes", None, 0.5])
def test_pooling_is_on_or_off(strange):
    with pytest.raises(ValidationError):
        put(strange)
    assert version_of(harness()).version == 1


def test_what_was_believed_then_is_read_with_what_was_in_force_then():
    pairs()
    teach()
    put(pooling=True)
    before = believed(known_by=NOW)
    assert before.pooled is not None
    assert bits(before)[1:] == bits(believed())[1:]
    with time_machine.travel(NOW + timedelta(hours=1), tick=False):
        put(pooling=False)
        reward("late", bandit="harness", day=DAY - timedelta(days=2), **{"codex/opus": 0.1})
        assert bits(believed(known_by=NOW)) == bits(before)
        assert believed().pooled is None


def test_a_correction_of_a_shared_past_gives_its_bits_back():
    pairs()
    teach()
    before = bits(believed())
    reward("codex/opus-3", bandit="harness", day=DAY - timedelta(days=3), **{"codex/opus": 0.0})
    assert bits(believed()) != before
    reward("codex/opus-3", bandit="harness", day=DAY - timedelta(days=3), **{"codex/opus": 0.5})
    assert bits(believed()) == before


def test_a_what_if_moves_what_shares_a_part():
    pairs()
    teach()
    before, after = what_if(
        "codex/opus-3",
        "codex/opus",
        0.0,
        bandit="harness",
        day=DAY - timedelta(days=3),
        now=NOW,
    )
    assert bits(before.posterior) == bits(believed())
    was, will = (each.arms["codex/haiku"].shared for each in (before, after))
    assert will.mean < was.mean
    reward("codex/opus-3", bandit="harness", day=DAY - timedelta(days=3), **{"codex/opus": 0.0})
    assert bits(after.posterior) == bits(believed())
    nothing, without = what_if_without("harness", "judge", NOW)
    assert [arm.mean for arm in without.arms.values()] == pytest.approx([0.5] * len(without.arms))
    assert what_if_rows("harness", {}, NOW)[1].posterior.version == nothing.posterior.version


def test_decisions_are_drawn_from_what_is_shared():
    pairs()
    teach()
    Arm.objects.filter(bandit__name="harness").update(probation=False)
    for number in range(12):
        at = NOW + timedelta(hours=number)
        with time_machine.travel(at, tick=False):
            made = select(bandit="harness", decision_id=f"d{number}", supply=None, now=at)
            assert made.posterior_version == posterior_of("harness", at).posterior.version
        with time_machine.travel(at + timedelta(minutes=30), tick=False):
            complete(made, observation=f"o{number}", executed_arm=made.arm.name, now=at)
            reward(f"o{number}", bandit="harness", day=at.date(), **{made.arm.name: 0.5})


def test_todays_reward_of_an_arm_moves_no_other_today():
    pairs()
    teach()
    before = believed()
    reward("today", bandit="harness", day=DAY, **{"codex/opus": 0.0})
    after = believed()
    moved = [
        name
        for i, name in enumerate(before.names)
        if (before.alpha[i], before.beta[i]) != (after.alpha[i], after.beta[i])
    ]
    assert moved == ["codex/opus"]
