"""Two logs whose worth is known are judged once a day, and a change of their grades is an alarm."""

import datetime as dt
import re

import pytest
from django.contrib.auth.models import User

from bandit.models import Bucket, LedgerEntry
from bandit.reading import posterior_of
from grading.judging import canary
from grading.judging.allowance import budget, quota
from grading.models import (
    Alarm,
    ApiToken,
    CanaryRun,
    Flag,
    Grade,
    JudgeAttempt,
    JudgeJob,
    JudgeKeyTest,
    JudgePolicy,
    Quota,
    ReviewItem,
    Session,
    Settlement,
)
from grading.models.quota import QuotaState
from grading.monitoring.rule import RULES
from grading.monitoring.watch import acknowledge, watch
from tests import addresses, world
from tests.addresses import Kind
from tests.casts import judge as judge_cast
from tests.casts.page import flat
from tests.site import NOON

pytestmark = pytest.mark.django_db

DAY = dt.timedelta(days=1)
START = dt.datetime(2026, 4, 1, 5, 30, tzinfo=dt.UTC)


@pytest.fixture
def judge(sim, settings):
    judge_cast.use(settings, sim)
    settings.CANARY = True
    return sim


def alarms():
    return list(Alarm.objects.filter(rule="A50", resolved_at=None).order_by("about"))


def watch_afterwards(now):
    watch(now + dt.timedelta(minutes=11))


def judged(days, sim=None, **options):
    """Judge the canaries on these days after START, and let the rules look."""
    if sim is not None:
        sim.options = options
    for day in days:
        canary.run_due(START + day * DAY)
        watch_afterwards(START + day * DAY)


def test_canaries_are_judged_once_a_day_and_are_no_sessions(judge):
    judged([0, 0, 1])
    runs = list(CanaryRun.objects.order_by("day", "canary"))
    assert [(run.day.day, run.canary) for run in runs] == [(1, "bad"), (1, "good"), (2, "bad"), (2, "good")]
    bad, good = runs[:2]
    assert good.trajectory > 0.8
    assert bad.trajectory < 0.3
    assert good.verdict > bad.verdict
    assert (good.call.answered, good.call.cost_usd > 0) == (True, True)
    assert JudgeKeyTest.objects.count() == 4
    assert not Session.objects.exists()
    assert not JudgeAttempt.objects.exists()


def test_nothing_is_asked_without_a_key_or_if_it_is_off(judge, settings):
    settings.CANARY = False
    assert canary.run_due(START) == []
    settings.CANARY, settings.ANTHROPIC_API_KEY = True, ""
    assert canary.run_due(START) == []
    assert not CanaryRun.objects.exists()


def test_canaries_wait_while_the_quota_is_out_or_the_budget_is_spent(judge):
    quota.pause(by=None)
    assert canary.run_due(START) == []
    quota.resume(by=None)
    budget.set_policy(by=None, daily_budget_usd=0.000001)
    assert canary.run_due(START) == []
    assert not quota.current().is_out
    budget.set_policy(by=None, daily_budget_usd=None)
    assert len(canary.run_due(START)) == 2


def test_failed_call_is_on_record_without_a_verdict(judge):
    judge.script("overloaded", "overloaded")
    good, _bad = canary.run_due(START)
    assert good.verdict is None
    assert good.call.reason == "overloaded"
    assert good.trajectory is not None


def test_changed_verdict_is_an_alarm_that_says_what_changed(judge, settings):
    """I38: another judge, or another scale of the same one, grades two known logs otherwise."""
    judged(range(3))
    assert alarms() == []
    usual = CanaryRun.objects.filter(canary="good").earliest("day").verdict
    judged([3], judge, score=0.1)
    (told,) = alarms()
    assert told.about == "good"
    assert (
        f"The known good session has a different grade: the judge gave .10 on 4 Apr, usually .{round(100 * usual)}"
        in told.detail
    )
    assert "Nothing on this site has changed since" in told.detail
    settings.JUDGE_MODEL = "claude-opus-4-8"
    judged([4], judge, score=0.1)
    (told,) = alarms()
    assert "Changed since 1 Apr: the model." in told.detail
    # It closes when the grade is back.
    judged([5], judge)
    assert alarms() == []


def test_alarm_lists_the_sessions_that_were_judged_since(judge, site, client):
    """Its page quotes a price for judging them again."""
    site.session().with_work().judged(0.6).settle()
    judged(range(2))
    judged([2], judge, score=0.1)
    after = site.session().with_work().judged(0.1).settle()
    (told,) = alarms()
    assert RULES["A50"].sessions("good", START + 2 * DAY) == (after.pk,)
    client.force_login(site.person("olga", "operator"))
    page = client.get(f"/alarms/{told.pk}/")
    assert [row.session for row in page.context["rows"]] == [after]
    (again, *_others) = page.context["answers"]
    assert again.label == "Judge 1 session again"
    assert again.price > 0
    assert not RULES["A50"].sessions("bad", START)


