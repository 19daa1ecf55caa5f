"""The review desk in a real Chromium: keys, what goes wrong on the way, without script, narrow and large."""

import re

import pytest

from grading.models import Comment, Flag, Grade, ReviewAnswer, ReviewItem
from grading.models.review import ItemState, QueueEntry
from grading.reward import rewards
from grading.vocabulary import Source
from tests.browser.desk_hand import Hand
from tests.browser.watch import log_in
from tests.casts import desk as desk_cast
from tests.casts import judge as judge_cast
from tests.site import Site

pytestmark = pytest.mark.browser

ATTACK = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"


@pytest.fixture
def hand(page, live_site) -> Hand:
    Site().person("rita", "reviewer")
    page.set_viewport_size({"width": 1440, "height": 900})
    log_in(page, "rita")
    return Hand(page)


def test_one_digit_two_digits_and_one(hand):
    desk_cast.queue_of(1)
    hand.open()
    hand.press("7")
    assert hand.value() == ".70"
    hand.press("5")
    assert hand.value() == ".75"
    hand.page.wait_for_selector("[data-submit] :text('Submit .75')")
    hand.page.wait_for_timeout(900)
    hand.press("2")
    assert hand.value() == ".20"
    hand.press("=")
    assert hand.value() == "1"
    hand.press("Control+7", "Alt+7")
    assert hand.value() == "1"


def test_the_effect_follows_what_is_typed(hand):
    first, *_ = desk_cast.queue_of(1)
    hand.open()
    hand.press("8")
    hand.page.wait_for_selector("[data-part=effects] svg")
    panel = hand.page.inner_text(".panel")
    for said in ("changes the reward from .32 by +.48", "Mean of cross-repo", "Mean of Claude Code", "strong"):
        assert said in panel
    hand.page.locator("#id_value").focus()
    hand.page.keyboard.type("9")
    hand.page.wait_for_selector("[data-part=moves] :text('A grade is a number from 0 to 1')")
    assert not Grade.objects.filter(source=Source.HUMAN, session=first).exists()


def test_nothing_is_saved_without_a_grade(hand):
    desk_cast.queue_of(1)
    hand.open()
    hand.press("Enter")
    assert "Choose a grade first" in hand.says()
    assert not ReviewAnswer.objects.exists()


@pytest.mark.slow
def test_reasons_are_one_line_in_the_panel_and_escape_leaves(hand):
    first, second, third, *_ = desk_cast.queue_of(5)
    hand.open()
    hand.press("x")
    hand.page.wait_for_selector("#ask-reason:focus")
    hand.page.keyboard.type("s7")
    hand.press("Escape")
    assert not hand.page.locator("#ask-reason").is_visible()
    assert hand.value() == ""
    hand.press("x")
    hand.goes_on("Enter")
    assert ReviewAnswer.objects.get().reason == "s7"
    assert ReviewItem.objects.get(session=first).state == ItemState.DISMISSED
    hand.press("e")
    hand.page.keyboard.type("another session's log")
    hand.goes_on("Enter")
    assert "A person excluded" in rewards.live(second).sentence
    hand.press("f")
    hand.page.keyboard.type("wrong log")
    hand.press("Enter")
    hand.page.wait_for_selector(".desk-flag :text('wrong log')")
    hand.press("c")
    hand.page.keyboard.type(ATTACK)
    hand.press("Enter")
    hand.page.wait_for_selector(".p-comments")
    assert Comment.objects.get().text == ATTACK
    assert Flag.objects.get(session=third, rule=Flag.BY_A_PERSON).detail == "wrong log"
    assert hand.page.evaluate("window.pwned") is None
    hand.press("s")
    hand.goes_on("Enter")
    assert hand.complaints == []


@pytest.mark.slow
def test_a_comment_keeps_the_grade_being_typed(hand):
    desk_cast.queue_of(1)
    hand.open()
    hand.press("4", "2", "c")
    hand.page.keyboard.type("look at 118")
    hand.press("Enter")
    hand.page.wait_for_selector(".p-comments")
    assert hand.value() == ".42"


def test_blind_then_reveal(hand):
    session = desk_cast.judged(0.17)
    judge_cast.give(session, "transcript", judge_cast.transcript(session), "own.jsonl")
    desk_cast.waits(session)
    hand.open()
    assert "Hidden until you grade" in hand.page.inner_text("main")
    hand.press("a")
    assert "hidden until you grade" in hand.says()
    hand.press("6")
    hand.page.wait_for_selector("[data-part=effects] svg")
    assert ".17" not in re.sub(r"/static/[^\"]+", "", hand.page.content())
    hand.press("r")
    hand.page.wait_for_selector(".quote")
    assert hand.value() == ".60"
    assert "changes the reward from .17 by +.43" in hand.page.inner_text(".panel")
    assert session.reveals.get().value == 0.6
    # A citation leads to its event.
    hand.page.locator(".quote a").first.focus()
    hand.press("Enter")
    hand.page.wait_for_selector("#e3:focus")
    hand.press("a")
    assert hand.value() == ".17"
    hand.goes_on("Enter")
    answer = ReviewAnswer.objects.get()
    assert (answer.answer, answer.value, answer.blind_value) == ("accept", 0.17, 0.6)


