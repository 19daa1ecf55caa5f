"""What the judge cost: by day, agent, model and purpose, honest about what nobody told, and every attempt as CSV."""

import csv
import datetime as dt
import io

import pytest
import time_machine

from grading.judging.allowance import budget
from grading.judging.outlook import costs
from grading.judging.outlook.costs import Spend
from grading.models import JudgeAttempt, JudgeBatch, JudgeKeyTest
from grading.models.judging import AttemptOutcome, Purpose
from grading.vocabulary import Reason
from tests.casts import quota as quota_cast
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 3, 31, 19, 40, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False):
        yield


def shown(client, query="") -> str:
    response = client.get(f"/quota/costs/{query}")
    assert response.status_code == 200
    return flat(response)


def unknown_cost(usd=0.05, **fields) -> JudgeAttempt:
    """A call that may have cost something, and nobody says how much."""
    return quota_cast.attempt(quota_cast.job(NOW), NOW, AttemptOutcome.LOST, estimated_usd=usd, **fields)


def turned_away() -> JudgeAttempt:
    return quota_cast.attempt(quota_cast.job(NOW), NOW, AttemptOutcome.DEFERRED, Reason.RATE_LIMITED, http_status=429)


def table(client, by, query="") -> dict[str, Spend]:
    context = client.get(f"/quota/costs/{query}").context
    [found] = [one for one in (*context["tables"], context["days"]) if one["by"] == by]
    return {row["name"]: row["spend"] for row in found["rows"]}


def exported(client, query="") -> list[dict[str, str]]:
    response = client.get(f"/quota/costs.csv{query}")
    assert response.status_code == 200
    return list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))


def test_an_unknown_cost_is_never_nothing():
    """I142: three of four costs known is 75 %, below 80 %: a lower bound."""
    for _ in range(3):
        quota_cast.judged(NOW)
    unknown_cost()
    turned_away()
    found = costs.spend(JudgeAttempt.objects.all())
    assert (found.attempts, found.known, found.unknown_cost, found.free) == (5, 3, 1, 1)
    assert found.usd == pytest.approx(3 * 0.0458)
    assert (found.coverage, found.is_least) == (0.75, True)
    assert found.committed_usd == pytest.approx(3 * 0.0458 + 0.05)


def test_at_eighty_percent_known_the_sum_stands_by_itself():
    for _ in range(4):
        quota_cast.judged(NOW)
    unknown_cost()
    assert not costs.spend(JudgeAttempt.objects.all()).is_least


def test_where_nothing_is_known_there_is_no_sum():
    unknown_cost()
    found = costs.spend(JudgeAttempt.objects.all())
    assert (found.usd, found.coverage, found.each_usd) == (None, 0.0, None)


def test_a_graded_call_without_usage_is_unknown_too():
    quota_cast.judged(NOW, cost_usd=None, input_tokens=None, output_tokens=None)
    assert costs.spend(JudgeAttempt.objects.all()).coverage == 0.0


def test_the_terms_add_up_to_the_cost_also_in_batches_and_from_the_cache():
    quota_cast.judged(NOW, input_tokens=10_000, output_tokens=1000, cache_read_tokens=50_000, cost_usd=0.04)
    batch = JudgeBatch.objects.create()
    quota_cast.judged(NOW, input_tokens=10_000, output_tokens=1000, batch=batch, cost_usd=0.015)
    found = costs.terms(JudgeAttempt.objects.all())
    assert [(term.label, term.tokens, term.price) for term in found] == [
        ("input tokens", 10_000, 2.0),
        ("output tokens", 1000, 10.0),
        ("tokens from the cache", 50_000, 0.2),
        ("input tokens in batches", 10_000, 1.0),
        ("output tokens in batches", 1000, 5.0),
    ]
    assert sum(term.usd for term in found) == pytest.approx(0.055)


def test_what_is_known_in_part_says_at_least(viewer):
    quota_cast.judged(NOW)
    unknown_cost()
    html = shown(viewer)
    assert '<span class="least">at least </span> 4.6 ¢' in html
    assert "estimated 5.0 ¢ more for 1 call without a reported cost" in html
    assert "≈ 5.0 ¢" in html


