"""The sessions list: what a row says, how it is narrowed, and that fifty rows cost what one costs."""

import datetime as dt
import json
import re
from html import unescape

import pytest
from django.utils import timezone

from grading import monitoring
from grading.models import Session
from grading.reward import rewards
from grading.screens.sessions import paging
from grading.vocabulary import Outcome, Reason, Source
from tests import cast
from tests.casts.page import flat

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client):
    client.force_login(cast.person("vera", "viewer"))
    return client


def settled(source=Source.JUDGE, value=0.72, **fields):
    session = cast.session(**fields)
    cast.grade(session, source, value)
    rewards.settle(session)
    return session


def listed(client, **query) -> str:
    response = client.get("/sessions/", query)
    assert response.status_code == 200
    return flat(response)


def test_a_row_shows_grade_source_shape_and_arm(viewer):
    settled(title="Add a retry guard", model="claude-sonnet-5-5", started_at=cast.NOON - dt.timedelta(minutes=34))
    html = listed(viewer)
    assert '<span class="chip c-judge " title="final">.72</span>' in html
    assert 'href="#i-judge"' in html
    for text in ("Add a retry guard", "cross-repo", "bob", "claude-sonnet-5-5", "34 min", "The judge decides"):
        assert text in html


def test_a_provisional_reward_is_hatched_and_says_why(viewer):
    settled(Source.TRAJECTORY, 0.41)
    html = listed(viewer)
    assert '<span class="chip c-trajectory prov" title="provisional">.41</span>' in html
    assert "No judge yet" in html


def test_a_session_at_the_floor_shows_a_dash_and_never_a_number(viewer):
    session = cast.session()
    cast.grade(session, Source.TRAJECTORY, None, Reason.NO_TRANSCRIPT)
    rewards.settle(session)
    html = listed(viewer)
    assert 'title="not graded yet (floor)">–</span>' in html
    assert ">.10<" not in html


def test_a_session_that_died_of_infrastructure_has_no_reward_and_a_reason(viewer):
    session = cast.session(outcome=Outcome.INFRASTRUCTURE, outcome_reason="the login had expired")
    rewards.settle(session)
    html = listed(viewer)
    assert 'title="no reward">–</span>' in html
    assert "the login had expired" in html


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"q": "webhook"}, "judged"),
        ({"q": "ID-OF-JUDGED"}, "judged"),
        ({"category": "code"}, "other"),
        ({"harness": "gptme"}, "other"),
        ({"agent": "alice"}, "other"),
        ({"source": "judge"}, "judged"),
        ({"state": "final"}, "judged"),
        ({"state": "provisional"}, "other"),
        ({"flagged": "yes"}, "other"),
        ({"flagged": "no"}, "judged"),
    ],
)
def test_the_list_narrows(viewer, query, found):
    settled(title="judged: a retry guard for the webhook", external_id="id-of-judged")
    other = settled(Source.JOURNAL, 0.32, title="other", category="code", harness="gptme", agent=cast.agent("alice"))
    cast.pull_request(other)
    monitoring.inspect(other)
    html = listed(viewer, **query)
    assert (found == "judged") == ("judged: a retry" in html)
    assert (found == "other") == ("other</a>" in html)


def test_a_filter_that_does_not_exist_is_said_and_left_out(viewer):
    settled(title="still here")
    html = listed(viewer, category="nonsense", q="still")
    assert "It was left out" in html
    assert "still here" in html


def test_pages_keep_the_filters(viewer):
    for number in range(51):
        settled(title=f"many {number}")
    html = listed(viewer, q="many")
    (older,) = re.findall(r'rel="next" href="([^"]*)"', html)
    assert older.startswith("?q=many&amp;before=")
    for page in (unescape(older), "?q=many&page=last"):
        last = viewer.get(f"/sessions/{page}").context_data["page"]
        assert (len(last.object_list), last.older, last.count) == (1 if "before" in page else 50, "", 51)
    assert viewer.get("/sessions/?q=many&before=never&page=99").context_data["page"].newer == ""


