"""Insight: trends with links to their sessions, two periods in parts, what came with marks, and the weekly letter."""

import datetime as dt

import pytest

from grading.insight.core.measures import MEASURES
from grading.insight.core.results import EffectFinding, MarkEffect, MarkKind, Span, TimeMark
from grading.models import JudgeJob, Rubric, Session, SessionFacts
from grading.models.judging import Purpose
from grading.screens.insight.effects_card import group_effects
from grading.screens.insight.trend_card import write_days
from tests.casts.page import flat
from tests.site import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]


def context(client, query: str = ""):
    reply = client.get(f"/insight/{query}")
    assert reply.status_code == 200
    return reply.context


def test_an_empty_site_says_what_to_do(operator):
    for path in ("/insight/", "/insight/letter/"):
        assert "No sessions yet." in flat(operator.get(path))
        assert "Connect an agent" in flat(operator.get(path))


def test_sessions_of_long_ago_are_half_a_year_away(site, viewer):
    site.session("code", ago=dt.timedelta(days=100)).judged(0.5).settle()
    assert "No session ended in the last ten weeks." in flat(viewer.get("/insight/"))
    assert context(viewer, "?weeks=26")["trend"] is not None


def test_a_trend_without_a_value_says_what_to_choose_instead_of_an_empty_picture(site, viewer):
    site.session("code", ago=dt.timedelta(days=2)).settle()
    site.session("code", ago=dt.timedelta(days=9)).settle()
    page = flat(viewer.get("/insight/"))
    assert "2 sessions ended in this period, but none has a value for this measure." in page
    assert 'class="for-wide"' not in page
    assert "Choose another measure above" not in flat(viewer.get("/insight/?measure=sessions"))


def test_names_of_sessions_are_escaped(site, viewer):
    session = site.session("code", ago=dt.timedelta(days=1), model="<script>alert(1)</script>").judged(0.5).settle()
    SessionFacts.objects.update_or_create(session=session, defaults={"harness_version": '"><img src=x>'})
    for split in ("model", "version"):
        page = viewer.get(f"/insight/?split={split}").content.decode()
        assert "<script>alert" not in page
        assert "<img src=x" not in page


# --- the bridge


@pytest.fixture
def read(site, sim):
    """Two judged sessions with evidence."""
    return [site.judged_by(sim, 0.5, ago=dt.timedelta(days=days)) for days in (1, 2)]


def bridge(client, sessions, rubric: str):
    data = {"rubric": rubric, "session": [session.pk for session in sessions], "back": "weeks=4"}
    return client.post("/insight/bridge/", data)


def test_a_bridge_asks_for_trials_which_change_no_reward(operator, read):
    rubric = Rubric.objects.create(title="Sterner", text="Be stern.", sha256="5" * 64)
    rewards = [Session.objects.get(pk=session.pk).reward_value for session in read]
    reply = bridge(operator, read, rubric.sha256)
    assert reply.url == "/insight/?weeks=4#change"
    jobs = JudgeJob.objects.open()
    assert {(job.session_id, job.purpose, job.rubric) for job in jobs} == {
        (session.pk, Purpose.TRIAL, rubric) for session in read
    }
    assert [Session.objects.get(pk=session.pk).reward_value for session in read] == rewards
    bridge(operator, read, rubric.sha256)
    assert jobs.count() == 2


@pytest.mark.parametrize(
    ("rubric", "keys"), [("unknown", [1]), (None, []), (None, ["eve", "-1"]), (None, [*range(1, 102)])]
)
def test_a_bridge_of_nothing_is_refused(operator, read, rubric, keys):
    data = {"rubric": rubric or Rubric.objects.active().sha256, "session": keys}
    reply = operator.post("/insight/bridge/", data)
    assert reply.status_code in (302, 404)
    assert not JudgeJob.objects.filter(purpose=Purpose.TRIAL).exists()


# --- the weekly letter


def test_a_week_without_sessions_says_that_nothing_is_sent(site, viewer):
    site.session("code", ended_at=NOON - dt.timedelta(days=40)).judged(0.5).settle()
    assert "so there is no letter" in flat(viewer.get("/insight/letter/"))


def test_a_channel_gets_the_letter_if_an_operator_wants(operator):
    data = {"kind": "webhook", "name": "team", "url": "http://127.0.0.1:9/", "letters": "on"}
    operator.post("/settings/notices/add/", data)
    assert "The letter goes to 1 channel." in flat(operator.get("/insight/letter/"))
    assert "gets the weekly letter" in flat(operator.get("/settings/notices/"))


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (dt.date(2026, 3, 23), dt.date(2026, 3, 23), "23 Mar"),
        (dt.date(2026, 3, 23), dt.date(2026, 3, 29), "23–29 Mar"),
        (dt.date(2026, 3, 30), dt.date(2026, 4, 5), "30 Mar – 5 Apr"),
        (dt.date(2025, 3, 1), dt.date(2026, 3, 5), "1 Mar 2025 – 5 Mar 2026"),
    ],
)
def test_days_are_written_once_and_years_where_they_differ(first, last, text):
    assert write_days(Span(first=first, last=last)) == text


def test_measures_without_enough_data_are_named():
    def effect(name, size):
        counts = {"before": 26, "after": 26, "days_before": 7, "days_after": 7, "tasks": 0}
        finding = EffectFinding.NOT_ENOUGH if size is None else EffectFinding.UNCLEAR
        low, high = (None, None) if size is None else (size - 0.1, size + 0.1)
        measure = MEASURES[name]
        return MarkEffect(marks=(mark,), measure=measure, effect=size, low=low, high=high, finding=finding, **counts)

    mark = TimeMark(kind=MarkKind.VERSION, at=NOON, day=NOON.date(), label="Claude Code 2.1.14", key="v")
    (group,) = group_effects([effect("reward", 0.1), effect("cost", 1.0), effect("tokens", None)])
    assert [row.title for row in group.others] == ["Cost"]
    assert group.unknown == ("tokens",)
