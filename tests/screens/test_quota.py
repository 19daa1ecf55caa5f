"""The quota page: each state in words with real counts, what operators do about it, the line on every other page."""

import datetime as dt

import pytest
import time_machine

from grading import monitoring
from grading.judging.allowance import budget
from grading.models import JudgeJob, JudgePolicy, Quota, QuotaTransition
from grading.models.judging import AttemptOutcome, JobState, JudgeRole, Purpose
from grading.models.quota import QuotaState
from grading.reward import rewards
from grading.vocabulary import Reason
from tests import cast
from tests.casts import quota as quota_cast
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 3, 31, 19, 40, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2026, 4, 1, tzinfo=dt.UTC)
ACTIONS = ("/quota/pause/", "/quota/resume/", "/quota/probe/", "/quota/policy/")
SHARES = {"reserved_share": "0.2", "abstention_share": "0.1", "repeat_share": "0.05", "second_share": "0.25"}
POLICY = {"daily_budget_usd": "5", **SHARES}


@pytest.fixture(autouse=True)
def judge(settings):
    quota_cast.use(settings)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # the limiter is away, whatever other tests have started
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def operator(client):
    client.force_login(cast.person("olga", "operator"))
    return client


@pytest.fixture
def viewer(client):
    client.force_login(cast.person("vera", "viewer"))
    return client


def shown(client, path="/quota/") -> str:
    response = client.get(path)
    assert response.status_code == 200
    return flat(response)


def said(client, path, data=None) -> str:
    return flat(client.post(path, data or {}, follow=True))


def exhausted(**fields) -> Quota:
    since = {"changed_at": NOW - dt.timedelta(hours=7, minutes=36), "until": MIDNIGHT, "detail": quota_cast.SAID}
    return quota_cast.quota(QuotaState.EXHAUSTED, **{**since, **fields})


# --- the state -------------------------------------------------------------------------------------------------------


def test_an_outage_is_said_in_words_with_the_providers_own_and_what_it_means(viewer):
    exhausted()
    for value in (0.32, 0.4, None):
        quota_cast.waiting(NOW, value)
    html = shown(viewer)
    assert '<span class="big red">Exhausted until 00:00 UTC</span>' in html
    assert "since 12:04, 7 h 36 min; returns in 4 h 20 min" in html
    assert quota_cast.SAID in html
    assert (
        "2 of the 3 waiting sessions keep a provisional grade, 1 has none; the floor was learned by no bandit." in html
    )
    assert '<b class="red">exhausted</b>' in html


@pytest.mark.parametrize(
    ("state", "fields", "heading", "meaning"),
    [
        (QuotaState.OPEN, {}, "Open", "Verdicts come in as sessions do."),
        (QuotaState.PACING, {"until": NOW}, "Pacing until 19:40:00", "no job loses an attempt"),
        (QuotaState.MISCONFIGURED, {"detail": "401"}, "Misconfigured", "The key or the model was refused"),
        (QuotaState.PAUSED, {"detail": "moving"}, "Paused", "Somebody paused the judge."),
        (
            QuotaState.EXHAUSTED,
            {"reason": Reason.BUDGET_SPENT, "until": MIDNIGHT},
            "Budget spent until 00:00 UTC",
            "Today&#x27;s budget is spent. Nothing more is sent before midnight",
        ),
    ],
)  # fmt: skip
def test_every_state_has_its_heading_and_its_meaning(viewer, state, fields, heading, meaning):
    quota_cast.quota(state, **fields)
    html = shown(viewer)
    assert f">{heading}</span>" in html
    assert meaning in html


def test_without_a_key_the_page_says_how_to_get_a_judge_and_what_it_costs_not_to_have_one(viewer, settings):
    settings.ANTHROPIC_API_KEY = ""
    session = cast.session(ended_at=NOW)
    cast.grade(session, "judge", None, Reason.NOT_CONFIGURED)
    rewards.settle(session)
    html = shown(viewer)
    assert "No judge is configured" in html
    assert "Set ANTHROPIC_API_KEY and restart" in html
    assert "1 session of the last 14 days" in html


