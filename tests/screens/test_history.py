"""The history of what people did: every act, its effects, its filters, its pages, and its downloads."""

import csv
import datetime as dt
import io
import json
import re
from pathlib import Path

import pytest
import time_machine
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.utils import timezone

from bandit.models import Arm, Bandit, CalibrationVersion
from grading.access.recording import record
from grading.intake.categories import changes
from grading.models import Agent, Alarm, JudgePolicy, JudgeRun, ReviewItem, Rubric, RubricActivation
from grading.models.audit import AuditKind
from grading.models.review import Answer
from grading.monitoring.sessions import impossible_pair
from grading.monitoring.watch import acknowledge, inspect_session
from grading.review import answers, audit, exported, notes
from grading.review.acts import HistoryKind
from grading.review.audit import HistoryCursor, HistoryFilters
from grading.vocabulary import Source
from tests.casts.page import flat
from tests.site import NOON

pytestmark = pytest.mark.django_db

DOCS = Path(__file__).parents[2] / "docs" / "exports.md"


@pytest.fixture
def clock():
    with time_machine.travel(NOON + dt.timedelta(days=1), tick=False) as traveller:
        yield traveller


def graded(site, rita, value=0.8, reason="merged", **fields):
    session = site.session(**fields).graded(Source.JOURNAL, 0.32).settle()
    return answers.submit(session, rita, answer=Answer.GRADE, value=value, reason=reason)


def listed(client, **query) -> str:
    response = client.get("/history/", query)
    assert response.status_code == 200
    return flat(response)


def downloaded(client, name="history.csv", **query) -> list[dict[str, str]]:
    text = b"".join(client.get(f"/{name}", query).streaming_content).decode()
    return list(csv.DictReader(io.StringIO(text))) if name.endswith("csv") else list(map(json.loads, text.splitlines()))


def test_an_answer_shows_who_what_why_and_the_reward_before_and_after(site, viewer, rita):
    graded(site, rita)
    html = listed(viewer)
    for text in (
        "rita",
        "Graded .80",
        "merged",
        '.32 <span class="dimmer">→</span> <strong>.80</strong>',
        "cross-repo",
    ):
        assert text in html


def test_an_act_on_a_sample_says_so(site, viewer, rita):
    tag = '<span class="sampletag">sample</span>'
    graded(site, rita)
    assert tag not in listed(viewer)
    graded(site, rita, is_sample=True)
    assert listed(viewer).count(tag) == 1


def test_i152_an_answer_opens_the_list_of_everything_that_it_changed(site, viewer, rita):
    session = site.session().graded(Source.JOURNAL, 0.32).settle()
    site.on(session).with_pull_request()
    inspect_session(session)
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.8, reason="merged", seconds=34)
    html = listed(viewer)
    for bandit, arm in (("category", "cross-repo"), ("harness", "claude-code")):
        assert re.search(rf"<li>{bandit}: mean of {arm} from \.\d\d\d to \.\d\d\d", html)
    for text in (
        "Flag cleared: no real grade for a pull request or commit",
        "Previously decided by journal",
        "Took 34 s",
    ):
        assert text in html
    [line] = downloaded(viewer, "history.jsonl")
    assert line["effects"] == answer.effects


def test_an_undoing_stays_beside_what_it_undid(site, viewer, rita):
    answers.undo(graded(site, rita), rita, "a slip")
    html = listed(viewer)
    assert "Undid “graded .80”" in html
    assert '<span class="pill line">undone</span>' in html
    undoing, given = downloaded(viewer)
    assert (undoing["kind"], undoing["undoes"], undoing["reward_after"]) == ("undo", given["id"], "0.32")
    assert (given["undone_by"], given["holds"]) == ("rita", "false")


