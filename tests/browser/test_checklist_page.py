"""The first steps in a real Chromium: they fit, fold once done, and the line that waits becomes the session."""

import pytest

from grading.models import ApiToken
from grading.reward import rewards
from tests.browser.watch import listen, log_in
from tests.site import Site

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def site(live_site, settings):
    Site().person("olga", "operator")
    settings.FEED_SECONDS = 0.3


def test_the_waiting_line_becomes_the_session_without_the_page_being_loaded_again(page):
    page.emulate_media(color_scheme="dark")
    complaints = listen(page)
    ApiToken.objects.issue(Site().agent("bob"))
    log_in(page)
    page.goto("/")
    page.wait_for_selector("text=Waiting for the first session")
    for width in (1440, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"at {width} px"
    page.evaluate("window.isTheSame = true")
    rewards.settle(Site().session(title="Send the fix upstream").session)
    page.wait_for_selector(".awaited.came", timeout=60_000)
    assert "Send the fix upstream" in page.inner_text(".awaited")
    assert page.evaluate("window.isTheSame")
    assert complaints == []
    page.reload()
    assert not page.is_visible(".awaited")
    page.click("text=Connect an agent")
    assert page.is_visible(".awaited")