def test_once_its_time_has_come_an_outage_says_that_it_asks_again(viewer):
    exhausted(until=NOW - dt.timedelta(minutes=1))
    assert '<span class="big red">Exhausted, asking again</span>' in shown(viewer)
    assert "since 12:04, until it answers again." in shown(viewer, "/")


def test_the_other_judges_have_a_line_each_and_decide_no_pill(viewer, settings):
    settings.JUDGE_SECOND_MODEL, settings.JUDGE_SECOND_BASE_URL = "another-family", "https://gateway.test"
    quota_cast.quota(QuotaState.EXHAUSTED, role=JudgeRole.SECOND, until=MIDNIGHT, detail="402: pay first")
    html = shown(viewer)
    assert '<span class="big">Open</span>' in html
    assert "Second opinion" in html
    assert "another-family, by gateway.test" in html
    assert "402: pay first" in html
    assert "Judge open" in html
    assert 'id="judge-banner"' not in shown(viewer, "/sessions/")


def test_every_list_of_an_untouched_site_says_what_would_be_there(viewer):
    html = shown(viewer)
    assert "The headers of the first answer say the limits" in html
    assert "Nothing waits; none has come in since yesterday." in html
    assert "in two weeks the judge could always be asked" in html
    assert "as delivered, nobody has changed it" in html
    assert "no call was paid for today" in html


# --- headroom, spend, backlog, attempts ------------------------------------------------------------------------------


def test_headroom_shows_use_limit_the_tightest_and_the_standing_reserve(viewer):
    quota_cast.quota(QuotaState.OPEN, limits=quota_cast.LIMITS, limits_at=NOW)
    quota_cast.judged(NOW)
    html = shown(viewer)
    assert '<span class="strong">18,400</span> <span class="dimmer">of 30,000</span>' in html
    assert html.count("a minute, the tightest") == 1
    assert html.count('class="kept" x="80.00%"') == 3


def test_the_spend_shows_its_sum_and_counts_what_is_not_told_at_its_estimate(viewer):
    budget.set_policy(by=None, daily_budget_usd=5.0)
    for _ in range(29):
        quota_cast.judged(NOW)
    quota_cast.attempt(quota_cast.job(NOW), NOW, AttemptOutcome.LOST, estimated_usd=0.05)
    html = shown(viewer)
    assert "$1.33</span>" in html.replace("\n", "")
    assert "29 paid calls × 4.6 ¢ on average" in html
    assert "<dt>533.6 k input tokens at $2 a million</dt><dd>$1.07</dd>" in html
    assert "<dt>26.1 k output tokens at $10 a million</dt><dd>$.26</dd>" in html
    assert "1 call whose cost nobody has told yet" in html
    assert "$1.38 of $5.00" in html
    assert "1 waiting job × 4.6 ¢" in html


def test_the_rate_and_the_end_of_the_backlog_show_their_arithmetic(viewer):
    quota_cast.quota(QuotaState.OPEN, limits=quota_cast.LIMITS, limits_at=NOW)
    quota_cast.judged(NOW)
    quota_cast.waiting(NOW - dt.timedelta(minutes=5))
    html = shown(viewer)
    assert "1.60 verdicts a minute: .98 × 30,000 ÷ 18,400 input tokens" in html
    assert "Gone at 19:40; 0.1 an hour come in." in html
    assert "1 now" in html


def test_attempts_are_told_by_outcome_with_the_share_of_429(viewer):
    for _ in range(98):
        quota_cast.judged(NOW)
    owed = quota_cast.job(NOW)
    quota_cast.attempt(owed, NOW, AttemptOutcome.DEFERRED, Reason.RATE_LIMITED, http_status=429)
    quota_cast.attempt(owed, NOW, AttemptOutcome.DEFERRED, Reason.RATE_LIMITED, http_status=429)
    html = shown(viewer)
    assert "2 % of calls; the target is 1 % at most, missed" in html
    assert "100 sent, 1 held" in html
    assert "Held, not sent" in html
    assert 'fill="url(#hatch-line)"' in html
    assert "a verdict each, 4.6 ¢ on average" in html