@pytest.fixture
def everything(site, rita):
    """One act of each kind."""
    olga = site.person("olga", "operator")
    session = site.session().judged(0.5).settle()
    answers.undo(answers.submit(session, rita, answer=Answer.GRADE, value=0.6), rita, "a slip")
    notes.reveal(session, rita, 0.4)
    notes.comment(session, rita, "what a patch")
    notes.unflag(notes.flag(session, rita, "look at it"), rita)
    alarm = Alarm.objects.create(rule=impossible_pair.id, detail="three")
    acknowledge(alarm, rita)
    rubric = Rubric.objects.active()
    RubricActivation.objects.create(rubric=rubric, by=olga)
    JudgeRun.objects.create(rubric=rubric, by=olga, total=2, cancelled_by=olga, cancelled_at=timezone.now())
    JudgePolicy.objects.create(by=olga, daily_budget_usd=5)
    category = Bandit.objects.get(name="category")
    CalibrationVersion.objects.create(bandit=category, version=2, by="olga", note="try it", accepted=True)
    of_agent = ContentType.objects.get_for_model(Agent)
    LogEntry.objects.create(user=olga, content_type=of_agent, object_id="1", object_repr="bob", action_flag=CHANGE)
    changes.undo(changes.set_by_hand([session.pk], Arm.objects.resolve("category", "code"), rita), rita, "a slip")
    for kind in AuditKind:
        record(kind, "did something")
    return session


def test_every_kind_of_act_is_listed_and_found_by_its_kind(client, everything):
    client.force_login(User.objects.get(username="olga"))
    assert {act.kind for act in audit.read_page(HistoryFilters(with_access=True), size=200).acts} == set(HistoryKind)
    for kind in HistoryKind:
        assert {row["kind"] for row in downloaded(client, kind=kind)} == {kind}
    html = listed(client)
    for text in (
        "Did something", "Commented", "what a patch", "Flagged it", "Removed the flag",
        "Acknowledged the alarm “No real grade for a pull request or commit”",
        "Saw the judge’s", "Had 2 sessions judged again", "Cancelled judging again", "$5.00 a day",
        "Put a calibration in force for the category bandit", "Changed the agent bob",
        "Set the categories of 1 session by hand",
    ):  # fmt: skip
        assert text in html


def test_everybody_sees_edits_of_category_rules_and_only_operators_from_where(client, viewer, site):
    client.force_login(site.person("olga", "operator"))
    condition = {"field-0": "words", "test-0": "contains", "values-0": "inbox"}
    client.post("/categories/", {"do": "save", "category": "triage", **condition}, REMOTE_ADDR="203.0.113.9")
    (row,) = downloaded(viewer, kind="category")
    assert (row["person"], row["what"]) == ("olga", "added rule 1: words of the task contains inbox → triage")
    html = listed(viewer)
    assert "Added rule 1" in html
    assert "203.0.113.9" not in html


def test_the_history_narrows_by_person_arm_session_and_day(site, viewer, rita, omar, clock):
    one, other = graded(site, rita, category="code"), None
    clock.shift(dt.timedelta(days=2))
    other = graded(site, omar, value=0.9)
    finds = [
        ({"person": "omar"}, other), ({"arm": "code"}, one), ({"session": one.session.external_id}, one),
        ({"until": "2026-04-01"}, one), ({"since": "2026-04-02"}, other), ({"since": "2026-04-01", "arm": "code"}, one),
    ]  # fmt: skip
    for query, wanted in finds:
        assert [row["id"] for row in downloaded(viewer, **query)] == [f"answer-{wanted.pk}"], query
    assert "Nothing matches these filters" in listed(viewer, person="omar", arm="code")


def test_a_filter_that_does_not_exist_is_said_and_left_out(site, viewer, rita):
    graded(site, rita)
    html = listed(viewer, person="nobody", since="yesterday", before="nonsense")
    assert html.count("Filter ignored") == 2
    assert "Graded .80" in html


def test_pages_by_keyset_show_every_act_once_also_those_of_one_moment(site, rita, clock):
    given = graded(site, rita)
    for number in range(7):
        notes.comment(given.session, rita, f"note {number}")
        notes.reveal(site.session().graded(Source.JOURNAL, 0.32).settle(), rita, 0.5)
    everything = [(act.kind, act.pk) for act in audit.read_page(HistoryFilters(), size=100).acts]
    found, before = [], None
    while True:
        page = audit.read_page(HistoryFilters(), before=before, size=4)
        found += [(act.kind, act.pk) for act in page.acts]
        if page.older is None:
            break
        before = HistoryCursor.parse(str(page.older))
    assert found == everything
    assert len(found) == len(set(found)) == 15


