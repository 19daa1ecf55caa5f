"""The quota page in a real Chromium: it fits in every state, and an operator pauses, resumes and sets a policy."""

import datetime as dt

import pytest
from django.utils import timezone

from grading.models import JudgePolicy, QuotaTransition
from grading.models.judging import JudgeRole
from grading.models.quota import QuotaState
from grading.vocabulary import Reason
from tests.browser.watch import listen, log_in
from tests.casts import quota as quota_cast
from tests.site import Site

pytestmark = pytest.mark.browser

STATES = {
    "open": (QuotaState.OPEN, {}),
    "pacing": (QuotaState.PACING, {"detail": "429: " + "wait " * 60}),
    "exhausted": (QuotaState.EXHAUSTED, {"detail": quota_cast.SAID}),
    "budget spent": (QuotaState.EXHAUSTED, {"reason": Reason.BUDGET_SPENT, "detail": "$4.99 of $5.00 are spent"}),
    "paused": (QuotaState.PAUSED, {"detail": "moving-the-gateway-" * 12}),
    "misconfigured": (QuotaState.MISCONFIGURED, {"detail": "401: invalid x-api-key"}),
}


@pytest.fixture(autouse=True)
def judge(live_site, settings):
    quota_cast.use(settings)
    settings.JUDGE_SECOND_MODEL, settings.JUDGE_SECOND_BASE_URL = "another-family-" * 5, "https://gateway.test"
    Site().person("olga", "operator")


@pytest.mark.slow
def test_it_fits_in_every_state_and_keeps_the_content_policy(page, settings):
    now, complaints = timezone.now(), listen(page)
    log_in(page)
    fits(page, "empty")
    quota_cast.fortnight(now)
    quota_cast.quota(QuotaState.EXHAUSTED, role=JudgeRole.SECOND, detail="402: " + "pay first " * 40)
    for name, (state, fields) in STATES.items():
        about = {"limits": quota_cast.LIMITS, "limits_at": now, "changed_at": now - dt.timedelta(hours=3)}
        quota_cast.quota(state, until=now + dt.timedelta(hours=4), **about, **fields)
        fits(page, name)
    settings.ANTHROPIC_API_KEY = ""
    fits(page, "no key")
    assert complaints == []


def fits(page, state: str) -> None:
    for path in ("/quota/costs/", "/", "/quota/"):
        assert page.goto(path).status == 200
        for width in (1440, 800):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{state}: {path} at {width} px"
    assert page.locator(".btn.primary").count() <= 1, state


def test_an_operator_pauses_the_judge_every_page_says_so_and_resumes_it(page):
    quota_cast.quota()
    quota_cast.waiting(timezone.now())
    log_in(page)
    page.goto("/quota/")
    page.click("text=Pause the judge")
    page.click("button:text('Pause the judge')")
    assert "Give a reason" in page.inner_text("#id_note_error")
    page.fill("[name=note]", "moving the gateway")
    page.click("button:text('Pause the judge')")
    assert "olga paused the judge." in page.inner_text("main")
    page.goto("/sessions/")
    said = page.locator("[role=status]")
    assert "An operator paused the judge (“moving the gateway”)" in said.inner_text()
    assert "1 session has no final grade because of this." in said.inner_text()
    said.locator("a").click()
    assert page.locator("#judge-banner").count() == 0
    page.click("text=Resume judging")
    assert page.inner_text(".state-line .big") == "Open"
    page.goto("/sessions/")
    assert page.locator("#judge-banner").count() == 0
    assert [row.by.username for row in QuotaTransition.objects.exclude(by=None).order_by("pk")[:2]] == ["olga"] * 2


def test_one_line_of_news_is_visible_also_where_no_judge_is_configured(page, settings):
    """The banner of a missing judge is as plain as that of a simulated one, and takes its place."""
    settings.SIMULATED = True
    settings.ANTHROPIC_API_KEY = ""
    Site().session(ended_at=timezone.now()).graded("judge", None, Reason.NOT_CONFIGURED).settle()
    log_in(page)
    page.goto("/sessions/")
    visible = page.locator(".banner:visible")
    assert visible.count() == 1
    assert "No judge" in visible.inner_text()


def test_a_policy_is_set_confirmed_where_it_costs_more_and_taken_back(page):
    log_in(page)
    page.goto("/quota/policy/")
    page.fill("[name=daily_budget_usd]", "2")
    page.click("text=Set this policy")
    assert "budget none → $2.00" in page.inner_text(".messages")
    page.goto("/quota/policy/")
    page.fill("[name=daily_budget_usd]", "20")
    page.click("text=Set this policy")
    assert "spend up to $20.00 a day" in page.inner_text(".problem")
    page.check("[name=confirmed]")
    page.click("text=Set this policy")
    assert "budget $2.00 → $20.00" in page.inner_text(".messages")
    page.goto("/quota/policy/")
    page.click("text=Use again")
    assert list(JudgePolicy.objects.values_list("daily_budget_usd", flat=True)) == [2.0, 20.0, 2.0]


@pytest.mark.slow
def test_an_outcome_leads_to_its_attempts(page):
    quota_cast.fortnight(timezone.now())
    log_in(page)
    page.goto("/quota/")
    page.click("a:text('Lost with its worker')")
    assert page.locator("#attempts tbody tr").count() == 1
    assert "did not come back" in page.inner_text("#attempts")


@pytest.mark.slow
def test_an_outage_leads_to_the_sessions_that_waited(page):
    now = timezone.now()
    quota_cast.quota(QuotaState.EXHAUSTED, changed_at=now - dt.timedelta(hours=3), until=now + dt.timedelta(hours=3))
    held = quota_cast.waiting(now - dt.timedelta(minutes=10))
    quota_cast.judged(now - dt.timedelta(hours=5))
    log_in(page)
    page.goto("/quota/")
    page.click(".ruled td a:text('1')")
    assert page.locator("main tbody tr:not(.grp)").count() == 1
    assert held.session.short_id in page.inner_text("main tbody")
    assert "Only sessions that waited for the judge since" in page.inner_text(".lede")
