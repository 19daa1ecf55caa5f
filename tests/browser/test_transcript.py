"""A transcript of 50,000 events in a real Chromium: open at once, steady, by keyboard, and without script."""

import io
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from grading.evidence import store, transcripts
from grading.evidence.transcripts import cache
from grading.models import Evidence
from grading.vocabulary import Source
from tests.browser.story import ATTACK
from tests.browser.watch import listen, log_in
from tests.casts.logs import long_claude
from tests.site import Site

pytestmark = pytest.mark.browser
EVENTS = 50_000
CITED = (3, 118, 49_004)

# What moved by itself, and the most rows that the page ever held. The top bar does not count until the page is loaded:
# a busy browser may paint it before it has read all of it.
WATCH = """
window.moved = []; window.most = 0;
const isLoading = (time) => {
  const loaded = performance.getEntriesByType('navigation')[0].loadEventStart;  // 0 until then
  return !loaded || time < loaded;
};
new PerformanceObserver((list) => list.getEntries().filter((each) => !each.hadRecentInput).forEach((each) => {
  const nodes = each.sources.map((source) => source.node)
    .filter((node) => !(isLoading(each.startTime) && node?.parentElement?.closest('.topbar')));
  if (nodes.length) window.moved.push([each.value, ...nodes.map((node) => node?.className || node?.nodeName)]);
})).observe({type: 'layout-shift', buffered: true});
new MutationObserver(() => { window.most = Math.max(window.most, document.querySelectorAll('.ev').length) })
  .observe(document, {childList: true, subtree: true});
"""


@pytest.fixture(scope="module")
def log() -> bytes:
    hostile = ATTACK.encode().replace(b"'", b"").replace(b'"', b"")
    return b"".join(long_claude(EVENTS, output_lines=2)).replace(b"make check-24500", b"make " + hostile)


@pytest.fixture
def session(live_site, settings, tmp_path, log):
    settings.TRANSCRIPT_CACHE = tmp_path
    Site().person("olga", "operator")
    session = Site().session(title="A long one").session
    stored = store.store(io.BytesIO(log))
    Evidence.objects.create(session=session, kind="transcript", sha256=stored.sha256, size=stored.size)
    said = {"rationale": f"Checks pass [118], even the last [49004]. {ATTACK}", "citations": list(CITED)}
    Site().on(session).graded(Source.JUDGE, 0.7, evidence=said)
    return session


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    """The folder of an index that is built once: the log is the same in every test."""
    return tmp_path_factory.mktemp("indexes")


@pytest.fixture
def indexed(session, settings, indexes):
    settings.TRANSCRIPT_CACHE = indexes
    evidence = session.evidence.get()
    if cache.find_index(evidence) is None:
        transcripts.build(evidence)
    return session


@pytest.fixture
def desk(page, session):
    """Signed in, with an eye on what moves; what the browser complains of is in `desk.complaints`."""
    page.complaints, page.is_pane = listen(page), True
    page.add_init_script(WATCH)
    log_in(page)
    yield page
    assert page.complaints == []
    assert page.evaluate("window.pwned") is None
    if page.is_pane:
        assert page.evaluate("window.moved") == []
    assert page.evaluate("window.most") <= 400


def top(page) -> int:
    """The first event that is seen."""
    return page.evaluate(
        "(() => { const log = document.querySelector('.log').getBoundingClientRect();"
        "return +[...document.querySelectorAll('.ev')]"
        ".find((row) => row.getBoundingClientRect().bottom > log.top).dataset.n })()"
    )


def is_seen(page, number: int) -> bool:
    return page.evaluate(
        "(number) => { const row = document.getElementById('e' + number)?.getBoundingClientRect();"
        "const log = document.querySelector('.log').getBoundingClientRect();"
        "return Boolean(row) && row.top >= log.top && row.bottom <= log.bottom }",
        number,
    )


