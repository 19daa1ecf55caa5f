"""A transcript of 50,000 events in a real Chromium: open at once, steady, by keyboard, and without script."""

import io

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
def reader(page, session):
    """Signed in; what the browser complains of is in `reader.complaints`."""
    page.complaints = listen(page)
    log_in(page)
    yield page
    assert page.complaints == []
    assert page.evaluate("window.pwned") is None


def wait_until_seen(page, number: int) -> None:
    page.wait_for_function(
        "(number) => { const row = document.getElementById('e' + number)?.getBoundingClientRect();"
        "const log = document.querySelector('.log').getBoundingClientRect();"
        "return Boolean(row) && row.top >= log.top && row.bottom <= log.bottom }",
        arg=number,
    )


def test_somebody_reads_a_long_transcript_by_keyboard(reader, indexed):
    """Pages, citations and hits are links; keys press them, and what was asked for is in view and has the focus."""
    reader.goto(f"/sessions/{indexed.pk}/?tab=transcript")
    reader.click("a[rel=next]")
    expect(reader.locator(".log-pager")).to_contain_text("Events 201–400 of 50,000")
    wait_until_seen(reader, 201)
    reader.keyboard.press("]")
    reader.wait_for_selector("#e49004:focus")
    wait_until_seen(reader, 49_004)
    assert "Cited by the judge, 3 of 3" in reader.inner_text("#e49004")
    reader.keyboard.press("[")
    reader.wait_for_selector("#e118:focus")
    wait_until_seen(reader, 118)
    reader.keyboard.press("/")
    reader.keyboard.type("prüfSUMME")
    reader.keyboard.press("Enter")
    reader.wait_for_selector("#e2001:focus")
    wait_until_seen(reader, 2_001)
    expect(reader.locator(".log-find [role=status]")).to_have_text("1 of 24")
    assert reader.evaluate("CSS.highlights.get('hit').size") >= 1
    reader.keyboard.press("n")
    reader.wait_for_selector("#e4001:focus")
    reader.keyboard.press("N")
    reader.wait_for_selector("#e2001:focus")


def test_a_transcript_that_nobody_has_indexed_opens_at_once_and_comes_by_itself(reader, session):
    reader.goto(f"/sessions/{session.pk}/?tab=transcript")
    assert reader.locator("#e1").is_visible()
    reader.click("a.cite[href$='#e49004'] >> nth=0")
    reader.wait_for_selector("#e49004:focus", timeout=120_000)  # a busy machine
    wait_until_seen(reader, 49_004)


def test_hostile_text_stays_text(reader, indexed):
    reader.goto(f"/sessions/{indexed.pk}/?event=49000#e49000")
    reader.wait_for_selector("#e49000:focus")
    assert "<script>window.pwned" in reader.inner_text("#e49000")
    reader.keyboard.press("/")
    reader.keyboard.type("<script>window")
    reader.keyboard.press("Enter")
    expect(reader.locator(".log-find [role=status]")).to_have_text("1 of 1")
    reader.wait_for_selector("#e49000:focus")


def test_the_review_desk_turns_pages_without_being_loaded_again(reader, indexed):
    reader.goto(f"/review/{indexed.pk}/?tab=transcript")
    assert reader.locator("[data-cite]").count() == 0, "blind first: nothing is cited yet"
    assert reader.locator(".cited").count() == 0
    reader.evaluate("window.isSamePage = true")
    reader.click("a[rel=next]")
    reader.wait_for_selector("#e201")
    reader.keyboard.press("/")
    reader.keyboard.type("prüfsumme 7000")
    reader.keyboard.press("Enter")
    reader.wait_for_selector("#e14001:focus")
    wait_until_seen(reader, 14_001)
    reader.click("a[data-tab] >> text=Journal")
    reader.wait_for_selector("text=No journal was submitted")
    reader.keyboard.press("/")
    reader.wait_for_selector("#log-find:focus")
    assert reader.locator("#e1").count() == 1
    assert reader.evaluate("window.isSamePage")


@pytest.mark.slow
def test_it_works_without_script(chromium, live_site, indexed):
    context = chromium.new_context(base_url=live_site, java_script_enabled=False)
    page = context.new_page()
    log_in(page)
    page.goto(f"/sessions/{indexed.pk}/?tab=transcript")
    page.click("a[rel=next]")
    assert page.locator("#e201").is_visible()
    page.click("a[rel=prev]")
    assert page.locator("#e1").is_visible()
    page.click("a.cite:text-is('49004')")
    assert page.locator("#e49004").is_visible()
    assert "Cited by the judge, 3 of 3" in page.inner_text("#e49004")
    page.fill("#log-find", "prüfsumme 7000")
    page.press("#log-find", "Enter")
    page.wait_for_url("**#hit")
    wait_until_seen(page, 14_001)
    context.close()
