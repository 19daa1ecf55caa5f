"""The founding rule: a floor grade from a session that also committed code deserves a flag."""

import datetime as dt

import pytest
import time_machine
from django.utils import timezone
from django.utils.html import escape

from bandit.models import LedgerEntry
from grading.health.liveness import Liveness
from grading.judging import sweeper
from grading.models import Alarm, Flag, JudgeJob, Quota, ReviewItem, Rubric, RuleRun, Session
from grading.models.judging import Purpose
from grading.models.review import Answer
from grading.monitoring import attending
from grading.monitoring.alarms import open_alarms, run_rules
from grading.monitoring.flags import DISMISSED, clear_flags, open_flags_newest_first
from grading.monitoring.judges import about_quota, judge_out
from grading.monitoring.rule import RULES, Finding, Rule, title_of
from grading.monitoring.watch import acknowledge, inspect_session, refresh_alarms, watch, watch_at_night
from grading.review import answers, corrections, notes, queue
from grading.vocabulary import Reason, Source
from tests.casts import quota as quota_cast
from tests.casts.page import flat
from tests.site import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _a_quiet_noon():
    """No test straddles midnight."""
    with time_machine.travel(NOON, tick=False):
        yield


def inspected(site, *, proof=True, ended_at=None, **values):
    builder = site.session(ended_at=ended_at or timezone.now())
    if proof:
        builder.with_pull_request()
    for source, value in values.items():
        builder.graded(source, value, Reason.NONE if value is not None else Reason.STUB_NO_TOOL_CALLS)
    session = builder.settle()
    inspect_session(session)
    return session


@pytest.mark.parametrize(
    "values", [{}, {"trajectory": 0.1}, {"trajectory": None}, {"trajectory": None, "journal": 0.32}]
)
def test_a_pull_request_without_a_real_grade_is_flagged_at_once(site, values):
    session = inspected(site, **values)
    flag = Flag.objects.get(session=session)
    assert flag.rule == "A1"
    assert "1 pull request" in flag.detail
    assert list(open_flags_newest_first()) == [flag]


@pytest.mark.parametrize("values", [{"trajectory": 0.41}, {"judge": 0.1}, {"judge": 0.1, "trajectory": 0.1}])
def test_a_real_grade_is_not_flagged_however_low(site, values):
    inspected(site, **values)
    assert not Flag.objects.exists()


def test_a_flag_clears_itself_once_a_real_grade_accounts_for_the_work(site):
    session = inspected(site, trajectory=None)
    site.on(session).judged(0.1).settle()
    inspect_session(session)
    assert not open_flags_newest_first().exists()
    assert Flag.objects.get().cleared_why == "it has a real grade now, or will get one"


def test_a_correction_takes_a_session_off_the_list_and_its_undo_puts_it_back(site):
    rita = site.person("rita", "reviewer")
    session = inspected(site, trajectory=None)
    corrections.record_correction(session, rita, value=0.8, reason="merged")
    assert not open_flags_newest_first().exists()
    corrections.undo(session.grades.get(source="human"), rita)
    assert open_flags_newest_first().get().session == session


def test_a_flag_that_cleared_itself_comes_back_where_the_grade_goes(site):
    session = inspected(site, trajectory=0.41)
    site.on(session).graded(Source.TRAJECTORY, None, Reason.LOG_SHARED)
    inspect_session(session)
    site.on(session).graded(Source.TRAJECTORY, 0.5)
    inspect_session(session)
    assert not open_flags_newest_first().exists()
    site.on(session).graded(Source.TRAJECTORY, None, Reason.LOG_SHARED)
    inspect_session(session)
    assert open_flags_newest_first().get().session == session


def test_a_flag_that_an_earlier_version_cleared_comes_back(site):
    """Versions word the reason differently, so it isn't by its wording that a flag is known to have cleared itself."""
    session = inspected(site, trajectory=None)
    site.on(session).graded(Source.TRAJECTORY, 0.5)
    inspect_session(session)
    Flag.objects.update(cleared_why="it has a real grade now, or one is on its way")
    site.on(session).graded(Source.TRAJECTORY, None, Reason.LOG_SHARED)
    inspect_session(session)
    assert open_flags_newest_first().get().session == session


