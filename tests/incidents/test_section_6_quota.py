"""Incidents of quota and guards (I90 to I94, I99)."""

import datetime as dt
import re

import pytest
import time_machine
from django.utils import timezone

from grading.judging import judges, sweeper, worker
from grading.judging.allowance import budget, limiter, quota
from grading.models import Alarm, Grade, JudgeAttempt, JudgeJob, Quota
from grading.models.judging import JobState
from grading.models.quota import QuotaState
from grading.monitoring.alarms import open_alarms
from grading.monitoring.rule import RULES
from grading.monitoring.watch import acknowledge, refresh_alarms
from grading.reward import rewards
from grading.simulator import Mode
from grading.vocabulary import Reason
from tests.casts import judge as judge_cast
from tests.casts.page import flat
from tests.incidents.helpers import alarms, answers, regained, simulated, submit, work

pytestmark = pytest.mark.django_db

BAD, GOOD = Mode.OVERLOADED, Mode.VERDICT


@pytest.fixture
def sim(settings, db, redis_url):
    with simulated(settings) as running:
        yield running


def page(site, client, path="/"):
    client.force_login(site.person(f"vera{path}", "viewer"))
    return flat(client.get(path))


# --- I90: quota shown as health --------------------------------------------------------------------------------------


def test_i90_an_open_quota_is_not_shown_as_a_judge_that_answers(site, sim, client):
    """I90, quota shown as health: impossible. An open quota whose judge fails is shown as failing; limits carry the
    time they were learned.
    """
    answers(sim, GOOD, Mode.DROP, Mode.DROP, Mode.DROP)
    assert quota.current().state == QuotaState.OPEN
    html = page(site, client)
    assert "Judge failing" in html
    assert "Judge open" not in html
    assert "Not fully." in html
    sim.mode = GOOD
    work()
    refresh_alarms()
    assert "Judge open" in page(site, client, "/quota/")


def test_i90_what_is_known_of_a_quota_says_when_it_was_learned(sim):
    answers(sim, GOOD)
    row = quota.current()
    assert row.limits["requests"]["limit"] > 0
    assert timezone.now() - row.limits_at < dt.timedelta(minutes=1)


# --- I91: the quota of the wrong key ---------------------------------------------------------------------------------


def test_i91_a_key_s_outage_closes_that_key_only(sim, settings):
    answers(sim, regained(days=20))
    assert quota.current().state == QuotaState.EXHAUSTED
    settings.ANTHROPIC_API_KEY = "sk-the-paid-one"
    assert quota.current().state == QuotaState.OPEN
    assert work() == 1
    assert [call.api_key for call in sim.calls] == [judge_cast.KEY, "sk-the-paid-one"]
    assert not alarms("A2")


def test_i91_a_judge_marked_out_and_unasked_for_three_days_is_an_alarm_of_its_own(site, sim):
    """I91, the quota of the wrong key: impossible, and an alarm (A2) after three days. A row is a key's own; out,
    unasked and waited for is an alarm even if the outage was acknowledged.
    """
    with time_machine.travel(timezone.now(), tick=True) as clock:
        answers(sim, regained(days=20))
        acknowledge(open_alarms().get(), site.person("otto", "operator"))
        clock.shift(dt.timedelta(days=2, hours=23))
        sweeper.sweep()
        assert not [text for text in alarms("A2") if "hasn’t been called" in text]
        clock.shift(dt.timedelta(hours=2))
        sweeper.sweep()
        (said,) = [text for text in alarms("A2") if "hasn’t been called" in text]
        assert f"fingerprint is {judges.first().fingerprint[:8]}" in said
        assert "while 1 job waits" in said
        quota.probe_now()
        work()
        assert not alarms("A2")


def test_i91_a_quota_that_is_really_gone_is_asked_every_hour_and_is_no_such_alarm(sim):
    sim.mode = Mode.NO_CREDIT
    submit("71a3")
    worker.pump()
    with time_machine.travel(timezone.now(), tick=True) as clock:
        for _ in range(4):
            clock.shift(dt.timedelta(days=1))
            sweeper.sweep()
            worker.pump()
    assert len(sim.calls) == 5
    (said,) = alarms("A2")
    assert "hasn’t been called" not in said