def test_unsteady_canary_names_no_sessions(judge, site):
    """None of the earlier verdicts is near their median, so nobody knows since when the judge is another."""
    for day, score in enumerate((0.1, 0.9, 0.1, 0.9)):
        judged([day], judge, score=score)
    site.session().with_work().judged(0.1).settle()
    CanaryRun.objects.filter(canary="good", day=START.date() + 2 * DAY).delete()
    assert [told.about for told in alarms() if told.about == "good"] == ["good"]
    assert not RULES["A50"].sessions("good", START + 4 * DAY)


def test_acknowledged_change_becomes_the_usual_grade(judge):
    judged(range(2))
    judged([2], judge, score=0.1)
    (told,) = alarms()
    Alarm.objects.filter(pk=told.pk).update(opened_at=START + 2 * DAY)
    acknowledge(told, User.objects.create(username="olga"))
    judged([3], judge, score=0.1)
    assert alarms() == []
    judged([4], judge)
    assert [each.about for each in alarms()] == ["good"]


def test_changed_trajectory_grade_is_an_alarm(judge):
    judged(range(2))
    CanaryRun.objects.filter(canary="bad", day=START.date()).update(trajectory=0.9, trajectory_version="trajectory/0")
    watch_afterwards(START + 2 * DAY)
    (told,) = alarms()
    assert (
        "The known bad session has a different grade: its trajectory grade was .90 on 1 Apr and is .19 on 2 Apr"
        in told.detail
    )
    assert "Changed since 1 Apr: the trajectory’s rules." in told.detail


def test_page_shows_the_last_days(judge, site, client):
    client.force_login(site.person("vera", "viewer"))
    assert "every day at 05:30 UTC" in client.get("/calibration/").content.decode()
    judged(range(2))
    page = client.get("/calibration/")
    assert [run.canary for run in page.context["canaries"]] == ["bad", "good", "bad", "good"]
    assert "If a canary’s grade changes, an alarm opens" in flat(page)


# What tells of a canary: its card, its cost, and the quota that every call uses.
ABOUT_CANARIES = ("/calibration/", "/costs", "/quota", "/settings/judge", "/healthz", "/metrics", "/history")


# What is new at each request, and what canaries may change: what calls cost, and how many there were.
NEW = re.compile(
    rb'(csrfmiddlewaretoken" value|name="(bulk|name)" value)="[^"]*"|[\d.]+ \xc2\xa2'
    rb"|\d+\s+(<[^>]*>\s*)?(canaries|of 20,000 requests)"
)


def everything(client, rows) -> dict[str, bytes]:
    """Every page and file of the site, without what is NEW."""
    shown = {}
    for name, address in addresses.SCREENS.items():
        if address.kind not in {Kind.PAGE, Kind.PART, Kind.DATA, Kind.FILE} or address.claims:
            continue
        for url in addresses.urls(name, rows):
            if url.startswith(ABOUT_CANARIES):
                continue
            answer = client.get(url)
            content = b"".join(answer) if answer.streaming else answer.content
            shown[url] = NEW.sub(b"", content)
    return shown


@pytest.mark.slow
@pytest.mark.usefixtures("noon")
def test_no_list_figure_export_or_api_contains_a_canary(judge, client, django_user_model):
    rows = world.make()
    Quota.objects.update(state=QuotaState.OPEN)
    JudgePolicy.objects.create(by=User.objects.first())
    assert len(canary.run_due(NOON - DAY)) == 2  # so that the judge has answered before
    client.force_login(django_user_model.objects.create_superuser("root"))
    everything(client, rows)  # what a first visit leaves behind
    session = Session.objects.yours().first()
    headers = {"Authorization": f"Bearer {ApiToken.objects.issue(session.agent)[1]}"}
    paths = (f"sessions/{session.pk}", "bandits/category", "openapi.json")

    def stored():
        tables = (Session, Grade, Settlement, LedgerEntry, Bucket, ReviewItem, Flag, JudgeJob)
        beliefs = posterior_of("category", NOON).posterior
        api = [client.get(f"/api/v1/{path}", headers=headers).content for path in paths]
        return [table.objects.count() for table in tables], beliefs.alpha.tobytes(), api

    before, shown = stored(), everything(client, rows)
    runs = canary.run_due(NOON)
    assert [run.verdict is not None for run in runs] == [True, True]
    assert stored() == before
    after = everything(client, rows)
    assert len(after) > 60
    assert [url for url in after if after[url] != shown[url]] == []