def test_an_older_page_is_linked_and_keeps_the_filters(site, viewer, rita):
    given = graded(site, rita)
    for number in range(60):
        notes.comment(given.session, rita, f"note {number}")
    html = listed(viewer, kind="comment")
    older = re.search(r'href="\?(kind=comment&amp;before=[^"]+)"', html)[1].replace("&amp;", "&")
    html = flat(viewer.get(f"/history/?{older}"))
    assert html.count("Commented") == 10
    assert "Newest" in html


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_text_in_a_download_is_no_formula(site, viewer, rita, start):
    session = site.session(external_id=f"{start}cmd|' /C calc'!A0").graded(Source.JOURNAL, 0.32).settle()
    notes.comment(session, rita, "=HYPERLINK(1)")
    [row] = downloaded(viewer)
    assert row["session"].startswith(f"'{start}")
    assert row["reason"] == "'=HYPERLINK(1)"
    [line] = downloaded(viewer, "history.jsonl")
    assert line["reason"] == "=HYPERLINK(1)"


def test_numbers_are_unrounded_and_times_are_in_utc(site, viewer, rita, clock):
    answers.submit(site.session().graded(Source.JOURNAL, 1 / 3).settle(), rita, answer=Answer.ACCEPT)
    [row] = downloaded(viewer)
    assert float(row["reward_before"]) == 1 / 3
    assert row["at"] == "2026-04-01T12:00:00+00:00"


def test_the_documentation_names_every_column():
    text = DOCS.read_text()
    assert {name for name in (*exported.ACT_FIELDS, *exported.PAIR_FIELDS) if f"`{name}`" not in text} == set()


def blind(site, rita, *, value=0.6, entered=0.2):
    """A blind answer to a judged session of the random check."""
    session = site.session().judged(0.5).settle()
    ReviewItem.objects.update_or_create(session=session, defaults={"entered_as": "slice", "slice_probability": entered})
    return answers.submit(session, rita, answer=Answer.GRADE, value=value)


def test_calibration_data_are_the_blind_pairs_of_the_slice(site, viewer, rita):
    answer = blind(site, rita)
    blind(site, rita, entered=None)
    [row] = downloaded(viewer, "calibration.csv")
    assert (row["session"], row["reviewer"]) == (answer.session.external_id, "rita")
    values = (row["judge_value"], row["human_blind_value"], row["human_final_value"], row["slice_probability"])
    assert values == ("0.5", "0.6", "0.6", "0.2")
    assert (row["was_shown"], row["in_chain"]) == ("true", "true")
    answers.undo(answer, rita, "a slip")
    assert downloaded(viewer, "calibration.csv") == []


def test_the_empty_history_says_what_would_appear(viewer):
    assert "Nobody has done anything yet" in listed(viewer)


def test_what_people_wrote_is_text(site, viewer, rita):
    notes.comment(site.session().graded(Source.JOURNAL, 0.32).settle(), rita, "<script>alert(1)</script>")
    html = listed(viewer)
    assert "<script>alert(1)" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_a_grade_undone_on_its_sessions_page_is_in_the_history_too(site, client, rita):
    client.force_login(rita)
    answer = graded(site, rita)
    html = flat(client.post(f"/grades/{answer.grade_id}/undo/", {"reason": "a slip"}, follow=True))
    assert "Undone. Reward .32, provisional." in html
    assert "Undid “graded .80”" in listed(client)


def test_equal_sign_ins_in_a_row_are_one_row_until_one_asks_for_them(site, client):
    client.force_login(site.person("olga", "operator"))
    for _ in range(3):
        record(AuditKind.SIGN_IN, "signed in", who="rita")
    assert "3 times since" in listed(client)
    assert "times since" not in listed(client, kind=HistoryKind.SIGN_IN)
    assert listed(client, kind=HistoryKind.SIGN_IN).count("<td>rita</td>") == 3
