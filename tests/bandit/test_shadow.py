"""Shadow mode: a variant on the log, from what was known at each draw, and no more said than the log bears."""

import io
import re
from datetime import timedelta

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.utils import timezone

from bandit import merging
from bandit.models import Arm, LedgerEntry
from bandit.selection import complete, select
from bandit.shadow import shadow
from tests.casts.log import NOW, START, WORTH, grade, live, session, variant

pytestmark = pytest.mark.django_db


def test_a_policy_is_its_own_shadow():
    """The replay gives every draw the very odds it was made with, late corrections and feedback of reading included."""
    live(12)
    with time_machine.travel(START + timedelta(days=2), tick=False):
        grade("060-2", "infra", START, worth=0.2)
    live(12, start=START + timedelta(days=2))
    report = shadow(variant(), NOW)
    found = report.comparison
    assert (report.used, report.looked_at) == (24, 24)
    assert (found.largest, found.effective) == (pytest.approx(1, abs=1e-12), pytest.approx(24))
    assert found.gain.mean == pytest.approx(0, abs=1e-12)
    assert all(share.ran == pytest.approx(share.would) for share in report.shares)


def test_a_variant_is_asked_with_what_was_known_then():
    """A correction that came after the last draw changes what was earned, and no odds."""
    live(12)
    before = shadow(variant(exploration=0.4), NOW)
    with time_machine.travel(NOW, tick=False):
        grade("060-0", "code", START, worth=0.1)
    after = shadow(variant(exploration=0.4), NOW)
    assert after.shares == before.shares
    assert after.comparison.levels.earned.mean < before.comparison.levels.earned.mean


def test_the_report_says_what_a_variant_would_do_and_earn():
    live(48)
    report = shadow(variant(exploration=0.15), NOW)
    assert report.bandit == "category"
    assert report.variant == "category/2"
    assert report.comparison.doubt == ""
    assert report.comparison.gain.mean < 0
    shares = {share.arm: share for share in report.shares}
    assert shares["triage"].would > shares["triage"].ran > 0
    assert shares.keys() == WORTH.keys()
    assert sum(share.would for share in report.shares) == pytest.approx(100)
    assert report.sentence.startswith("Over 48 of the last 48 decisions, an effective sample of ")
    assert "the variant would have earned −0." in report.sentence
    assert " That is 0." in report.sentence
    assert report.first == START
    assert report.last <= START + timedelta(days=8)


def test_too_small_a_sample_tells_nothing():
    live(12)
    assert shadow(variant(exploration=0.5), NOW).sentence.startswith("Cannot tell yet: effective sample 1")


def test_a_reading_now_and_then_says_nearly_the_same():
    live(24)
    exact, fast = (shadow(variant(half_life_days=3), NOW, every=every) for every in (1, 5))
    assert fast.shares != exact.shares
    assert fast.comparison.effective == pytest.approx(exact.comparison.effective, rel=0.15)


def test_an_empty_log_tells_nothing():
    report = shadow(variant(), NOW)
    assert (report.used, report.looked_at, report.comparison, report.shares) == (0, 0, None, ())
    assert report.sentence == "Cannot tell yet: none of 0 decisions was drawn, finished and rewarded."


def test_what_is_no_rewarded_draw_is_left_out_and_counted():
    live(4)
    session("insisted", START + timedelta(days=1), override="code")
    select(bandit="category", decision_id="open", supply=None, now=START + timedelta(days=1))
    dead = select(bandit="category", decision_id="dead", supply=None, now=START + timedelta(days=1))
    complete(dead, observation="session:dead", executed_arm="code", now=NOW)
    report = shadow(variant(), NOW)
    assert (report.used, report.looked_at) == (4, 7)
    assert report.left_out == {"insisted on, not drawn": 1, "not finished": 1, "without a reward": 1}
    assert report.comparison.rewarded == pytest.approx(4 / 6)


def test_a_log_with_draws_that_were_never_rewarded_tells_the_gain_alone():
    live(48)
    for number in range(4):
        select(bandit="category", decision_id=f"open-{number}", supply=None, now=START + timedelta(days=9))
    report = shadow(variant(exploration=0.15), NOW)
    assert report.comparison.levels is None
    assert "the variant would have earned −0." in report.sentence
    assert "How much either earned cannot be told: 8 % of the draws have no reward" in report.sentence


def test_only_the_last_decisions_are_looked_at():
    live(12)
    report = shadow(variant(), NOW, limit=5)
    assert (report.used, report.looked_at) == (5, 5)
    assert shadow(variant(), START + timedelta(hours=3)).looked_at == 2
    with pytest.raises(ValueError, match="one decision at least; got a limit of 0"):
        shadow(variant(), NOW, limit=0)


def test_a_pivot_counts_for_the_arm_that_was_drawn():
    """What a choice leads to is part of what it earns: the reward of the work that ran instead of it."""
    live(4)
    drawn = select(bandit="category", decision_id="p", supply={"triage": 1}, now=START + timedelta(days=1))
    complete(drawn, observation="session:p", executed_arm="code", now=NOW)
    grade("p", "code", START)
    assert shadow(variant(), NOW).used == 5


def test_an_arm_that_was_merged_since_counts_as_what_it_was():
    live(8)
    merging.merge(Arm.objects.resolve("category", "infra"), Arm.objects.resolve("category", "code"), by="otto")
    report = shadow(variant(), NOW)
    assert report.used == 8
    assert report.comparison.largest == pytest.approx(1)


def test_nothing_is_saved():
    live(12)
    entries = LedgerEntry.objects.count()
    shadow(variant(half_life_days=5), NOW)
    assert LedgerEntry.objects.count() == entries


def test_a_price_on_cost_is_said_to_be_no_part_of_the_rewards():
    live(32)
    assert shadow(variant(cost_weight=0.1), NOW).sentence.endswith(
        "Its price on cost is in its odds, not in these rewards."
    )


def test_a_watcher_sees_every_draw():
    live(12)
    seen = []
    shadow(variant(), NOW, watch=lambda draws: (seen.append(draw) or draw for draw in draws))
    assert [draw.arm for draw in seen] == [draw.arm for draw in sorted(seen, key=lambda draw: draw.at)]
    assert len(seen) == 12


def told(*arguments):
    out = io.StringIO()
    call_command("shadow", "category", *arguments, stdout=out, verbosity=0)
    return out.getvalue()


def test_the_command_tells_the_report():
    live(36, start=timezone.now() - timedelta(days=20))
    text = told("--exploration", "0.5", "--half-life", "14", "--weight", "journal=0.1")
    assert text.startswith("category/2: 36 of the last 36 decisions.\n")
    assert "doubly robust" in text
    assert re.search(r"triage +\d+\.\d +\d+\.\d\n", text)
    assert text.endswith(shadow(variant(exploration=0.5, half_life_days=14), timezone.now()).sentence + "\n")


def test_the_command_on_an_empty_log():
    assert told() == (
        "category/2: 0 of the last 0 decisions.\n"
        "Cannot tell yet: none of 0 decisions was drawn, finished and rewarded.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--exploration", "2"), "from 0 to .5"),
        (("--half-life", "0"), "above 0"),
        (("--weight", "journal"), "journal"),
        (("--weight", "journal=2"), "from 0 to 1"),
        (("--limit", "0"), "at least"),
    ],
)
def test_the_command_refuses_a_policy_that_cannot_be(arguments, words):
    with pytest.raises(CommandError, match=words):
        told(*arguments)


def test_the_command_names_the_bandits_there_are():
    with pytest.raises(CommandError, match="there is no bandit 'nosuch'; there are: category"):
        call_command("shadow", "nosuch")
