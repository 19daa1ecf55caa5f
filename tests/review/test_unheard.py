"""Arms that are known only by what could be seen: marked, and where it matters five of their sessions go to people."""

import datetime as dt
import re
import secrets
from html import unescape

import pytest
import time_machine
from django.utils import timezone

from bandit import arms
from bandit.models import Arm, Bandit
from bandit.silence import heard_arms, unheard_arms
from grading import tasks
from grading.models import Flag, JudgeJob, ReviewItem, Session
from grading.models.review import Answer, ItemState
from grading.monitoring.alarms import open_alarms
from grading.monitoring.watch import watch
from grading.review import answers, corrections
from grading.review.unheard import GRADING_SOURCES, flag_unheard
from grading.reward import rewards
from grading.vocabulary import Source
from tests.casts.page import flat
from tests.site import NOON, Site

pytestmark = pytest.mark.django_db
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOON, tick=False) as moving:
        yield moving


def graded(site, arm, value, n, source=Source.JUDGE):
    for number in range(n):
        site.session(arm, ago=DAY + number * HOUR).graded(source, value).settle()


def silent(site, arm, n, ago=DAY):
    return [site.session(arm, ago=ago + number * HOUR).abstained().settle() for number in range(n)]


@pytest.fixture(scope="module")
def run(django_db_setup, django_db_blocker):
    """An arm that looks best by the part of it that was seen, and one that is a little worse by all of it.

    Returns its silent sessions. Built once: tests that need a site without it come first in the module.
    """
    site = Site()
    with django_db_blocker.unblock(), site.rolled_back():
        with time_machine.travel(NOON, tick=False):
            graded(site, "code", 0.8, 17)
            graded(site, "infra", 0.7, 17)
            graded(site, "news", 0.2, 17)
            made = silent(site, "code", 23)
        yield Session.objects.filter(pk__in=[each.pk for each in made]).order_by("pk")


def flagged(arm="code"):
    return sorted(Flag.objects.filter(rule="A36").of_arm(arm).open().values_list("session", flat=True))


def unheard():
    return unheard_arms("category", NOON, sources=GRADING_SOURCES, excluded=frozenset())


def page(site, client, path="/bandits/category/"):
    client.force_login(site.person(f"vera-{path}-{timezone.now():%f}-{secrets.token_hex(3)}", "viewer"))
    return re.sub(r"<[^>]+>", "", unescape(flat(client.get(path))))


MARK = "Possibly biased mean:"


# ---- sites without that arm


def test_an_empty_site_asks_nobody():
    assert flag_unheard() == 0


def test_fewer_than_five_silent_sessions_or_older_ones_ask_nobody(site):
    graded(site, "code", 0.8, 16)
    silent(site, "code", 4)
    silent(site, "infra", 5, ago=28 * DAY)
    assert flag_unheard() == 0
    silent(site, "code", 1, ago=DAY + 4 * HOUR)
    assert flag_unheard() == 5


def test_an_arm_whose_sessions_all_have_a_grade_is_not_marked(site, client):
    graded(site, "code", 0.8, 3)
    graded(site, "infra", 0.4, 3, Source.TRAJECTORY)
    assert MARK not in page(site, client)


# ---- which arms are unheard


def test_an_arm_with_one_graded_abstention_is_heard(run, rita):
    bandit, today = Bandit.objects.get(name="category"), NOON.date()
    days = (today - 27 * DAY, today)
    assert list(unheard()) == ["code"]
    assert heard_arms(bandit, days, GRADING_SOURCES, arms={"code"}) == set()
    corrections.record_correction(run[3], rita, value=0.1, reason="it did nothing")
    assert heard_arms(bandit, days, GRADING_SOURCES, arms={"code"}) == {"code"}
    assert unheard() == {}
    assert heard_arms(bandit, days, GRADING_SOURCES, NOON - HOUR, arms={"code"}) == set()
    corrections.undo(run[3].grades.get(source="human"), rita, reason="that was another one")
    assert heard_arms(bandit, days, GRADING_SOURCES, arms={"code"}) == set()


def test_a_fallback_that_comes_later_is_no_voice(run, site):
    site.on(run[0]).graded(Source.JOURNAL, 0.6)
    rewards.settle(run[0])
    assert len(unheard()["code"]) == 22


