"""The keys of every page at ?, and one line on a word of ours, by keyboard, by mouse and without a script."""

import pytest

from tests.browser.watch import signed_in
from tests.casts import desk as desk_cast
from tests.site import Site

pytestmark = pytest.mark.browser

OPEN = "dialog#help[open]"


@pytest.fixture
def rita():
    return Site().person("rita", "reviewer")


def test_a_question_mark_lists_the_keys_on_every_page(chromium, live_site, rita):
    session, *_ = desk_cast.queue_of(1)
    page = signed_in(chromium, live_site, rita).new_page()
    for path in (
        "/",
        "/sessions/",
        session.get_absolute_url(),
        "/review/",
        "/bandits/category/",
        "/alarms/",
        "/quota/",
    ):
        page.goto(path)
        page.keyboard.press("?")
        page.wait_for_selector(OPEN)
        assert "the keys of this page" in page.inner_text("#help")
        page.keyboard.press("Escape")
        page.wait_for_selector(OPEN, state="detached")
    page.goto("/sessions/")
    page.click(".page-foot [data-help]")
    page.wait_for_selector(OPEN)
    page.context.close()


@pytest.mark.slow
def test_a_question_mark_in_a_field_is_a_question_mark(chromium, live_site, rita):
    page = signed_in(chromium, live_site, rita).new_page()
    page.goto("/sessions/")
    page.keyboard.press("/")
    page.wait_for_selector("[data-search]:focus")
    page.keyboard.type("why?")
    assert page.input_value("[data-search]") == "why?"
    assert page.locator(OPEN).count() == 0
    page.context.close()


def test_a_word_says_what_it_means_where_it_stands(chromium, live_site, rita):
    page = signed_in(chromium, live_site, rita).new_page()
    page.goto("/sessions/")
    word = page.locator("a[data-term]").first
    word.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#term-line:popover-open")
    assert page.inner_text("#term-line") == word.get_attribute("data-term")
    assert "/words/" not in page.url
    page.keyboard.press("Escape")
    page.wait_for_selector("#term-line:popover-open", state="detached")
    page.context.close()


@pytest.mark.slow
def test_without_script_a_word_and_the_keys_are_links(chromium, live_site, rita):
    page = signed_in(chromium, live_site, rita, java_script_enabled=False).new_page()
    page.goto("/sessions/")
    page.locator("a[data-term]").first.click()
    assert "/words/#" in page.url
    page.click(".page-foot [data-help]")
    assert page.url.endswith("/words/#keys")
    page.context.close()
