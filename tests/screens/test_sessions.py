"""The sessions list: what a row says, how it is narrowed, and that fifty rows cost what one costs."""

import datetime as dt
import json
import re
from html import unescape

import pytest
from django.utils import timezone

from grading.models import Session
from grading.monitoring.watch import inspect_session
from grading.review.trust import Behind
from grading.screens.sessions import paging
from grading.vocabulary import Outcome, Reason, Source
from tests.casts.page import flat
from tests.site import NOON

pytestmark = pytest.mark.django_db


def listed(client, **query) -> str:
    response = client.get("/sessions/", query)
    assert response.status_code == 200
    return flat(response)


def test_a_row_shows_grade_source_shape_and_arm(site, viewer):
    site.session(
        title="Add a retry guard", model="claude-sonnet-5-5", started_at=NOON - dt.timedelta(minutes=34)
    ).judged(0.72).settle()
    html = listed(viewer)
    assert '<span class="chip c-judge " title="final">.72</span>' in html
    assert 'href="#i-judge"' in html
    for text in ("Add a retry guard", "cross-repo", "bob", "claude-sonnet-5-5", "The judge decides"):
        assert text in html


@pytest.mark.parametrize("behind", Behind)
def test_the_list_behind_a_figure_says_what_it_shows(viewer, behind):
    said = unescape(listed(viewer, behind=behind.value))
    assert f"Only {behind.words}." in said
    assert "Only all" not in said


def test_a_provisional_reward_is_hatched_and_says_why(site, viewer):
    site.session().graded(Source.TRAJECTORY, 0.41).settle()
    html = listed(viewer)
    assert '<span class="chip c-trajectory prov" title="provisional">.41</span>' in html
    assert "No judge" in html


def test_a_session_at_the_floor_shows_a_dash_and_never_a_number(site, viewer):
    site.session().graded(Source.TRAJECTORY, None, Reason.NO_TRANSCRIPT).settle()
    html = listed(viewer)
    assert 'title="not graded yet (floor)">–</span>' in html
    assert ">.10<" not in html


def test_a_session_that_died_of_infrastructure_has_no_reward_and_a_reason(site, viewer):
    site.session(outcome=Outcome.INFRASTRUCTURE, outcome_reason="the login had expired").settle()
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
def test_the_list_narrows(site, viewer, query, found):
    site.session(title="judged: a retry guard for the webhook", external_id="id-of-judged").judged(0.72).settle()
    other = site.session("code", title="other", harness="gptme", agent="alice").graded(Source.JOURNAL, 0.32).settle()
    site.on(other).with_pull_request()
    inspect_session(other)
    html = listed(viewer, **query)
    assert (found == "judged") == ("judged: a retry" in html)
    assert (found == "other") == ("other</a>" in html)


def test_a_filter_that_does_not_exist_is_said_and_left_out(site, viewer):
    site.session(title="still here").judged(0.72).settle()
    html = listed(viewer, category="nonsense", q="still")
    assert "Filter ignored" in html
    assert "still here" in html


def test_pages_keep_the_filters(site, viewer):
    for number in range(51):
        site.session(title=f"many {number}").judged(0.72).settle()
    html = listed(viewer, q="many")
    (older,) = re.findall(r'rel="next" href="([^"]*)"', html)
    assert older.startswith("?q=many&amp;before=")
    for page in (unescape(older), "?q=many&page=last"):
        last = viewer.get(f"/sessions/{page}").context_data["page"]
        assert (len(last.object_list), last.older, last.count) == (1 if "before" in page else 50, "", 51)
    assert viewer.get("/sessions/?q=many&before=never&page=99").context_data["page"].newer == ""