def test_an_arm_that_is_not_chosen_is_not_asked_about(run):
    arms.pause(Arm.objects.resolve("category", "code"), by="otto")
    assert unheard() == {}


# ---- five go to a person


def test_five_drawn_at_random_go_to_a_person(run):
    """I23: a person grades some of the sessions that leave nothing to grade."""
    assert flag_unheard() == 5
    assert set(flagged()) < {each.pk for each in run.all()}
    detail = Flag.objects.filter(rule="A36").first().detail
    assert detail == (
        "23 sessions of code in the last 28 days left nothing to grade, and nobody has graded any of them. This "
        "session is one of 5 that were drawn at random to represent them."
    )
    items = ReviewItem.objects.filter(session__in=flagged())
    assert {(each.state, each.entered_as) for each in items} == {(ItemState.OPEN, "rule")}
    watch()
    (alarm,) = open_alarms().filter(rule="A36")
    assert alarm.about == "code"
    assert alarm.detail.startswith("5 sessions wait for review")


def test_who_knows_the_sessions_but_not_the_key_does_not_know_which(run, site, settings):
    def drawn():
        with site.rolled_back():
            flag_unheard()
            return sorted(Session.objects.filter(pk__in=flagged()).values_list("external_id", flat=True))

    first = drawn()
    assert drawn() == first
    settings.CHANCE_KEY = bytes(range(32, 64))
    assert drawn() != first


def test_it_is_not_asked_again_while_they_wait_nor_within_four_weeks(run, site, clock, rita):
    assert flag_unheard() == 5
    first = flagged()
    assert flag_unheard() == 0
    for each in ReviewItem.objects.filter(session__in=first):
        answers.submit(each.session, rita, answer=Answer.CANNOT_JUDGE, reason="nothing to be seen for me either")
    assert flagged() == []
    clock.shift(27 * DAY)
    assert flag_unheard() == 0
    clock.shift(2 * DAY)
    assert flag_unheard() == 0
    silent(site, "code", 5, ago=-28 * DAY)
    assert flag_unheard() == 5
    assert not set(flagged()) & set(first)


def test_a_grade_of_one_of_them_ends_the_question_and_leaves_the_others_waiting(run, rita):
    flag_unheard()
    first, *others = flagged()
    corrections.record_correction(Session.objects.get(pk=first), rita, value=0.4, reason="half of it")
    assert flag_unheard() == 0
    assert flagged() == others


def test_one_that_the_judge_grades_meanwhile_leaves_the_queue(run, site):
    flag_unheard()
    judged, *others = flagged()
    made = Session.objects.get(pk=judged)
    site.on(made).judged(0.3).settle()
    flag_unheard()
    assert flagged() == others
    assert Flag.objects.get(session=made, rule="A36").cleared_why == "it has a grade now"
    assert not ReviewItem.objects.filter(session=made, state=ItemState.OPEN, entered_as="rule").exists()


def test_verdicts_that_were_asked_for_today_are_waited_for_and_those_of_an_outage_are_not(run, site, clock):
    for each in run.all():
        site.on(each).with_judge_job()
    assert flag_unheard() == 0
    clock.shift(DAY + HOUR)
    assert flag_unheard() == 5
    assert JudgeJob.objects.open().count() == 23


def test_it_is_looked_at_every_night(run):
    tasks.at_night()
    assert len(flagged()) == 5


# ---- the page


def test_the_arm_is_marked_until_somebody_has_graded_one(run, site, client, rita):
    shown = page(site, client)
    assert shown.count(MARK) == 1
    assert "Possibly biased mean: 23 of 40 sessions left nothing to grade" in shown
    assert MARK in page(site, client, "/bandits/harness/")
    flag_unheard()
    assert "5 randomly drawn sessions wait for a person" in page(site, client)
    corrections.record_correction(run[0], rita, value=0.4, reason="half of it")
    assert MARK not in page(site, client)


def test_the_past_is_marked_as_it_was(run, site, client, rita, clock):
    clock.shift(2 * DAY)
    corrections.record_correction(run[0], rita, value=0.4, reason="half of it")
    assert MARK not in page(site, client)
    assert MARK in page(site, client, f"/bandits/category/?at=2026-03-31&known={NOON + DAY:%Y-%m-%dT%H:%M}")
