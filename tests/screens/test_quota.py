"""The quota page: each state in words with real counts, what operators do about it, the line on every other page."""

import datetime as dt
import re

import pytest
import time_machine

from grading.judging.allowance import budget
from grading.judging.core.forecast import Forecast, ForecastEnding
from grading.judging.outlook.forecast import QueueOutlook
from grading.models import JudgeJob, JudgePolicy, Quota, QuotaTransition
from grading.models.judging import AttemptOutcome, JobState, JudgeRole, Purpose
from grading.models.quota import QuotaState
from grading.monitoring.watch import refresh_alarms
from grading.reward import rewards
from grading.screens.quota import figures
from grading.vocabulary import Reason
from tests.casts import quota as quota_cast
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 3, 31, 19, 40, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2026, 4, 1, tzinfo=dt.UTC)
ACTIONS = ("/quota/pause/", "/quota/resume/", "/quota/probe/", "/quota/policy/")
SHARES = {"reserved_share": "20", "abstention_share": "10", "repeat_share": "5", "second_share": "25"}
POLICY = {"daily_budget_usd": "5", **SHARES}


@pytest.fixture(autouse=True)
def judge(settings):
    quota_cast.use(settings)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # the limiter is away, whatever other tests have started
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def operator(site, client):
    client.force_login(site.person("olga", "operator"))
    return client


def opened(client, path="/quota/"):
    """The page, whose `context` says what it shows."""
    response = client.get(path)
    assert response.status_code == 200
    return response


def shown(client, path="/quota/") -> str:
    return flat(opened(client, path))


def sent(client, path, data=None):
    return client.post(path, data or {}, follow=True)


def told(response) -> list[str]:
    """How what was sent went, by the line that says so: success, info or error."""
    return [message.level_tag for message in response.context["messages"]]


def banner(client, path="/"):
    return opened(client, path).context["common"].banner


def exhausted(**fields) -> Quota:
    since = {"changed_at": NOW - dt.timedelta(hours=7, minutes=36), "until": MIDNIGHT, "detail": quota_cast.SAID}
    return quota_cast.quota(QuotaState.EXHAUSTED, **{**since, **fields})


# --- the state -------------------------------------------------------------------------------------------------------


def test_an_outage_is_said_in_words_with_the_providers_own_and_what_it_means(viewer):
    exhausted()
    for value in (0.32, 0.4, None):
        quota_cast.waiting(NOW, value)
    response = opened(viewer)
    first, effect = response.context["first"], response.context["effect"]
    assert (first.heading, first.trouble) == ("Out until 00:00 UTC", True)
    assert first.since == "since 12:04, 7 h 36 min; returns in 4 h 20 min"
    assert (effect.provisional, effect.ungraded, effect.floor_learned) == (2, 1, 0)
    html = flat(response)
    assert quota_cast.SAID in html
    assert '<b class="red">out</b>' in html


def test_every_state_has_its_heading_and_its_meaning(site, viewer):
    for state, fields, heading in (
        (QuotaState.OPEN, {}, "Open"),
        (QuotaState.PACING, {"until": NOW}, "Paced until 19:40:00"),
        (QuotaState.MISCONFIGURED, {"detail": "401"}, "Misconfigured"),
        (QuotaState.PAUSED, {"detail": "moving"}, "Paused"),
        (
            QuotaState.EXHAUSTED,
            {"reason": Reason.BUDGET_SPENT, "until": MIDNIGHT},
            "Budget spent until 00:00 UTC",
        ),
    ):
        with site.rolled_back():
            quota_cast.quota(state, **fields)
            response = opened(viewer)
            first = response.context["first"]
            assert first.heading == heading
            assert first.meaning
            assert f">{heading}</span>" in flat(response)