def test_a_flag_that_a_person_dismissed_stays_cleared(site):
    session = inspected(site, trajectory=None)
    clear_flags(session, by=site.person("rita", "reviewer"), why=DISMISSED)
    inspect_session(session)
    assert not open_flags_newest_first().exists()


def waiting(site, *, reason=Reason.AWAITING_JUDGE, backlog=False, **values):
    """A session with a pull request whose judge was asked just now."""
    builder = site.session(ended_at=timezone.now()).with_pull_request()
    for source, value in values.items():
        builder.graded(source, value)
    return builder.with_judge_job(reason=reason, backlog=backlog).recheck()


PASSING = [Reason.AWAITING_JUDGE, Reason.OVERLOADED, Reason.BUDGET_SPENT, Reason.PAUSED]


@pytest.mark.parametrize("values", [{}, {"trajectory": 0.41}])
@pytest.mark.parametrize("reason", PASSING)
def test_work_may_wait_a_day_and_a_half_for_its_judge(site, reason, values, settings):
    quota_cast.use(settings)
    session, now = waiting(site, reason=reason, **values), timezone.now()
    assert not Flag.objects.exists()
    with time_machine.travel(now + dt.timedelta(hours=35), tick=False):
        sweeper.sweep()
        assert not Flag.objects.exists()
    with time_machine.travel(now + dt.timedelta(hours=36), tick=False):
        for _ in range(2):
            sweeper.sweep()
            flag = open_flags_newest_first().get()
            assert flag.session == session
            assert "has waited for its verdict since 31 Mar 12:00 UTC" in flag.detail
            assert ReviewItem.objects.open().get().session == session


def test_what_came_in_late_may_wait_longer(site, settings):
    quota_cast.use(settings)
    waiting(site, backlog=True)
    for days, count in ((13, 0), (14, 1)):
        with time_machine.travel(NOON + dt.timedelta(days=days), tick=False):
            sweeper.sweep()
            assert Flag.objects.count() == count


def test_imported_history_that_waits_is_put_up_for_nobody(site, settings):
    quota_cast.use(settings)
    session = waiting(site, backlog=True)
    type(session).objects.filter(pk=session.pk).update(ended_at=NOON - dt.timedelta(days=20))
    with time_machine.travel(NOON + dt.timedelta(days=15), tick=False):
        sweeper.sweep()
        inspect_session(Session.objects.get(pk=session.pk))
    assert not Flag.objects.exists()


@pytest.mark.parametrize("by", ["judge", "person"])
def test_work_that_somebody_graded_meanwhile_waits_for_nothing(site, by, settings):
    quota_cast.use(settings)
    session = waiting(site)
    if by == "judge":
        site.on(session).judged(0.1)
    else:
        corrections.record_correction(session, site.person("rita", "reviewer"), value=0.8, reason="merged")
    with time_machine.travel(NOON + dt.timedelta(days=3), tick=False):
        sweeper.sweep()
    assert not Flag.objects.exists()


@pytest.mark.parametrize("reason", [Reason.QUOTA_EXHAUSTED, Reason.AUTH])
def test_work_that_nothing_accounts_for_is_flagged_at_once_where_the_judge_is_out(site, reason):
    session = waiting(site, reason=reason, journal=0.32)
    assert Flag.objects.get().session == session
    waiting(site, reason=reason, trajectory=0.41)
    assert Flag.objects.get().session == session


def test_work_that_nothing_accounts_for_is_flagged_at_once_where_the_judges_calls_fail(site):
    Alarm.objects.create(rule=judge_out.id, about="first judge", detail="3 × overloaded")
    session = waiting(site)
    assert Flag.objects.get().session == session


