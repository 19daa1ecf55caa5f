"""Incidents of the bandit's arithmetic (I69 to I82)."""

import datetime as dt

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from bandit import policies
from bandit.models import Arm, Bandit, Bucket
from bandit.reading import posterior_of
from grading.monitoring.rule import RULES
from grading.reward import rewards
from grading.vocabulary import Outcome, Source
from tests.bandit.helpers import policy, reward
from tests.casts import lesson as lesson_cast
from tests.casts.page import flat
from tests.site import NOON

pytestmark = pytest.mark.django_db

DAY = NOON.date()


def taught(n: int, *, since: int = 0, source: str = "judge", **means: float) -> None:
    """`n` rewards of each arm around its mean, one a day, the newest `since` days ago."""
    for arm, mean in means.items():
        for i in range(n):
            value = mean + (0.1, -0.1)[i % 2]
            reward(f"{arm}-{source}-{i}-{since}", day=DAY - dt.timedelta(days=since + i), source=source, **{arm: value})


def mean(arm: str, now: dt.datetime = NOON, bandit: str = "category") -> float:
    return posterior_of(bandit, now).arms[arm].mean


def test_i69_graded_rewards_part_what_a_bit_would_call_alike():
    """I69, a bit for a reward collapses exploration: impossible, and an alarm (A9). A reward r adds r to α and 1 − r to
    β; rewards that are all within .02 of each other open the alarm.

    Each of these sessions is a success: as bits the arms had means of .89 to .97, and nothing was explored.
    """
    taught(30, code=0.85, infra=0.65, triage=0.55)
    assert mean("code") - mean("infra") > 0.1
    assert mean("infra") - mean("triage") > 0.02


def test_i70_a_change_of_what_counts_shows_what_it_does_before_it_does_it():
    """I70, a metric that preferred the worse reward: told before. A policy's preview has every arm before and after,
    and is what then holds to the bit. A changed chain has no such preview but `manage.py regrade`.
    """
    taught(20, source="trajectory", code=0.7, infra=0.5)
    taught(20, source="journal", since=1, code=0.3)
    shown = policies.preview("category", {"weights": {"journal": 0.0}}, NOON)
    assert shown.after.arms["code"].mean > shown.before.arms["code"].mean + 0.02
    assert mean("code") == shown.before.arms["code"].mean
    policies.set_policy("category", {"weights": {"journal": 0.0}}, version=2, by="otto")
    assert mean("code") == shown.after.arms["code"].mean


def test_i71_a_bandit_is_never_freed_of_its_own_arms_means():
    """I71, scores normalised inside each category: impossible, and an alarm (A9) within a week. A bandit's baseline is
    another bandit's, by a constraint; +.2 stays more than .1 apart.

    Scores normalised inside each category left every category at .48 to .50.
    """
    category = Bandit.objects.get(name="category")
    assert category.baseline is None
    with pytest.raises(IntegrityError), transaction.atomic():
        Bandit.objects.filter(pk=category.pk).update(baseline=category)
    taught(150, code=0.7, infra=0.5)
    assert mean("code") - mean("infra") > 0.1


def test_i72_a_memory_of_a_day_is_refused_with_the_number():
    """I72, a memory of about one day: refused with the number. Half-life and cap, against the traffic of the busiest
    arm.
    """
    with pytest.raises(ValidationError, match=r"remembers 2\.0 days"):
        policies.set_policy("category", {"half_life_days": 1}, version=2, by="otto")
    assert policies.preview("category", {"half_life_days": 3}, NOON).memory.days > 3


def test_i73_an_arm_whose_record_has_faded_is_named():
    """I73: of 261 selections Beta(1.26, 1.15) was left. Decay by time drains an arm too, and that is told (A52)."""
    taught(60, since=400, code=0.6)
    taught(60, infra=0.5)
    taught(60, source="trajectory", news=0.5)
    (found,) = RULES["A52"].find(NOON)
    assert found.about == "category: code"
    assert "60 rewards of code have decayed to the weight of 0." in found.detail
    taught(40, code=0.6)
    assert list(RULES["A52"].find(NOON)) == []


def test_i73_a_hundred_updates_elsewhere_leave_an_arm_bit_for_bit():
    """I73, all arms decayed at every update: impossible. Decay is by time, at read; rewards of others leave an arm bit
    for bit.
    """
    taught(20, since=1, code=0.45, infra=0.6)
    code = posterior_of("category", NOON).arms["code"]
    for i in range(120):
        reward(f"today-{i}", day=DAY, infra=0.9)
    after = posterior_of("category", NOON).arms["code"]
    assert (after.alpha, after.beta) == (code.alpha, code.beta)