def test_without_a_key_the_page_says_how_to_get_a_judge_and_what_it_costs_not_to_have_one(site, viewer, settings):
    settings.ANTHROPIC_API_KEY = ""
    site.session(ended_at=NOW).graded("judge", None, Reason.NOT_CONFIGURED).settle()
    first = opened(viewer).context["first"]
    assert first.standing is None
    assert "Add a key in Settings" in first.meaning
    assert "1 session of" in first.meaning


def test_once_its_time_has_come_an_outage_says_that_it_asks_again(viewer):
    exhausted(until=NOW - dt.timedelta(minutes=1))
    assert opened(viewer).context["first"].heading == "Out, asking again"
    assert banner(viewer).until == "until it answers again"


def test_the_other_judges_have_a_line_each_and_decide_no_pill(viewer, settings):
    settings.JUDGE_SECOND_MODEL, settings.JUDGE_SECOND_BASE_URL = "another-family", "https://gateway.test"
    quota_cast.quota()
    quota_cast.quota(QuotaState.EXHAUSTED, role=JudgeRole.SECOND, until=MIDNIGHT, detail="402: pay first")
    response = opened(viewer)
    (second,) = response.context["others"]
    judge = second.standing.judge
    assert (judge.role, judge.model, judge.route) == (JudgeRole.SECOND, "another-family", "gateway.test")
    assert (second.trouble, second.quote) == (True, "402: pay first")
    assert "402: pay first" in flat(response)
    assert response.context["first"].heading == "Open"
    assert response.context["common"].site.judge.open
    assert 'id="judge-banner"' not in shown(viewer, "/sessions/")


def test_every_list_of_an_untouched_site_says_what_would_be_there(viewer):
    response = opened(viewer)
    assert (response.context["gauges"], response.context["outages"]) == ([], [])
    assert response.context["outlook"].forecast.ending is ForecastEnding.EMPTY
    assert response.context["policy"].pk is None
    assert response.context["spent"].spend.known == 0
    assert 'class="empty"' in flat(response)


# --- headroom, spend, backlog, attempts ------------------------------------------------------------------------------


def test_headroom_shows_use_limit_the_tightest_and_the_standing_reserve(viewer):
    quota_cast.quota(QuotaState.OPEN, limits=quota_cast.LIMITS, limits_at=NOW)
    quota_cast.judged(NOW)
    response = opened(viewer)
    gauges = response.context["gauges"]
    assert [(gauge["used"], gauge["limit"]) for gauge in gauges if "tightest" in gauge["note"]] == [(18_400, 30_000)]
    assert len(gauges) == 3
    assert flat(response).count('class="kept" x="80.00%"') == 3


def test_the_spend_shows_its_sum_and_counts_what_is_not_told_at_its_estimate(viewer):
    budget.set_policy(by=None, daily_budget_usd=5.0)
    for _ in range(29):
        quota_cast.judged(NOW)
    quota_cast.attempt(quota_cast.job(NOW), NOW, AttemptOutcome.LOST, estimated_usd=0.05)
    context = opened(viewer).context
    spent, spend = context["spent"], context["spent"].spend
    assert (spend.usd, spend.known, spend.each_usd) == (pytest.approx(29 * 0.0458), 29, pytest.approx(0.0458))
    assert [(term.tokens, term.price, round(term.usd, 4)) for term in spent.terms] == [
        (533_600, 2, 1.0672), (26_100, 10, 0.261),
    ]  # fmt: skip
    assert (spend.unknown_cost, spend.expected_usd) == (1, 0.05)
    assert (spend.committed_usd, spent.budget) == (pytest.approx(1.3782), 5.0)
    assert (context["outlook"].waiting, context["outlook"].each_usd) == (1, pytest.approx(0.0458))


@pytest.mark.parametrize(("estimate", "shown"), [(None, "$0"), (0.05, "–")])
def test_rejected_calls_cost_nothing_and_calls_without_a_reply_an_unknown_sum(viewer, estimate, shown):
    job = quota_cast.job(NOW)
    quota_cast.attempt(job, NOW, AttemptOutcome.DEFERRED, Reason.QUOTA_EXHAUSTED, estimated_usd=estimate)
    assert re.search(rf'class="big-figure">\s*{re.escape(shown)}\s*</span>', flat(opened(viewer)))


