"""What every page has, in a real Chromium: the log-in before it, the theme switch, the banner of an alarm."""

import pytest

from grading.models.quota import Quota, QuotaState
from grading.monitoring.alarms import open_alarms
from grading.monitoring.judges import judge_out
from grading.monitoring.rule import is_advisory
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


def test_alarms_are_acknowledged_by_name_from_any_page_one_after_the_other(page, session):
    Quota.objects.update(state=QuotaState.OPEN)
    log_in(page)
    page.goto("/sessions/")
    for left in ("and 1 more", None):
        assert page.locator(".banner[role=alert]").count() == 1
        assert left is None or left in page.inner_text(".banner[role=alert]")
        page.click("text=Acknowledge as olga")
        page.wait_for_selector(".messages")
        assert page.url.endswith("/sessions/")
    assert page.locator(".banner[role=alert]").count() == 0
    page.goto("/alarms/?tab=past")
    # One of a week's rate closes with it, and stands among the past ones.
    assert "\tolga\t" in page.inner_text("main")


def test_the_banner_of_an_outage_leads_to_the_other_alarms(page, session):
    log_in(page)
    alarms = [each for each in open_alarms() if not is_advisory(each.rule)]
    (other,) = (each for each in alarms if each.rule != judge_out.id)
    page.goto("/sessions/")
    assert page.locator(".banner[role=alert]").count() == 0
    page.click("#judge-banner >> text=1 more alarm")
    page.wait_for_url("**/alarms/")
    page.click(f"#alarm-{other.pk} >> text=See it")
    page.click("main button:has-text('Acknowledge')")
    page.wait_for_selector(".messages")
    assert "more alarm" not in page.inner_text("#judge-banner")