def test_a_transcript_that_nobody_has_indexed_opens_at_once_and_reads_itself(desk, session):
    desk.goto(f"/sessions/{session.pk}/?tab=transcript")
    assert desk.locator("#e1").is_visible()
    desk.click("a.cite[href$='#e49004'] >> nth=0")
    desk.wait_for_selector("#e49004.at", timeout=60_000)
    assert is_seen(desk, 49_004)


def test_scrolling_holds_a_window_and_nothing_jumps(desk, indexed):
    desk.goto(f"/sessions/{indexed.pk}/?tab=transcript")
    desk.hover(".log")
    seen = [top(desk)]
    while len(seen) <= 25 or (seen[-1] <= 500 and len(seen) < 200):
        desk.mouse.wheel(0, 1500)
        desk.wait_for_timeout(60)
        seen.append(top(desk))
    assert seen == sorted(seen)
    assert seen[-1] > 500
    assert desk.locator("#e1").count() == 0
    back = [seen[-1]]
    while back[-1] > 1 and len(back) < 200:
        desk.mouse.wheel(0, -1500)
        desk.wait_for_timeout(60)
        back.append(top(desk))
    assert back == sorted(back, reverse=True)
    assert back[-1] == 1


def test_citations_jump_by_click_and_by_key(desk, indexed):
    desk.goto(f"/sessions/{indexed.pk}/?tab=transcript")
    assert desk.inner_text("[data-cite-words]") == "3 citations"
    desk.click("a.cite:text-is('49004')")
    desk.wait_for_selector("#e49004:focus")
    assert is_seen(desk, 49_004)
    assert "Cited by the judge, 3 of 3" in desk.inner_text("#e49004")
    assert desk.inner_text("[data-cite-words]") == "citation 3 of 3"
    assert desk.url.endswith("#e49004")
    desk.keyboard.press("[")
    desk.wait_for_selector("#e118:focus")
    assert desk.inner_text("[data-transcript-say]") == "Event 118, citation 2 of 3"
    desk.keyboard.press("]")
    desk.wait_for_selector("#e49004:focus")


def test_a_page_asked_for_before_a_jump_and_answered_after_it_is_dropped(desk, indexed):
    """It belongs beside events that are no longer shown."""
    waiting = {}

    def hold(route) -> None:
        first = parse_qs(urlsplit(route.request.url).query)["from"][0]
        if first in {"1", "118", "49004", "48901"}:
            waiting[first] = route
        else:
            route.continue_()

    desk.route("**/events/?*", hold)

    def asked(first: int) -> str:
        for _ in range(1500):
            if str(first) in waiting:
                break
            desk.wait_for_timeout(20)
        return str(first)

    def answer(first: int) -> None:
        waiting.pop(asked(first)).continue_()

    desk.goto(f"/sessions/{indexed.pk}/?tab=transcript#e118")
    answer(118)
    desk.wait_for_selector("#e118:focus")
    desk.click("a.cite:text-is('49004')")
    answer(1)
    asked(1)  # again, beside the events that are still there
    answer(49004)
    desk.wait_for_selector("#e49004:focus")
    answer(1)
    answer(48901)
    desk.wait_for_selector("#e48901", state="attached")
    assert desk.evaluate("document.querySelector('.room').offsetHeight") > 100_000


@pytest.mark.slow
def test_find_goes_from_hit_to_hit_by_keyboard_alone(desk, indexed):
    desk.goto(f"/sessions/{indexed.pk}/?tab=transcript")
    desk.keyboard.press("/")
    desk.keyboard.type("prüfSUMME 7000")
    desk.wait_for_selector("#e14001.at")
    expect(desk.locator("[data-find-words]")).to_have_text("1 of 1")
    assert is_seen(desk, 14_001)
    desk.keyboard.press("Control+a")
    desk.keyboard.insert_text("prüfsumme")  # at once: a search for a part of it has 24 hits too
    expect(desk.locator("[data-find-words]")).to_have_text("7 of 24")
    for key, number in (("Enter", 16_001), ("Shift+Enter", 14_001), ("Shift+Enter", 12_001)):
        desk.keyboard.press(key)
        desk.wait_for_selector(f"#e{number}.at")
        assert is_seen(desk, number)
    assert desk.inner_text("[data-transcript-say]") == "Event 12,001, 6 of 24 hits"
    desk.keyboard.press("Escape")
    desk.wait_for_selector("#e12001:focus")
    assert desk.locator("[data-find-form]").is_hidden()
    desk.keyboard.press("n")
    assert top(desk) <= 12_001 < top(desk) + 60