def test_held_jobs_say_until_when(viewer):
    exhausted()
    quota_cast.waiting(NOW)
    assert "held until 00:00 UTC" in shown(viewer)


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
    assert (row["radius"].waited, row["radius"].waiting) == (2, 1)
    assert row["period"].row.quota == over
    html = shown(viewer, row["sessions"])
    for job in (held, still):
        assert f'href="/sessions/{job.session_id}/"' in html
    for job in (before, later):
        assert f'href="/sessions/{job.session_id}/"' not in html
    assert "Only those that waited for the judge between 31 Mar, 16:40 and 31 Mar, 18:40." in html


def test_an_outage_that_goes_on_is_hatched_until_its_reset(viewer):
    exhausted()
    html = shown(viewer)
    assert '<span class="red">still</span>' in html
    assert "nothing is sent until 1 Apr, 00:00" in html


def test_a_spell_of_overload_is_on_the_timeline_and_in_its_legend(viewer):
    owed = quota_cast.job(NOW)
    for minutes in (0, 40, 80, 100):
        at = NOW - dt.timedelta(days=2) + dt.timedelta(minutes=minutes)
        quota_cast.attempt(owed, at, AttemptOutcome.DEFERRED, Reason.OVERLOADED, http_status=529)
    html = shown(viewer)
    assert "overloaded, 29 Mar, 19:40–21:20, 4 calls" in html
    assert 'class="f-overloaded"' in html


# --- what operators do -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ACTIONS)
@pytest.mark.parametrize("role", ["viewer", "reviewer"])
def test_only_an_operator_may_do_anything(client, path, role):
    client.force_login(cast.person(role, role))
    assert client.post(path).status_code == 403
    html = shown(client)
    assert f'"{path}"' not in html
    assert not JudgePolicy.objects.exists()


@pytest.mark.parametrize("path", ["/quota/resume/", "/quota/probe/"])
def test_what_acts_at_once_needs_a_post(operator, path):
    assert operator.get(path).status_code == 405


def test_pausing_needs_a_note_and_is_signed(operator):
    assert "Say why" in said(operator, "/quota/pause/", {"note": " "})
    assert not QuotaTransition.objects.exists()
    html = said(operator, "/quota/pause/", {"note": "moving the gateway"})
    assert "The judge is paused." in html
    assert "olga paused the judge." in html
    assert "“moving the gateway”" in html
    row = QuotaTransition.objects.get()
    assert (row.state, row.by.username, row.detail) == (QuotaState.PAUSED, "olga", "moving the gateway")
    assert "Resume judging</button>" in html
    assert 'href="/quota/pause/"' not in html


def test_resuming_lets_it_go_on_and_twice_changes_nothing(operator):
    said(operator, "/quota/pause/", {"note": "moving"})
    assert "The judge is asked again" in said(operator, "/quota/resume/")
    assert "somebody else resumed it first" in said(operator, "/quota/resume/")
    assert list(QuotaTransition.objects.values_list("state", "by__username")) == [("paused", "olga"), ("open", "olga")]


def test_resuming_does_not_end_an_outage_that_began_before(operator):
    exhausted()
    said(operator, "/quota/pause/", {"note": "moving"})
    assert "what kept the judge from being asked before it is not" in said(operator, "/quota/resume/")
    assert Quota.objects.get().state == QuotaState.EXHAUSTED


def test_a_probe_is_offered_while_the_judge_is_out_and_jobs_wait(operator):
    exhausted()
    assert 'disabled title="No job waits' in shown(operator)
    quota_cast.waiting(NOW)
    assert '<button class="btn primary" title="One real call' in shown(operator)
    assert "One call goes out within seconds" in said(operator, "/quota/probe/")
    assert Quota.objects.get().until == NOW


