"""The list of sessions by hand: it follows what is typed and chosen, and is a list of cards on a phone."""

import pytest

from grading.screens.sessions import groups
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


def test_sessions_can_be_ticked_on_a_phone_and_a_long_list_begins_short(chromium, live_site, rita, monkeypatch):
    monkeypatch.setattr(groups, "FIRST_ROWS", 2)
    options = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = signed_in(chromium, live_site, rita, **options).new_page()
    page.goto("/sessions/")
    rows = page.locator("#list tr:has(.ttl):visible")
    assert rows.count() == 2
    page.tap("text=Show 1 more")
    assert rows.count() == 3
    assert page.locator(".tick[name]:visible").count() == 0
    page.tap("text=Select")
    page.tap("#list tr:has(.ttl) >> nth=2 >> .tick")
    bar = page.locator(".ticked").bounding_box()
    assert bar["y"] + bar["height"] == 844
    assert all(button.bounding_box()["height"] >= 44 for button in page.locator(".ticked .btn:visible").all())
    page.tap("text=Correct 1 ticked")
    page.wait_for_url("**/review/bulk/?**")
    assert page.inner_text("h1") == "Correct 1 session at once"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.context.close()