def test_work_whose_judge_was_given_up_is_flagged_whatever_its_trajectory_says(site):
    session = waiting(site, trajectory=0.9)
    JudgeJob.objects.update(state="abandoned", reason=Reason.UNPARSABLE_VERDICT)
    inspect_session(session)
    assert "it was given up" in open_flags_newest_first().get().detail


@pytest.mark.parametrize(("state", "reason"), [("abandoned", Reason.NOT_CONFIGURED), ("cancelled", Reason.NONE)])
def test_a_job_that_a_person_or_the_lack_of_a_judge_ended_asks_for_no_more_than_a_site_without_one(site, state, reason):
    session = waiting(site, trajectory=0.9)
    JudgeJob.objects.update(state=state, reason=reason)
    inspect_session(session)
    assert not Flag.objects.exists()


def strata(session):
    """(op, source, stratum) of the session's rewards in the category bandit, in the order they were written."""
    rows = LedgerEntry.objects.filter(observation=session.observation, bandit__name="category").order_by("pk")
    return list(rows.values_list("op", "grader__source", "grader__stratum"))


def test_a_flagged_sessions_reward_is_in_a_stratum_of_its_own(site):
    session = inspected(site, journal=0.32)
    assert strata(session)[-1] == ("apply", "journal", "flagged")
    site.on(session).judged(0.8).settle()
    inspect_session(session)
    assert strata(session)[-1] == ("apply", "judge", "")


def test_an_unflagged_session_is_settled_once_and_its_reward_never_moves(site):
    assert strata(inspected(site, journal=0.32, proof=False)) == [("apply", "journal", "")]


def test_a_persons_grade_is_in_no_stratum_and_its_undo_restores_the_flagged_one(site):
    rita = site.person("rita", "reviewer")
    session = inspected(site, journal=0.32)
    corrections.record_correction(session, rita, value=0.8, reason="merged")
    assert strata(session)[-1] == ("apply", "human", "")
    corrections.undo(session.grades.get(source="human"), rita)
    assert strata(session)[-1] == ("apply", "journal", "flagged")


def test_a_persons_flag_and_its_return_move_the_reward_along(site):
    rita = site.person("rita", "reviewer")
    session = inspected(site, journal=0.32, proof=False)
    flag = notes.flag(session, rita, "the journal is another session's")
    assert strata(session)[-1] == ("apply", "journal", "flagged")
    notes.unflag(flag, rita)
    assert strata(session)[-1] == ("apply", "journal", "")


def test_a_dismissed_session_is_flagged_no_more_and_nor_is_its_reward(site):
    rita = site.person("rita", "reviewer")
    session = inspected(site, journal=0.32)
    queue.recheck(session)
    answer = answers.submit(session, rita, answer=Answer.CANNOT_JUDGE, reason="the log is gone")
    assert strata(session)[-1] == ("apply", "journal", "")
    answers.undo(answer, rita)
    assert strata(session)[-1] == ("apply", "journal", "flagged")


def test_a_floor_without_independent_work_is_not_flagged(site):
    inspected(site, proof=False)
    assert not Flag.objects.exists()


def test_the_third_flag_in_seven_days_raises_one_alarm(site):
    for expected in (0, 0, 1, 1):
        inspected(site)
        assert open_alarms().count() == expected


def test_flags_of_sessions_that_ended_long_ago_raise_no_alarm_today(site):
    for _ in range(5):
        inspected(site, ended_at=timezone.now() - dt.timedelta(days=30))
    assert not Alarm.objects.exists()


def test_an_alarm_is_acknowledged_once_by_name_and_reopens_on_the_next_case(site):
    rita, otto = site.person("rita", "reviewer"), site.person("otto", "operator")
    for _ in range(3):
        inspected(site)
    alarm = open_alarms().get()
    assert acknowledge(alarm, rita)
    assert not acknowledge(alarm, otto)
    alarm.refresh_from_db()
    assert alarm.acknowledged_by == rita
    inspected(site)
    again = open_alarms().get()
    assert again != alarm
    assert again.acknowledged_by is None