@pytest.mark.parametrize(("begin", "further"), [("?", "older"), ("?page=last", "newer"), ("?flagged=no", "older")])
def test_walking_from_page_to_page_shows_each_session_once(viewer, monkeypatch, begin, further):
    monkeypatch.setattr(paging, "PAGE_SIZE", 4)
    made = [settled(ended_at=cast.NOON - dt.timedelta(hours=number // 3)).pk for number in range(11)]
    seen, address = [], begin
    while address:
        assert len(seen) <= len(made), seen
        page = viewer.get(f"/sessions/{address}").context_data["page"]
        keys = [session.pk for session in page.object_list]
        seen += keys if further == "older" else keys[::-1]
        place = getattr(page, further)
        address = place and f"{begin.partition('page')[0]}&{place}"
    assert sorted(seen) == sorted(made)
    latest_first = list(Session.objects.values_list("pk", flat=True))
    assert seen == (latest_first if further == "older" else latest_first[::-1])


def test_the_empty_list_says_what_to_do_next(viewer):
    assert "Ask an operator to connect an agent" in listed(viewer)
    assert "No session matches" in listed(viewer, q="nothing")


def test_an_operator_is_led_to_the_connect_page(client):
    client.force_login(cast.person("olga", "operator"))
    assert 'href="/connect/"' in listed(client)


def test_a_title_is_text(viewer):
    settled(title="<script>alert(1)</script>")
    html = listed(viewer)
    assert "<script>alert(1)" not in html
    assert "&lt;script&gt;alert(1)" in html


# --- order, groups, export, and the way by a session's own id ---------------------------------------------------------


def titles(client, **query) -> list[str]:
    page = client.get("/sessions/", query).context["page"]
    return [session.title for session in page.object_list]


def test_the_list_can_be_put_in_another_order(viewer):
    for value, cost, day in ((0.2, 3.0, 1), (0.9, 1.0, 2), (0.5, None, 3)):
        settled(value=value, title=f"{value}", cost_usd=cost, ended_at=cast.NOON + dt.timedelta(days=day))
    assert titles(viewer) == ["0.5", "0.9", "0.2"]
    assert titles(viewer, sort="oldest") == ["0.2", "0.9", "0.5"]
    assert titles(viewer, sort="best") == ["0.9", "0.5", "0.2"]
    assert titles(viewer, sort="worst") == ["0.2", "0.5", "0.9"]
    assert titles(viewer, sort="dearest") == ["0.2", "0.9", "0.5"]
    assert titles(viewer, sort="nonsense") == titles(viewer)


def test_the_list_narrows_to_days(viewer):
    days = [timezone.localdate(cast.NOON) + dt.timedelta(days=number) for number in range(3)]
    for number, day in enumerate(days):
        settled(title=f"{number}", ended_at=cast.NOON + (day - days[0]))
    assert titles(viewer, since=days[1]) == ["2", "1"]
    assert titles(viewer, until=days[1]) == ["1", "0"]
    assert titles(viewer, since=days[1], until=days[1]) == ["1"]
    assert titles(viewer, since="eve") == ["2", "1", "0"]


def test_pages_of_another_order_show_each_session_once(viewer, monkeypatch):
    monkeypatch.setattr(paging, "PAGE_SIZE", 2)
    for number in range(5):
        settled(value=number / 10, title=f"{number}")
    assert [titles(viewer, sort="best", page=page) for page in (1, 2, 3)] == [["4", "3"], ["2", "1"], ["0"]]
    assert titles(viewer, sort="best", page=99) == ["4", "3"]


def test_what_rows_have_in_common_is_said_once(viewer):
    for number in range(3):
        settled(Source.TRAJECTORY, 0.41, title=f"{number}")
    session = cast.session(outcome=Outcome.INFRASTRUCTURE, outcome_reason="the login had expired", title="another")
    rewards.settle(session)
    (group,) = viewer.get("/sessions/").context["groups"]
    ((count, words),) = group.shared
    assert count == 3
    assert words == "No judge is configured"
    assert {row.session.title: bool(row.note) for row in group.rows} == {
        "0": False,
        "1": False,
        "2": False,
        "another": True,
    }


def test_the_export_is_what_the_list_shows(viewer):
    settled(value=0.7, title="=cmd()", external_id="s-1", category="code")
    settled(value=0.2, title="left out", category="infra")
    text = b"".join(viewer.get("/sessions.csv", {"category": "code"}).streaming_content).decode()
    header, row = text.splitlines()
    told = dict(zip(header.split(","), row.split(","), strict=True))
    assert (told["session"], told["title"], told["reward"], told["arm"]) == ("s-1", "'=cmd()", "0.7", "code")
    lines = b"".join(viewer.get("/sessions.jsonl").streaming_content).decode().splitlines()
    assert [json.loads(line)["reward"] for line in lines] == [0.2, 0.7]


def test_a_session_is_found_by_its_own_id(viewer):
    session = settled(external_id="run/2026 07?x")
    assert viewer.get("/sessions/by-id/run/2026%2007%3Fx").url == session.get_absolute_url()
    assert viewer.get("/sessions/by-id/none").status_code == 404
    other = settled(external_id="run/2026 07?x", agent=cast.agent("alice"))
    assert viewer.get("/sessions/by-id/run/2026%2007%3Fx").url == "/sessions/?q=run%2F2026+07%3Fx"
    assert viewer.get("/sessions/by-id/run/2026%2007%3Fx?agent=alice").url == other.get_absolute_url()


def test_a_uuid_is_said_by_its_first_eight_characters():
    session = cast.session(external_id="0195a3d1-7c90-7000-8000-0123456789ab")
    assert session.short_id == "0195a3d1"