def test_i74_a_drought_lifts_no_weak_arm_to_the_prior():
    """I74, a drought lifts a weak arm: impossible. Sixty idle days move the mean by less than .01.

    Cross-repo had a record of .285, and the model said .549 three days into a drought.
    """
    taught(120, code=0.6)
    for i in range(120):
        reward(f"weak-{i}", day=DAY - dt.timedelta(days=i), **{"cross-repo": 0.285})
    held = mean("cross-repo")
    for i in range(1, 61):
        day = DAY + dt.timedelta(days=i)
        reward(f"meanwhile-{i}", day=day, code=0.6)
    assert abs(mean("cross-repo", NOON + dt.timedelta(days=60)) - held) < 0.01


@pytest.mark.parametrize(("past", "lately"), [(0.3, 0.7), (0.7, 0.3)], ids=["optimistic", "sceptical"])
def test_i75_an_arm_that_is_expected_to_differ_from_its_record_opens_no_alarm(site, client, past, lately):
    """I75, an alarm that fires on caution as on optimism: impossible. No alarm compares an arm's mean with its record;
    the bandit's page has both beside each other.
    """
    today = timezone.localdate()
    for i in range(60):
        reward(f"past-{i}", day=today - dt.timedelta(days=90 + i), infra=past)
        reward(f"lately-{i}", day=today - dt.timedelta(days=i // 2), infra=lately)
        reward(f"other-{i}", day=today - dt.timedelta(days=i), code=0.5)
    now = timezone.now()
    assert [found for rule in RULES.values() for found in rule.find(now) if "infra" in found.about] == []
    client.force_login(site.person("vera", "viewer"))
    (row,) = (row for row in client.get("/bandits/category/").context["rows"] if row.arm.name == "infra")
    assert row.record.raw == pytest.approx(0.5)
    assert abs(row.posterior.mean - row.record.raw) > 0.1


def test_i76_no_arm_stands_at_fifteen_thousand_observations():
    """I76, frozen at 15,000 observations: impossible with a cap. The newest evidence counts up to the cap, and one
    reward still moves the mean by more than .002.
    """
    taught(100, code=0.55)
    policy(half_life_days=100_000, long_run_half_life_days=100_000, evidence_cap=300, evidence_scale=6)
    found = posterior_of("category", NOON).arms["code"]
    assert found.alpha + found.beta == pytest.approx(312)
    reward("one-more", day=DAY, code=0.0)
    assert found.mean - mean("code") > 0.002


def test_i78_every_bandit_learns_from_the_ledger_in_the_same_settling():
    """I78, a bandit that never gets the grade: impossible. One settling credits every bandit.

    Three of four bandits were wired up: 105 lessons had selections and no rewards for 87 sessions.
    """
    lesson_cast.session(0.7, read_the_diff=None)
    learnt = dict(Bucket.objects.values_list("bandit__name", "n"))
    assert learnt == {"category": 1, "harness": 1, "lesson": 1}
    lesson_cast.session(None, read_the_diff=None)
    assert dict(Bucket.objects.values_list("bandit__name", "n")) == learnt


def test_i79_a_page_says_productive_raw_and_read_means_side_by_side(site, client):
    """I79, an internal counter read as success: impossible. Productive, raw and read means, infrastructure failures and
    the very rewards stand side by side.
    """
    client.force_login(site.person("vera", "viewer"))
    for i in range(4):
        lesson_cast.session(0.9 if i < 2 else 0.1, at=timezone.now() - dt.timedelta(days=i + 1))
    html = flat(client.get("/bandits/category/"))
    for words in ("roductive", "nfrastructure"):
        assert words in html


def test_i81_a_winner_declared_early_leaves_the_others_named():
    """I81, a winner declared early: alarm (A51). Below a twentieth of the leader's rewards; exploration keeps every arm
    in the draw.
    """
    taught(248, code=0.62)
    taught(12, infra=0.5)
    taught(6, news=0.55)
    taught(40, source="trajectory", triage=0.2)
    found = {each.about: each.detail for each in RULES["A51"].find(NOON)}
    assert "news has 6 rewards, while code has 248" in found["category: news"]
    assert not {"category: infra", "category: triage"} & found.keys()
    Arm.objects.filter(bandit__name="category", name="news").update(paused=True)
    assert "category: news" not in {each.about for each in RULES["A51"].find(NOON)}
    taught(200, since=1, infra=0.3)
    chances = posterior_of("category", NOON).chances
    assert min(chances.values()) >= 0.005 / len(chances) - 1e-12


def test_i82_an_outage_scars_no_arm_and_what_it_scarred_is_taken_back_exactly(site):
    """I82, infrastructure scars arms: impossible, repaired exactly. An outcome of infrastructure has no reward; one
    that is found later takes it back to the bit.
    """
    taught(5, **{"cross-repo": 0.6})
    before = posterior_of("category", NOON).posterior.version
    session = site.session().graded(Source.TRAJECTORY, 0.05).settle()
    assert posterior_of("category", NOON).posterior.version != before
    session.outcome, session.outcome_reason = Outcome.INFRASTRUCTURE, "the provider was out"
    session.save()
    rewards.settle(session)
    assert posterior_of("category", NOON).posterior.version == before