def test_too_many_ungraded_in_a_week_stay_told_until_a_person_names_the_cause(site):
    """Three sessions are graded after all: the alarm says so, closes by a person's name, and opens at the next one."""
    rita, start = site.person("rita", "reviewer"), timezone.now()
    sessions = [inspected(site) for _ in range(3)]
    for session in sessions:
        site.on(session).judged(0.76).recheck()
    refresh_alarms()
    alarm = open_alarms().get()
    assert "None of these sessions waits any more" in alarm.detail
    with time_machine.travel(start + dt.timedelta(hours=1), tick=False):
        assert acknowledge(alarm, rita)
        refresh_alarms()
        watch()
        assert not open_alarms().filter(rule="A1").exists()
    with time_machine.travel(start + dt.timedelta(hours=2), tick=False):
        inspected(site)
        again = open_alarms().get(rule="A1")
        assert "4 sessions in seven days" in again.detail
        assert "1 of these sessions still waits" in again.detail
    # A week later fewer than three remain: it closes by itself.
    with time_machine.travel(start + dt.timedelta(days=7, hours=1), tick=False):
        refresh_alarms()
        assert not open_alarms().filter(rule="A1").exists()


def test_an_alarm_resolves_when_its_rule_no_longer_holds(site):
    sessions = [inspected(site) for _ in range(3)]
    for session in sessions:
        Flag.objects.filter(session=session).delete()
    refresh_alarms()
    assert not open_alarms().exists()


def test_a_judge_that_is_out_is_an_alarm_until_it_is_back():
    quota = Quota.objects.create(key="k", model="m", state="exhausted", reason=Reason.QUOTA_EXHAUSTED)
    refresh_alarms()
    assert "Quota exhausted" in open_alarms().get().detail
    quota.state = "open"
    quota.save()
    refresh_alarms()
    assert not open_alarms().exists()


def test_an_outage_names_the_sessions_that_wait_because_of_it(site, client):
    """Its page says what they did to the bandits, and quotes a price for judging them."""
    start = timezone.now()
    with time_machine.travel(start, tick=False):
        earlier = site.session(ended_at=start).with_log().graded(Source.TRAJECTORY, 0.2).settle()
    with time_machine.travel(start + dt.timedelta(hours=1), tick=False):
        quota = Quota.objects.create(
            key="k", model="m", state="exhausted", reason=Reason.QUOTA_EXHAUSTED, changed_at=timezone.now()
        )
        waiting = [site.session().with_log().graded(Source.TRAJECTORY, 0.2).settle() for _ in range(2)]
        site.session().judged(0.7).settle()
        refresh_alarms()
        alarm = open_alarms().get()
        sessions = RULES[judge_out.id].sessions(alarm.about, timezone.now())
        assert sessions == [session.pk for session in waiting]
        assert earlier.pk not in sessions
        client.force_login(site.person("olga", "operator"))
        page = client.get(f"/alarms/{alarm.pk}/")
    assert [row.session for row in page.context["rows"]] == waiting[::-1]
    assert page.context["answers"][0].label == "Judge 2 sessions again"
    assert RULES[judge_out.id].sessions(f"{quota.model} other", start) == ()


def test_an_outage_of_the_second_judge_names_the_sessions_that_wait_for_it(site, settings):
    settings.JUDGE_SECOND_MODEL = "second"
    start = timezone.now()
    quota = Quota.objects.create(
        key="k", model="second", state="exhausted", reason=Reason.QUOTA_EXHAUSTED, changed_at=start
    )
    site.session().with_log().graded(Source.TRAJECTORY, 0.2).settle()
    second = site.session().judged(0.7).settle()
    JudgeJob.objects.create(session=second, rubric=Rubric.objects.active(), purpose=Purpose.SECOND)
    rule = RULES[judge_out.id]
    assert rule.sessions(about_quota(quota), timezone.now()) == [second.pk]


def test_an_alarm_of_a_rule_that_was_removed_closes_by_itself():
    Alarm.objects.create(rule="removed", detail="found by a rule that is gone")
    watch()
    assert not open_alarms().exists()


