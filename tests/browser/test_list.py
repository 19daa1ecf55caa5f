"""The list of sessions by hand: it follows what is typed and chosen, and is a list of cards on a phone."""

import pytest

from tests.browser.watch import signed_in
from tests.casts import desk as desk_cast
from tests.site import Site

pytestmark = pytest.mark.browser


@pytest.fixture
def rita():
    for value, title in ((0.2, "Port the matcher"), (0.9, "Rotate the keys"), (0.5, "Read the feeds")):
        desk_cast.judged(value, title=title)
    return Site().person("rita", "reviewer")


def test_the_list_follows_the_search_without_a_button_and_the_words_stay(chromium, live_site, rita):
    page = signed_in(chromium, live_site, rita).new_page()
    page.goto("/sessions/")
    page.keyboard.press("/")
    page.keyboard.type("matcher")
    page.wait_for_function("() => document.querySelectorAll('#list .ttl').length === 1")
    assert page.url.endswith("?q=matcher")
    assert page.evaluate("document.activeElement.name") == "q"
    page.fill("[data-search]", "")
    page.wait_for_function("() => document.querySelectorAll('#list .ttl').length === 3")
    page.select_option("[name=sort]", "best")
    page.wait_for_function("() => document.querySelector('#list .ttl a').textContent.includes('Rotate')")
    # What the list shows is what the export has, and ticks work on the list that came.
    assert "sort=best" in page.get_attribute("a[href^='/sessions.csv']", "href")
    page.locator("[data-tick-all]").check()
    page.wait_for_selector("[data-ticked] >> text=3")
    page.context.close()


@pytest.mark.slow
def test_the_list_is_cards_on_a_phone(chromium, live_site, rita):
    options = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = signed_in(chromium, live_site, rita, **options).new_page()
    page.goto("/sessions/")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    rows = [row.bounding_box() for row in page.locator("#list tr:has(.ttl)").all()]
    assert len(rows) == 3
    assert all(row["height"] >= 44 for row in rows)
    # The whole row leads to its session.
    page.touchscreen.tap(rows[0]["x"] + 8, rows[0]["y"] + rows[0]["height"] - 4)
    page.wait_for_url("**/sessions/*/")
    page.context.close()