def test_a_bar_counts_one_call_in_the_singular(viewer):
    quota_cast.attempt(quota_cast.job(NOW), NOW)
    unknown_cost()
    assert "1 more call estimated at 5.0 ¢" in shown(viewer)


def test_costs_are_told_by_agent_model_purpose_and_day(site, viewer):
    quota_cast.judged(NOW, agent=site.agent("alice"))
    quota_cast.judged(NOW - DAY, agent=site.agent("bob"), model="claude-haiku-5-5", purpose=Purpose.REPEAT)
    quota_cast.judged(NOW - DAY, agent=site.agent("bob"), batch=JudgeBatch.objects.create(), cost_usd=0.0229)
    assert {name: spend.attempts for name, spend in table(viewer, "agent").items()} == {"alice": 1, "bob": 2}
    assert set(table(viewer, "model")) == {"claude-haiku-5-5", "claude-sonnet-5-5"}
    assert set(table(viewer, "purpose")) == {"Verdict", "Asked twice", "Verdict, in a batch at half price"}
    assert list(table(viewer, "day")) == ["31 Mar 2026", "30 Mar 2026"]
    assert table(viewer, "day")["30 Mar 2026"].usd == pytest.approx(0.0458 + 0.0229)


def key_test(usd=0.002, **fields) -> JudgeKeyTest:
    said = {"hint": "h7Qw", "model": "claude-sonnet-5-5", "started_at": NOW, "finished_at": NOW, "cost_usd": usd}
    return JudgeKeyTest.objects.create(**{**said, **fields})


def test_tests_of_the_key_are_a_line_of_their_own_and_in_every_sum(viewer):
    quota_cast.attempt(quota_cast.job(NOW), NOW, cost_usd=0.07)
    key_test()
    key_test(started_at=NOW - DAY)
    key_test(usd=None, reason=Reason.AUTH)
    tests = table(viewer, "purpose")["Test of the key, or canary"]
    assert tests == Spend(attempts=3, known=2, usd=pytest.approx(0.004))
    assert table(viewer, "agent")["none (key tests and canaries)"].usd == pytest.approx(0.004)
    assert table(viewer, "day")["31 Mar 2026"].usd == pytest.approx(0.072)
    assert table(viewer, "day")["30 Mar 2026"].usd == pytest.approx(0.002)
    assert viewer.get("/quota/costs/").context["total"].usd == pytest.approx(0.074)
    assert viewer.get("/quota/costs/?purpose=key-test").context["total"].attempts == 3
    assert viewer.get("/quota/costs/?agent=bob").context["total"].usd == pytest.approx(0.07)
    told = [(row["purpose"], row["outcome"], row["cost_usd"]) for row in exported(viewer, "?purpose=key-test")]
    assert told == [("key-test", "answered", "0.002"), ("key-test", "answered", "0.002"), ("key-test", "failed", "")]


def test_spent_today_is_what_the_budget_counts_tests_of_the_key_included(viewer, settings):
    quota_cast.use(settings)
    quota_cast.attempt(quota_cast.job(NOW), NOW, cost_usd=0.07)
    key_test(usd=0.04)
    assert budget.spent_today(NOW) == pytest.approx(0.11)
    for path in ("/", "/quota/"):
        html = flat(viewer.get(path))
        start = html.index("Spent today")
        assert "$0.11" in html[start : start + 900]
        assert "canary or key test" in html[start : start + 2500]
        assert "4.00 ¢" in html[start : start + 2500]


@pytest.mark.parametrize("purpose", Purpose)
def test_whatever_a_call_is_for_has_its_row(site, viewer, purpose):
    again = {"sample": 2, "sample_of": site.session().judged(0.5).grade} if purpose == Purpose.SAMPLE else {}
    quota_cast.judged(NOW, purpose=purpose, again=again)
    assert list(table(viewer, "purpose", f"?purpose={purpose}")) == [purpose.words.capitalize()]