def test_a_network_failure_is_said_and_loses_nothing(hand):
    first, *_ = desk_cast.queue_of(2)
    hand.open()
    hand.press("4")
    hand.page.context.set_offline(True)
    hand.press("Enter")
    hand.page.wait_for_selector(".status .grave")
    assert "could not be reached" in hand.says()
    assert hand.value() == ".40"
    hand.page.context.set_offline(False)
    hand.goes_on("Enter")
    assert rewards.live(first).value == 0.4


def test_an_expired_login_is_said_and_a_login_elsewhere_is_enough(hand):
    first, *_ = desk_cast.queue_of(2)
    hand.open()
    hand.press("4")
    hand.page.context.clear_cookies()
    hand.press("Enter")
    hand.page.wait_for_selector(".status .grave")
    said = hand.says()
    assert "logged" in said
    assert "Your input is kept" in said
    Hand(hand.page.context.new_page()).fill_in_the_log_in("rita")
    hand.page.bring_to_front()
    hand.goes_on("Enter")
    assert rewards.live(first).value == 0.4


def test_the_claim_is_kept_while_the_page_is_open(hand):
    """The clock goes on by a minute; the page asks, and the claim ends later."""
    desk_cast.queue_of(1)
    hand.page.clock.install()
    hand.open()
    item = ReviewItem.objects.get()
    before = item.claimed_until
    with hand.page.expect_response("**/renew/"):
        hand.page.clock.run_for(61_000)
    item.refresh_from_db()
    assert item.claimed_until > before


@pytest.mark.slow
def test_help_says_all_keys_and_closes(hand):
    desk_cast.queue_of(1)
    hand.open()
    hand.press("?")
    assert "Type two digits quickly for two decimals" in hand.page.inner_text("#help")
    hand.press("7")
    hand.press("Escape")
    assert not hand.page.locator("#help").is_visible()
    assert hand.value() == ""


@pytest.mark.slow
def test_tabs_are_links_that_keep_what_was_typed(hand):
    desk_cast.queue_of(1)
    hand.open()
    hand.press("4")
    hand.page.locator(".tabs a", has_text="Journal").focus()
    hand.press("Enter")
    hand.page.wait_for_selector(".pane :text('No journal was submitted')")
    assert hand.value() == ".40"
    assert "Yours until" in hand.page.inner_text(".rail-foot")


@pytest.mark.slow
def test_the_queue_is_narrowed_by_keyboard(hand):
    desk_cast.queue_of(8)
    hand.open()
    hand.page.locator("[data-views]").focus()
    hand.page.locator("[data-views]").select_option("entered_as=slice")
    hand.page.wait_for_url("**entered_as=slice**")
    assert hand.page.locator(".qrow").count() == 4
    hand.goes_on("4", "Enter")
    assert "entered_as=slice" in hand.page.url


def test_the_desk_fits_and_what_has_the_focus_is_in_sight(hand):
    """720 × 450 is 1440 × 900 at 200 %."""
    session = desk_cast.judged(0.17, title=f"{ATTACK}{'long ' * 60}")
    desk_cast.waits(session, QueueEntry.RULE, why=ATTACK)
    hand.open()
    hand.press("4")
    for width, height in ((1440, 900), (1280, 720), (800, 900), (720, 450), (400, 800)):
        size = f"at {width} × {height}"
        hand.page.set_viewport_size({"width": width, "height": height})
        assert hand.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), size
        for selector in ("#id_value", "#id_reason", "[data-submit]", ".tabs a"):
            hand.page.locator(selector).first.focus()
            box = hand.page.locator(selector).first.bounding_box()
            assert box is not None, size
            assert 0 <= box["y"] < height, f"{selector} {size}"
        assert hand.page.locator(".keybar").is_visible() == (width > 640), size  # a phone has no keys
    assert hand.page.evaluate("window.pwned") is None
    assert hand.complaints == []


def test_it_all_works_without_script(chromium, live_site):
    Site().person("rita", "reviewer")
    first, second, *_ = desk_cast.queue_of(4)
    context = chromium.new_context(base_url=live_site, java_script_enabled=False)
    page = context.new_page()
    page.goto("/login/")
    page.fill("[name=username]", "rita")
    page.fill("[name=password]", "correct horse battery")
    page.click("[type=submit]")
    page.goto("/review/")
    page.fill("#id_value", ".5")
    page.click("text=Preview")
    assert "Mean of cross-repo" in page.inner_text(".panel")
    assert page.input_value("#id_value") == ".5"
    page.click("[data-submit]")
    assert "Saved .50" in page.inner_text(".status")
    assert rewards.live(first).value == 0.5
    page.fill("#ask-reason", "no log")
    page.click("#ask >> text=Cannot judge")
    assert ReviewItem.objects.get(session=second).state == ItemState.DISMISSED
    page.click(".foot >> text=Skip")
    assert ReviewAnswer.objects.count() == 3
    page.click(".status >> text=Undo")
    assert "Undid" in page.inner_text(".status")
    judged = desk_cast.judged(0.17)
    page.goto(f"/review/{judged.pk}/")
    page.fill("#id_value", ".6")
    page.click("button:has-text('Reveal')")
    assert "A focused fix" in page.inner_text(".quote")
    assert page.input_value("#id_value") == ".6"
    context.close()