def test_the_rate_and_the_end_of_the_backlog_show_their_arithmetic(viewer):
    quota_cast.quota(QuotaState.OPEN, limits=quota_cast.LIMITS, limits_at=NOW)
    quota_cast.judged(NOW)
    quota_cast.waiting(NOW - dt.timedelta(minutes=5))
    context = opened(viewer).context
    assert context["arithmetic"] == "1.60 verdicts per minute: .98 × 30,000 ÷ 18,400 input tokens"
    assert context["outlook"].forecast.ending is ForecastEnding.DRAINED
    assert context["outlook"].waiting == 1


def test_attempts_are_told_by_outcome_with_the_share_of_429(viewer):
    for _ in range(98):
        quota_cast.judged(NOW)
    owed = quota_cast.job(NOW)
    quota_cast.attempt(owed, NOW, AttemptOutcome.DEFERRED, Reason.RATE_LIMITED, http_status=429)
    quota_cast.attempt(owed, NOW, AttemptOutcome.DEFERRED, Reason.RATE_LIMITED, http_status=429)
    response = opened(viewer)
    *rows, held = response.context["outcomes"]
    assert {row["kind"].name: row["n"] for row in rows if row["n"]} == {"graded": 98, "limited": 2}
    assert (response.context["calls"], held["n"]) == (100, 1)
    (limited,) = (row["words"] for row in rows if row["kind"].name == "limited")
    assert limited.startswith("2 % of calls")
    assert 'fill="url(#hatch-line)"' in flat(response)


def test_held_jobs_say_until_when(viewer):
    exhausted()
    quota_cast.waiting(NOW)
    assert "until 00:00 UTC" in opened(viewer).context["outcomes"][-1]["words"]


# --- outages ---------------------------------------------------------------------------------------------------------


def test_an_outage_has_its_blast_radius_and_a_link_to_exactly_those_sessions(viewer):
    before = quota_cast.waiting(NOW - dt.timedelta(days=1))
    JudgeJob.objects.filter(pk=before.pk).update(state=JobState.DONE, finished_at=NOW - dt.timedelta(hours=20))
    over = quota_cast.quota(QuotaState.EXHAUSTED, changed_at=NOW - dt.timedelta(hours=3), detail=quota_cast.SAID)
    quota_cast.quota(QuotaState.OPEN, changed_at=NOW - dt.timedelta(hours=1))
    held = quota_cast.job(NOW - dt.timedelta(hours=2), done=NOW - dt.timedelta(minutes=30))
    still = quota_cast.waiting(NOW - dt.timedelta(hours=4))
    later = quota_cast.waiting(NOW - dt.timedelta(minutes=10))
    response = viewer.get("/quota/")
    [row] = response.context["outages"]
    assert (row["affected"].waited, row["affected"].waiting) == (2, 1)
    assert row["period"].row.quota == over
    html = shown(viewer, row["sessions"])
    for job in (held, still):
        assert f'href="/sessions/{job.session_id}/"' in html
    for job in (before, later):
        assert f'href="/sessions/{job.session_id}/"' not in html


def test_an_outage_that_goes_on_is_hatched_until_its_reset(viewer):
    exhausted()
    response = opened(viewer)
    assert [row["period"].until for row in response.context["outages"]] == [None]
    assert "until 1 Apr, 00:00" in response.context["timeline"]


def test_a_spell_of_overload_is_on_the_timeline_and_in_its_legend(viewer):
    owed = quota_cast.job(NOW)
    for minutes in (0, 40, 80, 100):
        at = NOW - dt.timedelta(days=2) + dt.timedelta(minutes=minutes)
        quota_cast.attempt(owed, at, AttemptOutcome.DEFERRED, Reason.OVERLOADED, http_status=529)
    response = opened(viewer)
    assert response.context["spells"] == ["overloaded, 29 Mar, 19:40–21:20, 4 calls"]
    assert 'class="f-overloaded"' in flat(response)