@pytest.mark.parametrize(
    ("state", "reason", "why"),
    [
        (QuotaState.OPEN, "", "asked anyway"),
        (QuotaState.PAUSED, Reason.PAUSED, "resume it instead"),
        (QuotaState.EXHAUSTED, Reason.BUDGET_SPENT, "raise it instead"),
    ],
)
def test_a_probe_that_makes_no_sense_is_refused_with_its_reason(operator, state, reason, why):
    quota_cast.quota(state, reason=reason, until=MIDNIGHT)
    quota_cast.waiting(NOW)
    before = Quota.objects.values().get()
    assert why in said(operator, "/quota/probe/")
    assert Quota.objects.values().get() == before


def test_without_a_key_nothing_can_be_done_and_that_is_said(operator, settings):
    settings.ANTHROPIC_API_KEY = ""
    assert "No judge is configured" in said(operator, "/quota/probe/")
    assert "none to pause" in said(operator, "/quota/pause/", {"note": "x"})
    assert "somebody else resumed it first" in said(operator, "/quota/resume/")


# --- the policy ------------------------------------------------------------------------------------------------------


def test_a_policy_is_a_row_with_its_author(operator):
    html = said(operator, "/quota/policy/", POLICY)
    assert "The policy holds from now on: budget none → $5.00." in html
    row = JudgePolicy.objects.get()
    assert (row.daily_budget_usd, row.by.username) == (5.0, "olga")
    assert "set by olga" in html


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("daily_budget_usd", "-1", "an amount from 0"),
        ("daily_budget_usd", "nan", "an amount from 0"),
        ("daily_budget_usd", "1e9", "an amount from 0"),
        ("daily_budget_usd", "five", "an amount from 0"),
        ("reserved_share", "1.5", "Reserve for new sessions is a share from 0 to 1"),
        ("abstention_share", "-.1", "Abstentions judged first is a share from 0 to 1"),
        ("repeat_share", "", "Asked twice is a share from 0 to 1"),
        ("second_share", "inf", "Second opinion is a share from 0 to 1"),
    ],
)
def test_what_is_out_of_bounds_is_refused_in_words_and_kept_to_mend(operator, field, value, problem):
    html = said(operator, "/quota/policy/", {**POLICY, field: value})
    assert problem in html
    assert f'value="{value}"' in html
    assert not JudgePolicy.objects.exists()


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"daily_budget_usd": "50"}, "This lets the judge spend up to $50.00 a day, where it was $5.00."),
        ({"daily_budget_usd": ""}, "This lifts the budget of $5.00 a day"),
        ({"second_share": "1"}, "This raises the calls for each session from 1.30 to 2.05 on average."),
    ],
)
def test_what_may_cost_more_is_confirmed_first(operator, changes, warning):
    said(operator, "/quota/policy/", POLICY)
    assert warning in said(operator, "/quota/policy/", {**POLICY, **changes})
    assert JudgePolicy.objects.count() == 1
    assert "The policy holds from now on" in said(operator, "/quota/policy/", {**POLICY, **changes, "confirmed": "on"})
    assert JudgePolicy.objects.count() == 2


def test_going_back_to_a_policy_is_a_row_like_it(operator):
    said(operator, "/quota/policy/", POLICY)
    said(operator, "/quota/policy/", {**POLICY, "daily_budget_usd": "2", "use_batches": "on"})
    html = shown(operator, "/quota/policy/")
    assert "budget $5.00 → $2.00; backlog in batches no → yes" in html
    assert html.count("Back to this one") == 1
    assert "spend up to $5.00 a day" in said(operator, "/quota/policy/", POLICY)
    said(operator, "/quota/policy/", {**POLICY, "confirmed": "on"})
    assert list(JudgePolicy.objects.values_list("daily_budget_usd", "use_batches")) == [
        (5.0, False), (2.0, True), (5.0, False),
    ]  # fmt: skip


