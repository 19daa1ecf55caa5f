"""An arm whose sessions leave nothing to grade: one alarm, its arithmetic in words, and three ways out."""

import datetime as dt
import random
import re
import uuid
from html import unescape

import pytest
import time_machine
from django.utils import timezone

from bandit import arms
from bandit.models import Arm
from grading.models import Alarm, Session, Settlement
from grading.monitoring.alarms import open_alarms, run_rules
from grading.monitoring.arms import find_silence
from grading.monitoring.rule import RULES
from grading.monitoring.streaks import ObservedSession, SessionEnding
from grading.monitoring.watch import watch
from grading.review import corrections
from grading.reward import state
from grading.vocabulary import Outcome, Reason, Source
from tests.casts.page import flat
from tests.site import NOON, Site

pytestmark = pytest.mark.django_db
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
ARMS = ("code", "infra", "news", "triage")
MANY_ARMS = (*ARMS, "content", "research", "social", "cross-repo")


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOON, tick=False) as moving:
        yield moving


def session(site, arm, ago, *, graded, **fields):
    value, reason = (0.5, Reason.NONE) if graded else (None, Reason.NOTHING_OBSERVABLE)
    return site.session(arm, ago=ago, **fields).graded(Source.TRAJECTORY, value, reason).settle()


def usual():
    """Twenty days of four arms, every fifth session without a grade, and no two in a row."""
    settled(
        (arm, NOON - (22 - n) * DAY + place * HOUR, (n + 2 * place) % 5 != 3)
        for n in range(20)
        for place, arm in enumerate(ARMS)
    )


def settled(rows):
    """Sessions from (arm, when it ended, whether it has a grade), with no more than their settlement."""
    arms_by_name = {row.name: row for row in Arm.objects.filter(bandit__name="category")}
    bob = Site().agent()
    rows = list(rows)
    sessions = Session.objects.bulk_create(
        Session(
            agent=bob, external_id=f"{arm} {ended_at} {uuid.uuid4()}", category=arms_by_name[arm], ended_at=ended_at
        )
        for arm, ended_at, _ in rows
    )
    Settlement.objects.bulk_create(
        Settlement(
            session=each,
            revision=1,
            value=0.5 if graded else 0.1,
            source=Source.TRAJECTORY if graded else Source.FLOOR,
            final=False,
            weight=0,
            steps=[],
        )
        for each, (_, _, graded) in zip(sessions, rows, strict=True)
    )
    list(state.rebuild(repair=True))


def silent(site, arm, n, *, since=1 * DAY, **fields):
    return [session(site, arm, since - number * HOUR, graded=False, **fields) for number in range(n)]


def look():
    """What the rule's alarms say now, without all the other rules."""
    run_rules([RULES["A14"]], timezone.now())
    return told()


def told():
    return list(open_alarms().filter(rule="A14").order_by("pk").values_list("about", "detail"))


def test_a_run_is_one_alarm_that_says_its_arithmetic(site, clock):
    """I23, I48, sessions without a grade, so that a broken arm looks good for ever: alarm (A14). Refused requests and
    silent failures have no number; a run of them that is too long for chance is told, with three ways out.
    """
    usual()
    watch()
    assert told() == []
    silent(site, "code", 9)
    clock.shift(HOUR)  # in which the rule does not look
    watch()
    ((about, detail),) = told()
    assert about == "code"
    assert detail.startswith("9 sessions in a row from 30 Mar 12:00 UTC to 30 Mar 20:00 UTC: 9 could not be graded.")
    others, both = (12 + 1) / 62, (20 * 13 / 62 + 4) / 40
    said = re.search(r"The other arms’ rate is (\d+) %, or (\d+) % with .+ happens once in (.+) runs", detail)
    assert [int(said[1]), int(said[2])] == [round(100 * others), round(100 * both)]
    assert int(said[3].replace(",", "")) == int(float(f"{both**-9:.2g}"))


def look_again():
    return look_later(HOUR)


def look_later(later):
    with time_machine.travel(timezone.now() + later, tick=False):
        return look()


def test_it_is_not_opened_again_while_nothing_new_happens(site, clock):
    usual()
    silent(site, "code", 9)
    for _ in range(48):
        look()
        clock.shift(HOUR)
    assert Alarm.objects.filter(rule="A14").count() == 1


def test_sessions_that_wait_for_the_judge_do_not_count(site):
    usual()
    for each in silent(site, "code", 9):
        site.on(each).with_judge_job()
    assert look() == []


def test_a_grade_within_the_run_resolves_it(site, rita):
    usual()
    run = silent(site, "code", 9)
    assert look()
    corrections.record_correction(run[4], rita, value=0.7, reason="it works")
    assert look_again() == []


def test_a_person_who_says_that_it_was_infrastructure_resolves_it(site, rita):
    usual()
    run = silent(site, "code", 9)
    assert look()
    for each in run:
        corrections.record_correction(each, rita, exclude=True, reason="the disk was full")
    assert look_again() == []


