"""The judge's key in a real Chromium: typed, tested against the simulator, saved, replaced by none, removed."""

import pytest

from grading.judging import judges
from tests.browser.watch import listen, log_in
from tests.site import Site

pytestmark = pytest.mark.browser

KEY = "sk-ant-typed-in-the-browser-h7Qw"


@pytest.fixture(autouse=True)
def site(live_site, sim, settings):
    Site().person("olga", "operator")
    settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_BASE_URL = ""


def test_a_key_is_typed_tested_and_used_and_removed(page, sim):
    complaints = listen(page)
    log_in(page)
    page.goto("/settings/")
    page.click("main >> text=Key")
    page.fill("[name=api_key]", "sk-ant-mistyped-0000")
    page.fill("[name=base_url]", sim.url)
    sim.script("auth")
    page.click("text=Test and save")
    page.wait_for_selector("text=Nothing was saved")
    assert page.input_value("[name=api_key]") == ""
    assert page.input_value("[name=base_url]") == sim.url
    page.fill("[name=api_key]", KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Workers now use the key")
    assert judges.first().api_key == KEY
    assert "Judge open" in page.inner_text(".topbar")
    for width in (1440, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"at {width} px"
    page.click("text=Test the key")
    page.wait_for_selector("text=Tests today")
    assert len(sim.calls) == 3
    page.click("text=Remove the stored key")
    page.wait_for_selector("text=No judge is configured.")
    assert judges.first() is None
    assert complaints == []
