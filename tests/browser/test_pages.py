"""What every page has, in a real Chromium: the log-in before it, the theme switch, the banner of an alarm."""

import pytest

from tests.browser import story
from tests.browser.watch import log_in
from tests.casts import quota as quota_cast
from tests.site import Site

pytestmark = pytest.mark.browser


@pytest.fixture
def session(live_site, settings):
    quota_cast.use(settings)
    Site().person("olga", "operator")
    return story.tell()


def test_after_the_log_in_the_theme_switch_is_remembered(page, session):
    page.emulate_media(color_scheme="light")
    page.goto("/login/")
    page.fill("[name=username]", "olga")
    page.fill("[name=password]", "correct horse battery")
    page.click("[type=submit]")
    page.wait_for_selector("nav.nav")
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
    page.goto("/alarms/?tab=past")
    # One of a week's rate closes with it, and stands among the past ones.
    assert "\tolga\t" in page.inner_text("main")
