"""Pages that are open stay true: state, counts and rewards change in place, and nothing that is typed is lost."""

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from grading.models import Alarm, Quota
from grading.models.quota import QuotaState
from grading.reward import rewards
from grading.screens import feed
from grading.vocabulary import Reason, Source
from tests.browser.watch import Watch, signed_in
from tests.casts import quota as quota_cast
from tests.casts import review as review_cast
from tests.site import Site

pytestmark = pytest.mark.browser

SECONDS = 0.2
SET_VISIBILITY = """state => {
  Object.defineProperty(document, 'hidden', { value: state === "hidden", configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture(autouse=True)
def site(live_site, settings):
    settings.FEED_SECONDS = SECONDS
    quota_cast.use(settings)
    quota_cast.quota()
    return live_site


@pytest.fixture
def context(chromium, site):
    context = signed_in(chromium, site, Site().person("olga", "operator"))
    yield context
    context.close()


def set_judge(state: QuotaState, reason: Reason) -> None:
    Quota.objects.update(state=state, reason=reason)


def wait_for_pill(page, words: str) -> None:
    page.wait_for_function("words => document.querySelector('[data-live-judge]').innerText.trim() === words", arg=words)


def test_an_outage_shows_on_an_open_page_and_so_does_its_end(context, site):
    page = context.new_page()
    watch = Watch(page, site)
    for path in ("/", "/sessions/", "/review/", "/grading/agent/"):
        page.goto(path)
        wait_for_pill(page, "Judge open")
        set_judge(QuotaState.EXHAUSTED, Reason.BUDGET_SPENT)
        wait_for_pill(page, "Budget spent")
        page.wait_for_selector("#judge-banner", state="attached")
        assert page.locator("[data-live-judge].c-alarm .if-trouble").is_visible(), path
        set_judge(QuotaState.OPEN, Reason.NONE)
        wait_for_pill(page, "Judge open")
        page.wait_for_selector("#judge-banner", state="detached", timeout=20_000)
        assert watch.heard == [], path


def test_an_alarm_comes_up_where_somebody_types_and_the_words_stay(context):
    session = review_cast.judged()
    page = context.new_page()
    page.goto(f"/review/{session.pk}/")
    page.fill("#id_reason", "half a sentence")
    Alarm.objects.create(rule="A2", about="code", detail="Ten of ten are out.")
    page.wait_for_selector(".banner >> text=Ten of ten are out.")
    assert page.input_value("#id_reason") == "half a sentence"
    assert page.evaluate("document.activeElement.tagName") == "INPUT"
    assert page.locator('.nav [data-live-count="Alarms"] b').inner_text() == "1"


def test_a_reward_that_changes_says_from_what_to_what(context):
    session = review_cast.judged(0.63, Source.TRAJECTORY)
    page = context.new_page()
    page.goto(f"/sessions/{session.pk}/")
    assert page.locator("[data-live-said]").is_hidden()
    Site().on(session).graded(Source.JUDGE, 0.7)
    rewards.settle(session)
    page.wait_for_selector("[data-live-said]:has-text('.63 (trajectory) → .70 (judge)')", timeout=20_000)
    assert ".70" in page.inner_text("[data-told] .rw")


@pytest.mark.slow
def test_a_list_says_that_sessions_came_in_and_does_not_move(context):
    review_cast.judged()
    page = context.new_page()
    page.goto("/sessions/")
    rows = page.locator("tbody tr").count()
    review_cast.judged()
    page.click("text=Show them")
    page.wait_for_function("rows => document.querySelectorAll('tbody tr').length === rows", arg=rows + 1)
    assert page.locator("[data-live-newer]").is_hidden()


def test_a_hidden_tab_asks_nothing_and_catches_up_when_somebody_comes_back(context):
    page = context.new_page()
    page.goto("/sessions/")
    wait_for_pill(page, "Judge open")
    page.evaluate(SET_VISIBILITY, "hidden")
    page.wait_for_timeout(1000 * 3 * SECONDS)  # a request that was under way ends
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    set_judge(QuotaState.EXHAUSTED, Reason.BUDGET_SPENT)
    page.wait_for_timeout(1000 * 5 * SECONDS)
    assert requests == []
    page.evaluate(SET_VISIBILITY, "visible")
    wait_for_pill(page, "Budget spent")


def test_a_site_that_does_not_answer_is_said_and_caught_up_with(context, monkeypatch):
    page = context.new_page()
    page.goto("/sessions/")
    wait_for_pill(page, "Judge open")

    def unavailable():
        raise OperationalError("the disk is full")

    with monkeypatch.context() as away:
        away.setattr(feed, "site_now", unavailable)
        page.wait_for_selector("[data-live-state]:has-text('Not live since')", timeout=20_000)
        set_judge(QuotaState.EXHAUSTED, Reason.BUDGET_SPENT)
    page.wait_for_selector("[data-live-state]", state="hidden", timeout=20_000)
    wait_for_pill(page, "Budget spent")


@pytest.mark.slow
def test_who_is_signed_out_meanwhile_is_told(context):
    page = context.new_page()
    page.goto("/sessions/")
    wait_for_pill(page, "Judge open")
    User.objects.update(is_active=False)
    page.wait_for_selector("[data-live-state]:has-text('Signed out')", timeout=20_000)