# --- when rules look -------------------------------------------------------------------------------------------------

HOURLY = dt.timedelta(hours=1)


class Finder:
    """Finds what a test wants, or fails."""

    def __init__(self, *about: str, fails: bool = False) -> None:
        self.about, self.fails, self.runs = about, fails, 0

    def __call__(self, now):
        self.runs += 1
        if self.fails:
            raise RuntimeError("a rule that fails")
        return [Finding(about=name, detail=f"{name} is odd") for name in self.about]


@pytest.fixture
def add_rule(monkeypatch):
    """Adds a rule to the site's."""

    def add(find, rule_id="T1", **fields):
        rule = Rule(id=rule_id, title="Test", means="Always", find=find, every=HOURLY, **fields)
        monkeypatch.setitem(RULES, rule.id, rule)
        return rule

    return add


def test_a_nightly_rule_that_fails_stops_none_of_the_others(add_rule):
    broken, other = Finder(fails=True), Finder()
    add_rule(broken, nightly=True)
    add_rule(other, "T2", nightly=True)
    watch_at_night()
    assert (broken.runs, other.runs) == (1, 1)
    assert list(RuleRun.objects.filter(rule__startswith="T").values_list("rule", flat=True)) == ["T2"]


def test_a_rule_looks_when_its_turn_has_come_and_at_no_other_time(add_rule):
    finder, now = Finder(), timezone.now()
    add_rule(finder)
    for minutes, runs in ((0, 1), (1, 1), (59, 1), (60, 2), (61, 2), (300, 3)):
        watch(now + dt.timedelta(minutes=minutes))
        assert finder.runs == runs


def test_a_rule_that_breaks_stops_no_other_is_tried_again_and_becomes_an_alarm(add_rule):
    now, finder = timezone.now(), Finder()
    add_rule(finder)
    watch(now)
    finder.fails = True
    Quota.objects.create(key="k", model="m", state="exhausted", reason=Reason.QUOTA_EXHAUSTED)
    for minutes in (60, 61, 62):
        watch(now + dt.timedelta(minutes=minutes))
    assert finder.runs == 4
    assert open_alarms().get().rule == "A2"
    watch(now + dt.timedelta(minutes=131))
    silent = open_alarms().get(rule="A29")
    assert (silent.about, "“Test” last ran" in silent.detail) == ("Test", True)


def test_rules_that_nobody_calls_any_more_are_an_alarm_at_the_next_session(site):
    """I129, a health check that nobody runs: alarm (A29). A rule that missed two turns is told."""
    watch()
    with time_machine.travel(NOON + dt.timedelta(days=1), tick=False):
        inspected(site, proof=False)
        assert title_of("A15") in set(open_alarms().filter(rule="A29").values_list("about", flat=True))
        watch()
        assert not open_alarms().exists()


def test_each_thing_a_rule_is_about_has_an_alarm_of_its_own(site, add_rule):
    finder, rita = Finder("one"), site.person("rita", "reviewer")
    rule = add_rule(finder)
    run_rules([rule], timezone.now())
    assert acknowledge(open_alarms().get(), rita)
    finder.about = ("one", "two")
    run_rules([rule], timezone.now())
    assert set(open_alarms().values_list("about", "acknowledged_by__username")) == {
        ("one", "rita"),
        ("two", None),
    }
    finder.about = ("two",)
    run_rules([rule], timezone.now())
    assert open_alarms().get().about == "two"


def test_the_page_of_alarms_says_what_every_rule_means_and_when_it_looked(site, client):
    watch()
    watch_at_night()
    seen = Liveness(every=5)
    for moment in range(100):
        seen.observe({}, moment, moment)
    attending.update_attended_alarms(seen)
    client.force_login(site.person("vera", "viewer"))
    html = flat(client.get("/alarms/?tab=rules"))
    for rule in RULES.values():
        assert escape(rule.title) in html
        first, _, more = rule.means.partition(". ")
        assert escape(first) in html
        assert escape(more) in html
    assert "not yet" not in html
