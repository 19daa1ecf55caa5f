"""A grade corrected with few keys, with the mouse alone, and with a thumb: counted."""

from itertools import pairwise

import pytest

from grading.models import ReviewAnswer
from grading.reward import rewards
from tests.browser.desk_hand import Hand
from tests.browser.watch import signed_in
from tests.casts import desk as desk_cast
from tests.site import Site

pytestmark = pytest.mark.browser

THUMB = 44
# What was pressed outside of the reason, and what was clicked or tapped, as the page saw it.
COUNT = """
(() => {
  window.keys = []; window.clicks = 0; window.typedInReason = 0;
  const inReason = (event) => event.target.id === 'id_reason';
  addEventListener('keydown', (event) => {
    if (!event.isTrusted) return;
    if (inReason(event) && event.key.length === 1) window.typedInReason += 1; else window.keys.push(event.key);
  }, true);
  addEventListener('pointerup', (event) => { if (event.isTrusted) window.clicks += 1; }, true);
})();
"""
SAVED = ".status :text('Saved .')"


@pytest.fixture
def rita():
    return Site().person("rita", "reviewer")


def at_the_desk(chromium, live_site, rita, **options) -> Hand:
    hand = Hand(signed_in(chromium, live_site, rita, **options).new_page())
    hand.page.add_init_script(COUNT)
    hand.open()
    return hand


def test_a_correction_takes_at_most_four_keys_besides_the_reason(chromium, live_site, rita):
    first, *_ = desk_cast.queue_of(2)
    hand = at_the_desk(chromium, live_site, rita, viewport={"width": 1440, "height": 900})
    hand.press("8", "5", "Enter")
    hand.page.wait_for_selector("#id_reason:focus")
    hand.ready()
    hand.page.keyboard.type("Right fix, tested")
    hand.goes_on("Enter")
    hand.page.wait_for_selector(SAVED)
    keys = hand.page.evaluate("window.keys")
    assert keys == ["8", "5", "Enter", "Enter"]
    assert hand.mouse() == 0
    assert rewards.live(first).value == 0.85
    assert ReviewAnswer.objects.get().reason == "Right fix, tested"
    hand.page.context.close()


@pytest.mark.slow
def test_a_correction_takes_three_clicks_of_the_mouse_and_no_key(chromium, live_site, rita):
    first, *_ = desk_cast.queue_of(2)
    hand = at_the_desk(chromium, live_site, rita, viewport={"width": 1440, "height": 900})
    hand.page.click(".stops label:has([value='.80'])")
    assert hand.value() == ".80"
    hand.page.wait_for_selector("[data-part=effects] svg")
    hand.page.click("text=work verified")
    hand.page.click("[data-submit]")
    hand.page.wait_for_selector(SAVED)
    assert (hand.page.evaluate("window.keys"), hand.page.evaluate("window.clicks")) == ([], 3)
    assert rewards.live(first).value == 0.8
    assert ReviewAnswer.objects.get().reason == "work verified"
    hand.page.context.close()


def boxes(page, selector: str) -> list[dict[str, float]]:
    found = [each.bounding_box() for each in page.locator(selector).all() if each.is_visible()]
    return [box for box in found if box is not None]


def test_a_correction_takes_three_taps_of_a_thumb(chromium, live_site, rita):
    first, *_ = desk_cast.queue_of(2)
    size = {"width": 390, "height": 844}
    hand = at_the_desk(chromium, live_site, rita, viewport=size, has_touch=True, is_mobile=True)
    page = hand.page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    targets = boxes(
        page, ".panel button:not(.sr), .stops label, #id_reason, .more-switch, .steps a, .menu summary, .tabs a"
    )
    assert len(targets) >= 11 + 4 + 2
    assert [box for box in targets if box["height"] < THUMB] == []
    sheet = boxes(page, ".panel")[0]
    assert sheet["y"] + sheet["height"] == size["height"]
    # What can be tapped in the sheet lies in it, one thing beside the other.
    stops, (submit,) = boxes(page, ".stops label"), boxes(page, "[data-submit]")
    assert all(one["x"] + one["width"] <= other["x"] + 1 for one, other in pairwise(stops))
    assert stops[0]["y"] + stops[0]["height"] < boxes(page, "#id_reason")[0]["y"]
    assert boxes(page, "#id_reason")[0]["y"] + THUMB <= submit["y"]
    page.tap(".stops label:has([value='.80'])")
    page.tap("text=work verified")
    page.tap("[data-submit]")
    page.wait_for_selector(SAVED)
    assert (page.evaluate("window.keys"), page.evaluate("window.clicks")) == ([], 3)
    assert rewards.live(first).value == 0.8
    # The end of the evidence can be scrolled out from below the sheet.
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert boxes(page, ".pane")[0]["y"] + boxes(page, ".pane")[0]["height"] <= boxes(page, ".panel")[0]["y"]
    page.context.close()


@pytest.mark.slow
def test_a_stop_is_chosen_without_script(chromium, live_site, rita):
    first, *_ = desk_cast.queue_of(2)
    page = signed_in(chromium, live_site, rita, java_script_enabled=False).new_page()
    page.goto("/review/")
    page.click(".stops label:has([value='.80'])")
    page.fill("#id_reason", "merged")
    page.press("#id_reason", "Enter")
    assert "Saved .80" in page.inner_text(".status")
    assert rewards.live(first).value == 0.8
    page.context.close()


def test_a_pull_request_opens_by_key(chromium, live_site, rita):
    first, *_ = desk_cast.queue_of(1)
    Site().on(first).with_pull_request("https://github.com/octo/contrib/pull/641")
    hand = at_the_desk(chromium, live_site, rita, viewport={"width": 1440, "height": 900})
    hand.page.context.route("https://github.com/**", lambda route: route.fulfill(body="there"))
    with hand.page.expect_popup() as opened:
        hand.press("p")
    assert opened.value.url == "https://github.com/octo/contrib/pull/641"
    hand.page.context.close()