def test_a_day_ends_at_midnight_of_the_sites_zone(viewer, settings):
    settings.TIME_ZONE = "America/New_York"
    quota_cast.judged(dt.datetime(2026, 3, 31, 3, 59, tzinfo=dt.UTC))
    quota_cast.judged(dt.datetime(2026, 3, 31, 4, 1, tzinfo=dt.UTC))
    assert list(table(viewer, "day")) == ["31 Mar 2026", "30 Mar 2026"]
    assert list(table(viewer, "day", "?days=1")) == ["31 Mar 2026"]


@pytest.mark.parametrize(
    ("query", "attempts"),
    [("", 3), ("?days=1", 2), ("?agent=alice", 1), ("?model=claude-haiku-5-5", 1), ("?purpose=second", 1),
     ("?outcome=limited", 1), ("?outcome=graded&agent=bob", 1)],
)  # fmt: skip
def test_the_page_its_list_and_its_csv_are_narrowed_alike(site, viewer, query, attempts):
    quota_cast.judged(NOW - 2 * DAY, agent=site.agent("bob"), model="claude-haiku-5-5")
    quota_cast.judged(NOW, agent=site.agent("alice"), purpose=Purpose.SECOND)
    turned_away()
    quota_cast.judged(NOW - 40 * DAY)
    context = viewer.get(f"/quota/costs/{query}").context
    assert context["total"].attempts == context["page"].paginator.count == attempts
    assert len(exported(viewer, query)) == attempts


def test_a_filter_that_does_not_exist_is_said_and_left_out(viewer):
    quota_cast.judged(NOW)
    html = shown(viewer, "?agent=nobody&days=12&page=x")
    assert "Filter ignored." in html
    assert "1 call × 4.58 ¢ on average" in html


def test_attempts_are_paged_and_lead_to_their_sessions(viewer):
    for _ in range(26):
        made = quota_cast.judged(NOW)
    html = shown(viewer, "?days=7")
    assert "1 to 25 of 26" in html
    assert 'href="?days=7&amp;page=2#attempts"' in html
    assert f'href="/sessions/{made.job.session_id}/"' in html
    assert "26 to 26 of 26" in shown(viewer, "?days=7&page=2")


def test_an_empty_page_says_what_would_be_there(viewer):
    html = shown(viewer)
    assert "Calls will be listed here with their outcome, tokens and cost." in html
    assert "No attempts match these filters." in shown(viewer, "?outcome=lost")


def test_the_csv_keeps_an_unknown_cost_empty(viewer):
    unknown_cost()
    quota_cast.judged(NOW)
    unknown, known = exported(viewer)
    assert (unknown["cost_usd"], unknown["estimated_usd"]) == ("", "0.05")
    assert (known["cost_usd"], known["input_tokens"], known["purpose"]) == ("0.0458", "18400", "verdict")
    assert known["started_at"] == "2026-03-31T19:40:00+00:00"


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_of_the_csv_is_a_formula(site, viewer, text):
    session = site.session(external_id=text, ended_at=NOW).session
    quota_cast.attempt(quota_cast.job(NOW, session=session), NOW, detail=text)
    [row] = exported(viewer)
    assert row["session"] == row["detail"] == f"'{text}"


def test_hostile_text_stays_text(viewer):
    quota_cast.judged(NOW, detail="<script>alert(1)</script>", model="<b>model</b>")
    html = shown(viewer)
    assert "<script>alert" not in html
    assert "<b>model" not in html


def test_every_attempt_is_of_exactly_one_kind():
    from grading.judging.outlook.attempts import KINDS

    job, batch = quota_cast.job(NOW), JudgeBatch.objects.create()
    for outcome in AttemptOutcome:
        for reason in Reason:
            for sent in (None, batch):
                quota_cast.attempt(job, NOW, outcome, reason, batch=sent)
    kinds = [set(JudgeAttempt.objects.filter(kind.condition).values_list("pk", flat=True)) for kind in KINDS]
    assert sum(len(kind) for kind in kinds) == len(set().union(*kinds)) == JudgeAttempt.objects.count()
