"""Every page in a real Chromium: it fits, it keeps the content policy, hostile text stays text, a correction works."""

import pytest

from bandit.models import Bucket
from grading import rewards
from tests import cast
from tests.browser import story
from tests.grading import quota_cast

pytestmark = pytest.mark.browser

PAGES = (
    "/", "/sessions/", "/sessions/{pk}/", "/sessions/{pk}/?event=101", "/sessions/{pk}/correct/", "/bandits/category/",
    "/bandits/harness/", "/quota/", "/quota/costs/", "/quota/policy/",
    "/quota/pause/", "/alarms/", "/review/", "/settings/", "/settings/notices/", "/calibration/", "/connect/",
    "/grading/agent/",
    "/grading/agent/add/", "/grading/apitoken/", "/bandit/arm/", "/bandit/ledgerentry/", "/password_change/",
)  # fmt: skip


@pytest.fixture
def session(live_site, settings):
    quota_cast.use(settings)
    cast.person("olga", "operator")
    return story.tell()


def log_in(page) -> None:
    page.goto("/login/")
    page.fill("[name=username]", "olga")
    page.fill("[name=password]", "correct horse battery")
    page.click("[type=submit]")
    page.wait_for_selector("nav.nav")


def listen(page) -> list[str]:
    """Everything the browser complains about: console errors (content policy included) and uncaught exceptions."""
    complaints = []
    page.on("console", lambda message: message.type in {"error", "warning"} and complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


@pytest.mark.parametrize("width", [1440, 800])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_fits_and_keeps_the_content_policy(page, session, theme, width):
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    complaints = listen(page)
    log_in(page)
    for path in PAGES:
        url = path.format(pk=session.pk)
        assert page.goto(url).status == 200, url
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{url} is wider than {width} px"
        assert page.evaluate("window.pwned") is None, f"{url} ran text of a session"
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(247, 248, 249)", "dark": "rgb(14, 15, 18)"}[theme], url
    assert complaints == []


def test_the_theme_switch_is_remembered(page, session):
    page.emulate_media(color_scheme="light")
    log_in(page)
    page.click("[data-theme-switch]")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.goto("/grading/agent/")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 15, 18)"


def test_correct_a_grade_and_undo_it(page, session):
    before = buckets()
    complaints = listen(page)
    log_in(page)
    page.goto("/sessions/?flagged=yes")
    page.click(f"a[href='/sessions/{session.pk}/']")
    page.click("text=Correct the grade")
    page.fill("[name=value]", ".8")
    page.wait_for_selector("#effect svg")
    assert "Mean of cross-repo" in page.inner_text("#effect")
    assert page.inner_text("[data-submit]") == "Submit .80"
    page.click("[data-submit]")
    assert "A reason is needed" in page.inner_text(".problem")
    page.fill("[name=reason]", "the PR was merged")
    page.click("[data-submit]")
    assert "Reward .80, final." in page.inner_text(".verdict")
    assert rewards.live(session).value == 0.8
    page.click("text=Undo")
    page.fill("[name=reason]", "that was another session")
    page.click("text=Undo .80")
    assert "Reward .32, provisional." in page.inner_text(".verdict")
    assert buckets() == before
    assert complaints == []


def test_a_band_fills_in_the_grade_and_shows_its_effect(page, session):
    log_in(page)
    page.goto(f"/sessions/{session.pk}/correct/")
    page.check("[data-band='0.60']")
    page.wait_for_selector("#effect svg")
    assert page.input_value("[name=value]") == "0.60"
    assert page.inner_text("[data-submit]") == "Submit .60"


def test_what_is_no_grade_is_said_while_it_is_typed(page, session):
    log_in(page)
    page.goto(f"/sessions/{session.pk}/correct/")
    page.fill("[name=value]", "1.5")
    page.wait_for_selector("#effect :text('A grade is a number from 0 to 1')")
    assert page.inner_text("[data-submit]") == "Submit"


def test_the_correction_works_without_script(chromium, live_site, session):
    context = chromium.new_context(base_url=live_site, java_script_enabled=False)
    page = context.new_page()
    log_in(page)
    page.goto(f"/sessions/{session.pk}/correct/")
    page.fill("[name=value]", ".5")
    page.click("text=Preview")
    assert "Mean of cross-repo" in page.inner_text("#effect")
    page.click("[data-submit]")
    assert "Reward .50, final." in page.inner_text(".verdict")
    context.close()


def test_an_alarm_is_acknowledged_by_name_from_any_page(page, session):
    log_in(page)
    page.goto("/sessions/")
    assert page.locator(".banner[role=alert]").count() == 1
    page.click("text=Acknowledge as olga")
    page.wait_for_selector(".messages")
    assert page.url.endswith("/sessions/")
    assert page.locator(".banner[role=alert]").count() == 0
    page.goto("/alarms/")
    assert "Acknowledged by olga" in page.inner_text("main")


def buckets():
    return list(Bucket.objects.filter(n__gt=0).order_by("pk").values_list("arm__name", "grader__source", "n", "s", "q"))