# --- what operators do -----------------------------------------------------------------------------------------------


def test_only_an_operator_may_do_anything(site, client):
    for role in ("viewer", "reviewer"):
        client.force_login(site.person(role, role))
        html = shown(client)
        for path in ACTIONS:
            assert client.post(path).status_code == 403, path
            assert f'"{path}"' not in html
    assert not JudgePolicy.objects.exists()


def test_what_acts_at_once_needs_a_post(operator):
    assert {operator.get(path).status_code for path in ("/quota/resume/", "/quota/probe/")} == {405}


def test_pausing_needs_a_note_and_is_signed(operator):
    assert "note" in sent(operator, "/quota/pause/", {"note": " "}).context["form"].errors
    assert not QuotaTransition.objects.exists()
    response = sent(operator, "/quota/pause/", {"note": "moving the gateway"})
    html, first = flat(response), response.context["first"]
    assert told(response) == ["success"]
    assert "olga" in first.meaning
    assert first.quote == "“moving the gateway”"
    row = QuotaTransition.objects.get()
    assert (row.state, row.by.username, row.detail) == (QuotaState.PAUSED, "olga", "moving the gateway")
    assert 'action="/quota/resume/"' in html
    assert 'href="/quota/pause/"' not in html


def test_resuming_lets_it_go_on_and_twice_changes_nothing(operator):
    sent(operator, "/quota/pause/", {"note": "moving"})
    assert told(sent(operator, "/quota/resume/")) == ["success"]
    assert told(sent(operator, "/quota/resume/")) == ["info"]
    assert list(QuotaTransition.objects.values_list("state", "by__username")) == [("paused", "olga"), ("open", "olga")]


def test_resuming_does_not_end_an_outage_that_began_before(operator):
    exhausted()
    sent(operator, "/quota/pause/", {"note": "moving"})
    assert told(sent(operator, "/quota/resume/")) == ["info"]
    assert Quota.objects.get().state == QuotaState.EXHAUSTED


def test_a_probe_is_offered_while_the_judge_is_out_and_jobs_wait(operator):
    exhausted()
    response = opened(operator)
    assert f'disabled title="{response.context["probe"]}"' in flat(response)
    quota_cast.waiting(NOW)
    assert opened(operator).context["probe"] == ""
    assert told(sent(operator, "/quota/probe/")) == ["success"]
    assert Quota.objects.get().until == NOW


def test_a_probe_that_makes_no_sense_is_refused_with_its_reason(site, operator):
    for state, reason in (
        (QuotaState.OPEN, ""),
        (QuotaState.PAUSED, Reason.PAUSED),
        (QuotaState.EXHAUSTED, Reason.BUDGET_SPENT),
    ):
        with site.rolled_back():
            quota_cast.quota(state, reason=reason, until=MIDNIGHT)
            quota_cast.waiting(NOW)
            before = Quota.objects.values().get()
            response = sent(operator, "/quota/probe/")
            assert told(response) == ["error"]
            (message,) = response.context["messages"]
            assert response.context["probe"] in str(message)
            assert Quota.objects.values().get() == before


def test_without_a_key_nothing_can_be_done_and_that_is_said(operator, settings):
    settings.ANTHROPIC_API_KEY = ""
    assert told(sent(operator, "/quota/probe/")) == ["error"]
    assert told(sent(operator, "/quota/pause/", {"note": "x"})) == ["error"]
    assert told(sent(operator, "/quota/resume/")) == ["info"]


# --- the policy ------------------------------------------------------------------------------------------------------


def test_a_policy_is_a_row_with_its_author(operator):
    response = sent(operator, "/quota/policy/", POLICY)
    (message,) = response.context["messages"]
    assert "budget none → $5.00" in str(message)
    row = JudgePolicy.objects.get()
    assert (row.daily_budget_usd, row.by.username) == (5.0, "olga")
    assert response.context["policy"] == row
    assert "olga" in flat(response)