def test_an_arm_that_is_paused_is_not_looked_at(site):
    usual()
    silent(site, "code", 9)
    assert look()
    arms.pause(Arm.objects.resolve("category", "code"), by="otto")
    assert look_again() == []


def test_an_outage_that_hits_all_arms_is_one_alarm(site, clock):
    usual()
    start = 1 * DAY
    for n in range(12):
        at = NOON - start + n * HOUR
        for place, arm in enumerate(ARMS):
            settled([(arm, at + place * 10 * dt.timedelta(minutes=1), False)])
            with time_machine.travel(at + HOUR, tick=False):
                look()
    ((about, detail),) = look_later(2 * HOUR)
    assert about == "all arms"
    assert "could not be graded, of 4 arms" in detail
    assert Alarm.objects.filter(rule="A14").count() == 1


def test_infrastructure_that_ends_the_sessions_of_one_arm_is_an_alarm(site):
    usual()
    for n in range(10):
        ended = {"outcome": Outcome.INFRASTRUCTURE, "outcome_reason": "out of memory"}
        session(site, "code", 2 * DAY - 3 * n * HOUR, graded=False, **ended)
        session(site, "code", 2 * DAY - (3 * n + 1) * HOUR, graded=True)
    ((about, detail),) = look()
    assert about == "code"
    assert "In 28 days, infrastructure ended 10 of this arm’s 40 sessions and 0 of the other arms’ 60" in detail


def test_the_page_offers_the_three_ways_out(site, client):
    usual()
    run = silent(site, "code", 9)
    look()
    client.force_login(site.person("olga", "operator"))
    page = unescape(flat(client.get("/alarms/")))
    links = re.findall(r'href="(/[^"]*answer=(\w+))"', page)
    assert [answer for _, answer in links] == ["exclude", "grade"]
    for link, answer in links:
        form = flat(client.get(link))
        assert all(f'name="session" value="{each.pk}" checked' in form for each in run)
        assert f'value="{answer}" checked' in form
    action = re.search(r'action="(/[^"]*)"><input type="hidden" name="csrf[^>]*><input[^>]*><button[^>]*>Pause', page)[
        1
    ]
    client.post(action, {"do": "pause", "why": "A14"})
    assert Arm.objects.resolve("category", "code").paused


def test_a_viewer_is_offered_nothing(site, client):
    usual()
    silent(site, "code", 9)
    look()
    client.force_login(site.person("vera", "viewer"))
    page = flat(client.get("/alarms/"))
    assert "An arm’s sessions leave nothing to grade" in page
    assert "Infrastructure was the cause" not in page
    assert "Pause" not in page


def test_a_site_where_all_is_well_is_hardly_disturbed(site, clock):
    """Eight arms, fifty sessions a day, one to three in ten of them without a grade: thirty days, two looks a day."""
    chance = random.Random(7)
    rates = {name: chance.uniform(0.1, 0.3) for name in MANY_ARMS}
    for _ in range(2 * 30):
        ends = [timezone.now() + n * dt.timedelta(minutes=20) for n in range(25)]
        drawn = list(zip(chance.choices(MANY_ARMS, k=25), ends, strict=True))
        settled((arm, ended_at, chance.random() >= rates[arm]) for arm, ended_at in drawn)
        clock.shift(12 * HOUR)
        look()
    disturbed = Alarm.objects.filter(rule="A14").count()
    assert disturbed <= 1
    settled(("code", timezone.now() - n * dt.timedelta(minutes=10), False) for n in range(15))
    look()
    assert Alarm.objects.filter(rule="A14").count() == disturbed + 1


@pytest.mark.parametrize("several", [False, True])
def test_what_is_too_rare_for_a_number_is_told_too(several):
    """Chance then has a probability that no float can hold."""
    past = [("code", SessionEnding.GRADED), ("infra", SessionEnding.GRADED)] * 1_000
    ended = [("infra" if several and number % 2 else "code", SessionEnding.INFRASTRUCTURE) for number in range(400)]
    sessions = [ObservedSession(key=key, arm=arm, ending=ending) for key, (arm, ending) in enumerate([*past, *ended])]
    found = find_silence(sessions, dict.fromkeys(range(len(sessions)), NOON), ())
    assert [finding.about for finding in found] == ["all arms" if several else "code"]
    assert "happens less than once in a billion runs" in found[0].detail


def test_an_excess_too_rare_for_a_number_is_told_too():
    endings = {"code": (SessionEnding.INFRASTRUCTURE, SessionEnding.GRADED), "infra": (SessionEnding.GRADED,) * 2}
    order = [(arm, endings[arm][number % 2]) for number in range(2_000) for arm in endings]
    sessions = [ObservedSession(key=key, arm=arm, ending=ending) for key, (arm, ending) in enumerate(order)]
    (finding,) = find_silence(sessions, dict.fromkeys(range(len(sessions)), NOON), ())
    assert finding.detail.endswith("By chance, that happens less than once in a billion times.")
