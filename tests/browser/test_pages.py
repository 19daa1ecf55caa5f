"""Every page in a real Chromium: it fits, it keeps the content policy, hostile text stays text."""

import pytest

from grading.models import Alarm
from tests import cast
from tests.browser import story
from tests.casts import quota as quota_cast

pytestmark = pytest.mark.browser

PAGES = (
    "/", "/sessions/", "/sessions/{pk}/", "/sessions/{pk}/?event=101", "/review/{pk}/",
    "/review/{pk}/?tab=transcript", "/review/{pk}/?tab=journal", "/review/{pk}/?tab=attempts", "/bandits/category/",
    "/bandits/harness/", "/bandits/lesson/", "/quota/", "/quota/costs/", "/quota/policy/",
    "/quota/pause/", "/alarms/", "/review/", "/settings/", "/settings/notices/", "/calibration/", "/connect/",
    "/grading/agent/", "/alarms/{alarm}/",
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
    alarm = Alarm.objects.earliest("pk").pk
    for path in PAGES:
        url = path.format(pk=session.pk, alarm=alarm)
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