# --- I92: the meter lies; a parse error that was an auth failure -----------------------------------------------------


@pytest.mark.parametrize(
    ("mood", "reason"),
    [(Mode.AUTH, Reason.AUTH), (Mode.FORBIDDEN, Reason.AUTH), (Mode.NOT_JSON, Reason.OVERLOADED)],
)
def test_i92_an_answer_that_is_no_verdict_says_what_it_is_and_is_never_taken_for_a_bad_one(sim, mood, reason):
    """I92, the meter lies, and a failed log-in looks like a bad reply: impossible. Errors are told apart by type; no
    reading keeps the last good one with its age; without Redis the limits say that they are not shared.
    """
    answers(sim, mood)
    attempt = JudgeAttempt.objects.get()
    assert attempt.reason == reason != Reason.UNPARSABLE_VERDICT
    assert JudgeJob.objects.get().state == JobState.QUEUED
    assert not Grade.objects.verdicts().exists()


def test_i92_a_meter_without_a_reading_keeps_the_last_good_one_and_its_age(sim):
    answers(sim, GOOD)
    good = quota.current()
    for reading in (None, {}):
        quota.remember_limits(judges.first(), reading, timezone.now() + dt.timedelta(minutes=5), is_answer=True)
    held = quota.current()
    assert (held.limits, held.limits_at) == (good.limits, good.limits_at)


def test_i92_without_redis_the_limits_are_marked_as_not_shared(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    state = limiter.shared().state("nobody asked yet")
    assert not state.is_shared
    assert not state.dimensions


def test_i92_a_verdict_is_never_read_off_the_meter(sim):
    """Quota that looks fine, and an API that says that it isn't: the API's word counts."""
    answers(sim, GOOD, Mode.NO_CREDIT)
    assert quota.current().limits["requests"]["remaining"] > 0
    assert quota.current().state == QuotaState.EXHAUSTED
    assert alarms("A2")


# --- I93: the guard watches one backend ------------------------------------------------------------------------------


def test_i93_every_judge_is_watched_by_its_own_name(sim, settings):
    """I93, the guard watches one backend: impossible. Rules go over all quota rows and all judges."""
    settings.JUDGE_SECOND_MODEL, settings.JUDGE_SECOND_API_KEY = "gpt-6", "sk-other"
    budget.set_policy(by=None, second_share=1)
    sim.script(GOOD, Mode.NO_CREDIT)
    session = submit("71a3")
    worker.pump()
    assert rewards.live(session).final
    (said,) = alarms("A2")
    assert said.startswith("gpt-6 is out until")
    assert "decide no reward" in said
    settings.ANTHROPIC_API_KEY = "sk-new"
    sim.script(Mode.AUTH)
    submit("a517")
    worker.pump()
    assert [said.split()[0] for said in alarms("A2")] == ["gpt-6", "claude-sonnet-5-5"]


def test_i93_failures_of_one_judge_are_not_thinned_by_another_s_successes(sim, settings):
    settings.JUDGE_SECOND_MODEL = "gpt-6"
    budget.set_policy(by=None, second_share=1)
    for number in range(3):
        sim.script(GOOD, BAD)
        submit(f"s{number}")
        worker.pump()
    (said,) = alarms("A2")
    assert said.startswith("gpt-6 (second judge) has been failing since")
    assert "3 × the judge's service is overloaded" in said


def test_i93_every_quota_row_is_looked_at_however_many():
    for number in range(4):
        Quota.objects.create(key=f"k{number}", model=f"m{number}", state=QuotaState.MISCONFIGURED, reason=Reason.AUTH)
    refresh_alarms()
    assert len(alarms("A2")) == 4


# --- I94: "three in a row" never happens in parallel -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("moods", "raises"),
    [
        ([BAD, GOOD, BAD, BAD], True),
        ([BAD, GOOD, GOOD, BAD, GOOD, GOOD, BAD], True),
        ([BAD, Mode.DROP, BAD], True),  # whatever the reasons
        ([BAD, GOOD, BAD], False),
        ([GOOD, GOOD, GOOD, Mode.RATE_LIMIT], False),  # a per-minute limit is no failure
    ],
    ids=lambda value: "".join("S" if mood is GOOD else "F" for mood in value) if isinstance(value, list) else None,
)
def test_i94_three_failures_within_an_hour_raise_whatever_went_well_in_between(sim, moods, raises):
    """I94, "three in a row" never happens in parallel: alarm (A2). Three failures within an hour raise whatever went
    well in between; by event time; two of the last ten as well.
    """
    answers(sim, *moods)
    assert bool(alarms("A2")) is raises


