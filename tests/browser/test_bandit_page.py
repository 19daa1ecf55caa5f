"""The bandit's page in a real Chromium: sliders by hand and by keyboard, without script, and every picture's table."""

import datetime as dt
from urllib.parse import parse_qs, urlsplit

import pytest
import time_machine
from django.utils import timezone

from bandit.models import Selection
from grading.reward import rewards
from grading.vocabulary import Source
from tests.browser.watch import listen, log_in, signed_in
from tests.site import Site

pytestmark = pytest.mark.browser

PAGE = "/bandits/category/"


@pytest.fixture
def olga(live_site):
    return Site().person("olga", "operator")


@pytest.fixture
def sessions(olga):
    """A session a day for a fortnight, each known from its end on."""
    made = []
    for ago in range(14):
        with time_machine.travel(timezone.now() - dt.timedelta(days=ago), tick=False):
            session = Site().session(category=("code", "news", "cross-repo")[ago % 3], ended_at=timezone.now()).session
            Site().on(session).graded((Source.JUDGE, Source.JOURNAL)[ago % 2], 0.3 + ago % 5 / 10)
            rewards.settle(session)
        made.append(session)
    return made


def asked(page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_a_slider_moved_by_keyboard_says_the_day_and_looks_when_told(page, olga, sessions):
    log_in(page)
    page.goto(PAGE)
    slider = page.locator("[aria-labelledby=at-words]")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    day = timezone.localdate() - dt.timedelta(days=3)
    assert page.inner_text("label[for=at]") == f"Show the estimates of {day:%-d %b}"
    assert slider.get_attribute("aria-valuetext") == f"{day:%-d %b}"
    assert page.url.endswith(PAGE), "nothing is sent while one is still moving it"
    page.click("[data-travel] button")
    page.wait_for_selector("text=You are looking at the past")
    assert asked(page) == {"at": [f"{day}"]}
    assert page.locator("[aria-labelledby=at-words]").input_value() == slider.input_value()
    page.click("text=With the data known then")
    page.wait_for_selector("text=With all data known now")
    assert asked(page) == {"at": [f"{day}"], "known": [f"{day + dt.timedelta(days=1)}T00:00"]}
    page.click("text=Back to now")
    page.wait_for_selector("#draw")
    assert page.url.endswith(PAGE)


@pytest.mark.slow
def test_a_slider_moved_by_hand_looks_when_it_is_let_go(page, olga, sessions):
    log_in(page)
    page.goto(PAGE)
    box = page.locator("[aria-labelledby=known-words]").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    page.wait_for_selector("text=You are looking at the past")
    (known,) = asked(page)["known"]
    assert (
        dt.timedelta(days=6)
        < timezone.now() - timezone.make_aware(dt.datetime.fromisoformat(known))
        < dt.timedelta(days=8)
    )


@pytest.mark.slow
def test_without_script_there_are_a_day_a_moment_and_a_button(chromium, live_site, olga, sessions):
    context = signed_in(chromium, live_site, olga, java_script_enabled=False)
    page = context.new_page()
    page.goto(PAGE)
    assert page.locator("[type=range]:visible").count() == 0
    day = timezone.localdate() - dt.timedelta(days=5)
    page.fill("#at", f"{day}")
    page.fill("#known", f"{day}T12:30")
    page.click("[data-travel] button")
    assert "You are looking at the past" in page.inner_text("main")
    assert f"{day:%-d %b}, 12:30" in page.inner_text("main")
    page.goto(PAGE)
    page.click("text=Draw once")
    assert "preview-1" in page.inner_text("#draw")
    context.close()


def test_a_question_is_answered_in_words_dashed_and_saved_nowhere(page, olga, sessions):
    complaints = listen(page)
    log_in(page)
    page.goto(PAGE)
    page.fill("#if-session", str(sessions[1].pk))
    page.fill("#if-value", ".95")
    page.press("#if-value", "Enter")
    page.wait_for_selector(".beside.if")
    assert page.inner_text(".beside.if").startswith("news from .")
    assert "Nothing is saved" in page.inner_text(".beside.if")
    assert page.locator(".brow.moved .name").inner_text() == "news"
    dashes = "getComputedStyle(document.querySelector('.brow.moved path.if')).strokeDasharray"
    assert page.evaluate(dashes) == "4px, 3px"
    page.click("text=Draw once")
    page.wait_for_selector("text=preview-1")
    assert not Selection.objects.exists()
    assert complaints == []