@pytest.mark.slow
def test_what_nobody_says_is_said_not_to_be_found(desk, indexed):
    desk.goto(f"/sessions/{indexed.pk}/?tab=transcript")
    desk.click("[data-find-open]")
    desk.keyboard.type("100%_")
    expect(desk.locator("[data-find-words]")).to_have_text("no event has it")


def test_hostile_text_stays_text(desk, indexed):
    desk.goto(f"/sessions/{indexed.pk}/?tab=transcript#e49000")
    desk.wait_for_selector("#e49000:focus")
    assert "<script>window.pwned" in desk.inner_text("#e49000")
    desk.keyboard.press("/")
    desk.keyboard.type("<script>window")
    expect(desk.locator("[data-find-words]")).to_have_text("1 of 1")


@pytest.mark.slow
def test_the_ends_are_a_key_away(desk, indexed):
    desk.goto(f"/sessions/{indexed.pk}/?tab=transcript")
    desk.focus(".log")
    desk.keyboard.press("End")
    desk.wait_for_selector(f"#e{EVENTS}.at")
    desk.keyboard.press("Escape")
    desk.focus(".log")
    desk.keyboard.press("Home")
    desk.wait_for_selector("#e1.at")


@pytest.mark.slow
def test_the_review_desk_has_the_same_transcript(desk, indexed):
    desk.goto(f"/review/{indexed.pk}/?tab=transcript")
    assert desk.locator("[data-cite-words]").is_hidden(), "blind first: nothing is cited yet"
    assert desk.locator(".cited").count() == 0
    desk.keyboard.press("/")
    desk.keyboard.type("prüfsumme 7000")
    desk.wait_for_selector("#e14001.at")
    assert is_seen(desk, 14_001)
    desk.keyboard.press("Escape")
    desk.click("a[data-tab] >> text=Journal")
    desk.wait_for_selector("text=No journal was submitted")
    desk.keyboard.press("/")
    desk.wait_for_selector("[data-find-form] input:focus")
    assert desk.locator("#e1").count() == 1


@pytest.mark.slow
def test_it_works_as_part_of_a_page_too(desk, indexed):
    """Narrow review screens scroll as one."""
    desk.goto(f"/sessions/{indexed.pk}/?tab=transcript")
    desk.is_pane = False
    desk.evaluate("document.querySelector('#transcript').classList.remove('log-pane', 'session-log')")
    desk.click("a.cite:text-is('49004')")
    desk.wait_for_selector("#e49004:focus")
    for _ in range(10):
        desk.mouse.wheel(0, 3000)
        desk.wait_for_timeout(60)
    assert int(desk.locator(".ev").last.get_attribute("data-n")) > 49_300


@pytest.mark.slow
def test_it_works_without_script(chromium, live_site, indexed):
    context = chromium.new_context(base_url=live_site, java_script_enabled=False)
    page = context.new_page()
    log_in(page)
    page.goto(f"/sessions/{indexed.pk}/?tab=transcript")
    assert page.locator("[data-transcript-tools]").is_hidden()
    page.click("text=Later events")
    assert page.locator("#e101").is_visible()
    page.click("text=Earlier events")
    assert page.locator("#e1").is_visible()
    page.click("a.cite:text-is('49004')")
    assert page.locator("#e49004").is_visible()
    assert "Cited by the judge, 3 of 3" in page.inner_text("#e49004")
    context.close()