@pytest.mark.parametrize(("begin", "further"), [("?", "older"), ("?page=last", "newer"), ("?flagged=no", "older")])
def test_walking_from_page_to_page_shows_each_session_once(site, viewer, monkeypatch, begin, further):
    monkeypatch.setattr(paging, "PAGE_SIZE", 4)
    made = [
        site.session(ended_at=NOON - dt.timedelta(hours=number // 3)).judged(0.72).settle().pk for number in range(11)
    ]
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


def test_an_operator_is_led_to_the_connect_page(site, client):
    client.force_login(site.person("olga", "operator"))
    assert 'href="/connect/"' in listed(client)


def test_a_title_is_text(site, viewer):
    site.session(title="<script>alert(1)</script>").judged(0.72).settle()
    html = listed(viewer)
    assert "<script>alert(1)" not in html
    assert "&lt;script&gt;alert(1)" in html


# --- order, groups, export, and the way by a session's own id ---------------------------------------------------------


def titles(client, **query) -> list[str]:
    page = client.get("/sessions/", query).context["page"]
    return [session.title for session in page.object_list]


def test_the_list_can_be_put_in_another_order(site, viewer):
    for value, cost, day in ((0.2, 3_000_000, 1), (0.9, 1_000_000, 2), (0.5, None, 3)):
        costs = {} if cost is None else {"cost_micro": cost, "cost_unknown": ""}
        site.session(title=f"{value}", **costs, ended_at=NOON + dt.timedelta(days=day)).judged(value).settle()
    assert titles(viewer) == ["0.5", "0.9", "0.2"]
    assert titles(viewer, sort="oldest") == ["0.2", "0.9", "0.5"]
    assert titles(viewer, sort="best") == ["0.9", "0.5", "0.2"]
    assert titles(viewer, sort="worst") == ["0.2", "0.5", "0.9"]
    assert titles(viewer, sort="dearest") == ["0.2", "0.9", "0.5"]
    assert titles(viewer, sort="nonsense") == titles(viewer)


def test_the_list_narrows_to_days(site, viewer):
    days = [timezone.localdate(NOON) + dt.timedelta(days=number) for number in range(3)]
    for number, day in enumerate(days):
        site.session(title=f"{number}", ended_at=NOON + (day - days[0])).judged(0.72).settle()
    assert titles(viewer, since=days[1]) == ["2", "1"]
    assert titles(viewer, until=days[1]) == ["1", "0"]
    assert titles(viewer, since=days[1], until=days[1]) == ["1"]
    assert titles(viewer, since="eve") == ["2", "1", "0"]


def test_pages_of_another_order_show_each_session_once(site, viewer, monkeypatch):
    monkeypatch.setattr(paging, "PAGE_SIZE", 2)
    for number in range(5):
        site.session(title=f"{number}").judged(number / 10).settle()
    assert [titles(viewer, sort="best", page=page) for page in (1, 2, 3)] == [["4", "3"], ["2", "1"], ["0"]]
    assert titles(viewer, sort="best", page=99) == ["4", "3"]


def test_what_rows_have_in_common_is_said_once(site, viewer):
    for number in range(3):
        site.session(title=f"{number}").graded(Source.TRAJECTORY, 0.41).settle()
    site.session(outcome=Outcome.INFRASTRUCTURE, outcome_reason="the login had expired", title="another").settle()
    (group,) = viewer.get("/sessions/").context["groups"]
    ((count, words),) = group.shared
    assert count == 3
    assert words == "Not judged"
    assert {row.session.title: bool(row.note) for row in group.rows} == {
        "0": False,
        "1": False,
        "2": False,
        "another": True,
    }


def test_the_export_is_what_the_list_shows(site, viewer):
    site.session("code", title="=cmd()", external_id="s-1").judged(0.7).settle()
    site.session("infra", title="left out").judged(0.2).settle()
    text = b"".join(viewer.get("/sessions.csv", {"category": "code"}).streaming_content).decode()
    header, row = text.splitlines()
    told = dict(zip(header.split(","), row.split(","), strict=True))
    assert (told["session"], told["title"], told["reward"], told["arm"]) == ("s-1", "'=cmd()", "0.7", "code")
    lines = b"".join(viewer.get("/sessions.jsonl").streaming_content).decode().splitlines()
    assert [json.loads(line)["reward"] for line in lines] == [0.2, 0.7]


def test_a_session_is_found_by_its_own_id(site, viewer):
    session = site.session(external_id="run/2026 07?x").judged(0.72).settle()
    assert viewer.get("/sessions/by-id/run/2026%2007%3Fx").url == session.get_absolute_url()
    assert viewer.get("/sessions/by-id/none").status_code == 404
    other = site.session(external_id="run/2026 07?x", agent="alice").judged(0.72).settle()
    assert viewer.get("/sessions/by-id/run/2026%2007%3Fx").url == "/sessions/?q=run%2F2026+07%3Fx"
    assert viewer.get("/sessions/by-id/run/2026%2007%3Fx?agent=alice").url == other.get_absolute_url()


def test_a_uuid_is_said_by_its_first_eight_characters(site):
    session = site.session(external_id="0195a3d1-7c90-7000-8000-0123456789ab").session
    assert session.short_id == "0195a3d1"


def test_a_column_that_says_the_same_in_every_row_is_left_out(site, viewer):
    """It is said once, over the list; what is unknown in every row isn't said at all."""
    for model in ("claude-opus-4-6", "claude-sonnet-5-5"):
        site.session(model=model).judged(0.5).settle()
    page = viewer.get("/sessions/")
    assert page.context["shows"] == {"model"}
    assert "All rows share: agent bob, arm cross-repo, harness Claude Code." in unescape(flat(page))
    html = listed(viewer, model="claude-opus-4-6")
    assert "<td>cross-repo</td>" in html