def test_i94_the_window_is_event_time_and_ends(sim):
    with time_machine.travel(timezone.now(), tick=True) as clock:
        for _ in range(3):
            answers(sim, BAD)
            clock.shift(dt.timedelta(minutes=31))
        assert not alarms("A2")
        answers(sim, BAD)
        assert not alarms("A2")
        answers(sim, BAD)
        assert "3 ×" in alarms("A2")[0]
        clock.shift(dt.timedelta(minutes=61))
        refresh_alarms()
        assert not alarms("A2")


def test_i94_two_of_the_last_ten_answered_calls_raise_though_each_was_made_good(sim):
    answers(sim, *[GOOD] * 8, BAD)
    work()
    assert not alarms("A2")
    answers(sim, BAD)
    work()
    assert not JudgeJob.objects.open().exists()
    assert "2 × the judge's service is overloaded" in alarms("A2")[0]


# --- what an alarm says, and when it keeps quiet ---------------------------------------------------------------------


def test_a_pause_is_its_operator_s_business_for_a_day_and_worth_a_word_after(site, sim):
    otto = site.person("otto", "operator")
    submit("71a3")
    with time_machine.travel(timezone.now(), tick=True) as clock:
        quota.pause(by=otto, note="maintenance")
        sweeper.sweep()
        assert not Alarm.objects.exists()
        clock.shift(dt.timedelta(hours=25))
        sweeper.sweep()
        (said,) = alarms("A2")
        assert "An operator paused the judge" in said
        assert "resume it on the quota page" in said
        clock.shift(dt.timedelta(days=3))
        sweeper.sweep()
        assert len(alarms("A2")) == 1
        quota.resume(by=otto)
        assert not alarms("A2")


@pytest.mark.parametrize("mood", [Mode.BAD_REQUEST, Mode.UNKNOWN_MODEL])
def test_an_unknown_answer_is_an_alarm_at_once_in_the_api_s_own_words(sim, mood):
    answers(sim, mood)
    (said,) = alarms("A25")
    assert JudgeAttempt.objects.get().detail in said
    assert "These sessions have no verdict" in said
    alarm = open_alarms().get(rule="A25")
    assert RULES["A25"].sessions(alarm.about, timezone.now()) == [JudgeAttempt.objects.get().job.session_id]


def test_another_kind_of_unknown_answer_is_not_hidden_by_an_acknowledged_one(site, sim):
    answers(sim, Mode.BAD_REQUEST)
    acknowledge(open_alarms().get(), site.person("otto", "operator"))
    answers(sim, Mode.UNKNOWN_MODEL)
    fresh = open_alarms().filter(acknowledged_at=None)
    assert sorted(fresh.values_list("rule", flat=True)) == ["A2", "A25"]


def test_an_unknown_answer_s_alarm_ends_with_the_verdict(sim):
    answers(sim, Mode.BAD_REQUEST)
    work()
    assert not alarms("A25")


# --- I99: the guard itself -------------------------------------------------------------------------------------------


def test_i99_advisories_stay_off_the_other_pages(site, client):
    """I99, the guard that always fires: in part. Rules of an advisory's weight stay off other pages; nothing lists
    rules that are open most of the time.
    """
    Alarm.objects.create(rule="A16", about="share", detail="50 of 50 verdicts")
    assert "50 of 50 verdicts" not in page(site, client)
    alarms = page(site, client, "/alarms/")
    assert "None open, and 1 advisory." in alarms
    assert alarms.count("50 of 50 verdicts") == 1
    assert re.search(r'data-live-count="Alarms">\s*Alarms\s*<b hidden>0</b>', alarms), (
        "the navigation counts alarms alone"
    )