def test_what_is_out_of_bounds_is_refused_in_words_and_kept_to_mend(operator):
    for field, value in (
        ("daily_budget_usd", "-1"),
        ("daily_budget_usd", "nan"),
        ("daily_budget_usd", "1e9"),
        ("daily_budget_usd", "five"),
        ("reserved_share", "150"),
        ("abstention_share", "-.1"),
        ("repeat_share", ""),
        ("second_share", "inf"),
    ):
        response = sent(operator, "/quota/policy/", {**POLICY, field: value})
        ((name, [problem]),) = response.context["form"].errors.items()
        assert name == field
        assert problem in flat(response)
        assert f'value="{value}"' in flat(response)
        assert not JudgePolicy.objects.exists()


def test_what_may_cost_more_is_confirmed_first(site, operator):
    for changes, warning in (
        ({"daily_budget_usd": "50"}, "This lets the judge spend up to $50.00 a day instead of $5.00."),
        ({"daily_budget_usd": ""}, "This removes the budget of $5.00 a day"),
        ({"second_share": "100"}, "This raises the calls for each session from 1.30 to 2.05 on average."),
        ({"repeat_share": "0", "second_share": "26"}, "This raises the share “second opinion” from 25 % to 26 %."),
    ):
        with site.rolled_back():
            sent(operator, "/quota/policy/", POLICY)
            response = sent(operator, "/quota/policy/", {**POLICY, **changes})
            assert warning in response.context["form"].costs_more
            assert 'name="confirmed"' in flat(response)
            assert JudgePolicy.objects.count() == 1
            assert told(sent(operator, "/quota/policy/", {**POLICY, **changes, "confirmed": "on"})) == ["success"]
            assert JudgePolicy.objects.count() == 2


def test_going_back_to_a_policy_is_a_row_like_it(operator):
    sent(operator, "/quota/policy/", POLICY)
    sent(operator, "/quota/policy/", {**POLICY, "daily_budget_usd": "2", "use_batches": "on"})
    newest, oldest = opened(operator, "/quota/policy/").context["history"]
    assert newest["changes"] == ["budget $5.00 → $2.00", "backlog in batches no → yes"]
    assert oldest["numbers"]["daily_budget_usd"] == 5.0
    assert sent(operator, "/quota/policy/", POLICY).context["form"].costs_more
    sent(operator, "/quota/policy/", {**POLICY, "confirmed": "on"})
    assert list(JudgePolicy.objects.values_list("daily_budget_usd", "use_batches")) == [
        (5.0, False), (2.0, True), (5.0, False),
    ]  # fmt: skip


def test_setting_the_policy_that_holds_writes_nothing(operator):
    sent(operator, "/quota/policy/", POLICY)
    assert told(sent(operator, "/quota/policy/", POLICY)) == ["info"]
    assert JudgePolicy.objects.count() == 1


def test_a_raised_budget_lets_judging_go_on_at_once(operator):
    sent(operator, "/quota/policy/", {**POLICY, "daily_budget_usd": "0"})
    quota_cast.quota(QuotaState.EXHAUSTED, reason=Reason.BUDGET_SPENT, until=MIDNIGHT)
    sent(operator, "/quota/policy/", {**POLICY, "confirmed": "on"})
    assert Quota.objects.get().state == QuotaState.OPEN


# --- the line on every page ------------------------------------------------------------------------------------------


def test_while_the_judge_is_out_every_other_page_says_what_since_when_until_when_and_for_how_many(viewer):
    exhausted()
    quota_cast.waiting(NOW)
    quota_cast.waiting(NOW)
    for path in ("/", "/sessions/", "/review/", "/alarms/", "/quota/costs/", "/password_change/"):
        response = opened(viewer, path)
        said = response.context["common"].banner
        assert (said.what, said.until, said.sessions) == ("Quota exhausted", "until 00:00 UTC", 2), path
        assert said.since == NOW - dt.timedelta(hours=7, minutes=36)
        line = flat(response).partition('<div class="banner" role="status" id="judge-banner">')[2]
        for word in ("Quota exhausted", "12:04", "until 00:00 UTC", said.effect, 'href="/quota/"'):
            assert word in line.partition("</div>")[0], path
    assert 'id="judge-banner"' not in shown(viewer)