def test_setting_the_policy_that_holds_writes_nothing(operator):
    said(operator, "/quota/policy/", POLICY)
    assert "Nothing was changed" in said(operator, "/quota/policy/", POLICY)
    assert JudgePolicy.objects.count() == 1


def test_a_raised_budget_lets_judging_go_on_at_once(operator):
    said(operator, "/quota/policy/", {**POLICY, "daily_budget_usd": "0"})
    quota_cast.quota(QuotaState.EXHAUSTED, reason=Reason.BUDGET_SPENT, until=MIDNIGHT)
    said(operator, "/quota/policy/", {**POLICY, "confirmed": "on"})
    assert Quota.objects.get().state == QuotaState.OPEN


# --- the line on every page ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/sessions/", "/review/", "/alarms/", "/quota/costs/", "/password_change/"])
def test_while_the_judge_is_out_every_page_says_what_since_when_until_when_and_for_how_many(viewer, path):
    exhausted()
    quota_cast.waiting(NOW)
    quota_cast.waiting(NOW)
    html = shown(viewer, path)
    assert '<div class="banner" role="status" id="judge-banner">' in html
    assert "<b>Quota exhausted</b> since 12:04, until 00:00 UTC. 2 sessions are provisional because of it." in html
    assert '<a class="link" href="/quota/">See the quota</a>' in html


def test_the_quota_page_does_not_say_it_twice(viewer):
    exhausted()
    assert 'id="judge-banner"' not in shown(viewer)


def test_a_session_with_a_final_reward_is_not_counted_as_provisional(viewer):
    exhausted()
    job = quota_cast.waiting(NOW)
    cast.grade(job.session, "human", 0.8, author=cast.person("rita", "reviewer"))
    rewards.settle(job.session)
    assert "No session is provisional because of it so far." in shown(viewer, "/")


def test_the_alarm_of_the_outage_is_acknowledged_in_the_same_line(operator):
    exhausted()
    monitoring.refresh()
    html = shown(operator, "/sessions/")
    assert 'role="alert"' not in html
    assert "Acknowledge A2 as olga" in html
    assert 'role="alert"' in shown(operator)


@pytest.mark.parametrize(
    ("state", "fields", "words"),
    [
        (QuotaState.PAUSED, {"detail": "moving"}, "An operator paused the judge</b> (“moving”) since 19:40,"),
        (QuotaState.MISCONFIGURED, {}, "The judge&#x27;s key was refused</b> since 19:40, until it is put right."),
        (
            QuotaState.EXHAUSTED,
            {"reason": Reason.BUDGET_SPENT, "until": MIDNIGHT},
            "Today&#x27;s budget is spent</b> since 19:40, until 00:00 UTC.",
        ),
    ],
)  # fmt: skip
def test_each_obstacle_has_its_own_words(viewer, state, fields, words):
    quota_cast.quota(state, **fields)
    assert words in shown(viewer, "/")


@pytest.mark.parametrize("state", [QuotaState.OPEN, QuotaState.PACING])
def test_while_verdicts_come_in_no_line_is_shown(viewer, state):
    quota_cast.quota(state)
    quota_cast.waiting(NOW)
    assert 'id="judge-banner"' not in shown(viewer, "/")


def test_without_a_judge_the_line_counts_the_sessions_of_two_weeks(viewer, settings):
    settings.ANTHROPIC_API_KEY = ""
    assert 'id="judge-banner"' not in shown(viewer, "/sessions/")
    for days in (1, 3, 20):
        session = cast.session(ended_at=NOW - dt.timedelta(days=days))
        cast.grade(session, "judge", None, Reason.NOT_CONFIGURED)
        rewards.settle(session)
    assert "2 sessions of the last 14 days are provisional because of it." in shown(viewer, "/sessions/")


def test_verdicts_beside_the_chain_hold_up_no_session(viewer):
    exhausted()
    quota_cast.job(NOW, purpose=Purpose.SECOND)
    assert "No session is provisional because of it so far." in shown(viewer, "/")