def test_a_session_with_a_final_reward_is_not_counted_as_provisional(site, viewer):
    exhausted()
    job = quota_cast.waiting(NOW)
    site.on(job.session).graded("human", 0.8, author=site.person("rita", "reviewer"))
    rewards.settle(job.session)
    assert banner(viewer).sessions == 0


def test_the_alarm_of_the_outage_is_acknowledged_in_the_same_line(operator):
    exhausted()
    refresh_alarms()
    html = shown(operator, "/sessions/")
    assert 'role="alert"' not in html
    assert "/acknowledge/" in html
    assert 'role="alert"' in shown(operator)


def test_each_obstacle_has_its_own_words(site, viewer):
    for state, fields, reason, until, note in (
        (QuotaState.PAUSED, {"detail": "moving"}, Reason.PAUSED, "until somebody resumes it", "moving"),
        (QuotaState.MISCONFIGURED, {}, Reason.AUTH, "until it is fixed", ""),
        (
            QuotaState.EXHAUSTED,
            {"reason": Reason.BUDGET_SPENT, "until": MIDNIGHT},
            Reason.BUDGET_SPENT,
            "until 00:00 UTC",
            "",
        ),
    ):
        with site.rolled_back():
            quota_cast.quota(state, **fields)
            said = banner(viewer)
            assert (said.what, said.since, said.until, said.note) == (reason.words, NOW, until, note)


def test_while_verdicts_come_in_no_line_is_shown(viewer):
    quota_cast.waiting(NOW)
    for state in (QuotaState.OPEN, QuotaState.PACING):
        quota_cast.quota(state)
        assert 'id="judge-banner"' not in shown(viewer, "/")


def test_without_a_judge_the_line_counts_the_sessions_of_two_weeks(site, viewer, settings):
    settings.ANTHROPIC_API_KEY = ""
    assert 'id="judge-banner"' not in shown(viewer, "/sessions/")
    for days in (1, 3, 20):
        site.session(ended_at=NOW - dt.timedelta(days=days)).graded("judge", None, Reason.NOT_CONFIGURED).settle()
    said = banner(viewer, "/sessions/")
    assert (said.sessions, said.since) == (2, None)


def test_verdicts_beside_the_chain_hold_up_no_session(viewer):
    exhausted()
    quota_cast.job(NOW, purpose=Purpose.SECOND)
    assert banner(viewer).sessions == 0


@pytest.mark.parametrize(
    ("ending", "an_hour", "sentence"),
    [
        ("drained", 2.0, "The backlog clears by 20:40 with about 2 sessions an hour."),
        ("drained", 0.0, "The backlog clears by 20:40; no session since yesterday."),
        ("shut", 2.0, "The backlog grows until the judge is resumed, with about 2 sessions an hour."),
        ("shut", 0.0, "The backlog waits until the judge is resumed; no session since yesterday."),
        ("far", 2.0, "The backlog won’t clear within thirty days with about 2 sessions an hour."),
        ("far", 0.0, "The backlog won’t clear within thirty days; no session since yesterday."),
    ],
)
def test_the_forecast_is_a_sentence_with_and_without_new_sessions(ending, an_hour, sentence):
    at = NOW + dt.timedelta(hours=1)
    outlook = QueueOutlook(
        waiting=3,
        sent=0,
        past=(),
        forecast=Forecast(ending=ForecastEnding(ending), curve=(), empty_at=at),
        pace=None,
        arrivals=an_hour,
        each_usd=None,
        allowance=None,
    )
    assert figures.sentence(outlook) == sentence
