"""The transcript's tab: pages of 200 events, links to one event, citations, and a search of all events."""

import re

import pytest

from grading.evidence.transcripts import cache, index
from grading.models.evidence import EvidenceKind
from tests.casts import logs
from tests.casts.page import flat

pytestmark = pytest.mark.django_db
SCRIPT = "<script>alert(1)</script>"


def with_events(site, *texts: str):
    """A session with a transcript in which the user says this, from event 1 on."""
    log = logs.gptme(*(("user", text) for text in texts))
    return site.session().with_file(EvidenceKind.TRANSCRIPT, log, "conversation.jsonl").session


@pytest.fixture
def session(site):
    """450 events. Every hundredth says so."""
    return with_events(site, *(f"line {n}" + " hundred" * (n % 100 == 0) for n in range(1, 451)))


def opened(client, session, query: str):
    response = client.get(f"/sessions/{session.pk}/{query}")
    assert response.status_code == 200
    return response


def events(page) -> tuple[int, int, int]:
    """The first event of a page, the last, and how many there are."""
    numbers = [int(number) for number in re.findall(r'id="e(\d+)"', page.content.decode())]
    return numbers[0], numbers[-1], len(numbers)


def links(page, name: str) -> list[str]:
    """The addresses of the links with an attribute."""
    tags = re.findall(r"<a [^>]*>", page.content.decode())
    return [re.search(r'href="([^"]*)"', tag)[1].replace("&amp;", "&") for tag in tags if name in tag]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?tab=transcript", (1, 200, 200)),
        ("?tab=transcript&page=2", (201, 400, 200)),
        ("?tab=transcript&page=3", (401, 450, 50)),
        ("?event=200", (1, 200, 200)),
        ("?event=201", (201, 400, 200)),
        ("?event=450", (401, 450, 50)),
    ],
)
def test_a_page_has_200_events(session, reviewer, query, expected):
    assert events(opened(reviewer, session, query)) == expected


def test_pages_lead_to_their_neighbours_and_to_both_ends(session, reviewer):
    first, middle, last = (opened(reviewer, session, f"?tab=transcript&page={number}") for number in (1, 2, 3))
    assert [links(page, 'rel="prev"') for page in (first, middle, last)] == [
        [], ["?tab=transcript&page=1#transcript"], ["?tab=transcript&page=2#transcript"],
    ]  # fmt: skip
    assert [links(page, 'rel="next"') for page in (first, middle, last)] == [
        ["?tab=transcript&page=2#transcript"], ["?tab=transcript&page=3#transcript"], [],
    ]  # fmt: skip
    assert ">First</a>" in flat(middle)
    assert ">Last</a>" in flat(middle)
    assert "Events 201–400 of 450" in flat(middle)
    assert "page 2 of 3" in flat(middle)


def test_a_short_transcript_has_no_pager(site, reviewer):
    assert "log-pager" not in flat(opened(reviewer, with_events(site, "one", "two"), "?tab=transcript"))


@pytest.mark.parametrize("event", ["-5", "abc", "0", "99999999999999999999", "NaN", "²", ""])
@pytest.mark.parametrize("name", ["event", "page"])
def test_an_absurd_number_shows_the_start(site, reviewer, name, event):
    page = opened(reviewer, with_events(site, "one", "two"), f"?tab=transcript&{name}={event}")
    assert events(page) == (1, 2, 2)


@pytest.mark.parametrize("query", ["?event=5000", "?tab=transcript&page=99"])
def test_what_is_beyond_the_end_is_said_in_words(session, reviewer, query):
    page = opened(reviewer, session, query)
    assert "the transcript ends before" in flat(page)
    assert 'href="?event=1#transcript"' in flat(page)


def test_a_link_to_an_event_marks_it(session, reviewer):
    assert re.search(r'class="ev [^"]*\bat"\s+id="e118"', flat(opened(reviewer, session, "?event=118")))
    assert not re.search(r'class="ev [^"]*\bat"', flat(opened(reviewer, session, "?tab=transcript&page=1")))


def test_a_result_on_another_page_than_its_call_leads_there(site, reviewer):
    log = logs.claude("s1", *((f"make {number}", "ok") for number in range(120)))
    session = site.session().with_file(EvidenceKind.TRANSCRIPT, log, "s1.jsonl").session
    lines = opened(reviewer, session, "?tab=transcript&page=2").context["transcript"].lines
    assert all(line.call_number is None or line.call_number >= 200 for line in lines)


def test_citations_lead_from_one_to_the_next_around_the_ends(site, session, reviewer):
    site.on(session).judged(0.7, evidence={"rationale": "Fine.", "citations": [3, 118, 402]}).settle()
    for query, previous, following, text in (
        ("?tab=transcript", 402, 3, "3 citations"),
        ("?event=3", 402, 118, "citation 1 of 3"),
        ("?tab=transcript&page=2", 118, 402, "3 citations"),
        ("?event=402", 118, 3, "citation 3 of 3"),
    ):
        page = opened(reviewer, session, query)
        assert links(page, 'data-cite="previous"') == [f"?tab=transcript&event={previous}#e{previous}"], query
        assert links(page, 'data-cite="next"') == [f"?tab=transcript&event={following}#e{following}"], query
        assert text in flat(page), query
    assert "Cited by the judge, 3 of 3" in flat(page)


# --- the search ------------------------------------------------------------------------------------------------------


def test_the_search_finds_the_next_hit_in_the_whole_transcript(session, reviewer):
    for start, hit, result in ((1, 100, "1 of 4"), (101, 200, "2 of 4"), (300, 300, "3 of 4"), (401, 100, "1 of 4")):
        page = opened(reviewer, session, f"?tab=transcript&q=HUNDRED&event={start}")
        assert (page.context["search"].event, page.context["search"].result) == (hit, result)
        assert re.search(rf'class="ev [^"]*\bat"\s+id="e{hit}"', flat(page)), "on the page that has it"
        assert page.content.count(b'id="hit"') == 1


def test_hits_lead_from_one_to_the_next_around_the_ends(session, reviewer):
    page = opened(reviewer, session, "?tab=transcript&q=hundred&event=400")
    assert links(page, 'data-hit="previous"') == ["?tab=transcript&q=hundred&after=0&event=300#hit"]
    assert links(page, 'data-hit="next"') == ["?tab=transcript&q=hundred&after=0&event=100#hit"]


def test_the_form_searches_from_where_one_reads(session, reviewer):
    html = flat(opened(reviewer, session, "?tab=transcript&page=2"))
    assert '<input type="hidden" name="event" value="201">' in html
    assert '<input type="hidden" name="tab" value="transcript">' in html


def test_what_nobody_says_is_not_found(session, reviewer):
    page = opened(reviewer, session, "?tab=transcript&q=100%25_")
    assert "no event has it" in flat(page)
    assert links(page, "data-hit") == []
    assert events(page)[0] == 1


def test_a_search_goes_on_where_it_stopped(session, reviewer, monkeypatch):
    monkeypatch.setattr(index, "MAX_HITS", 3)
    page = opened(reviewer, session, "?tab=transcript&q=hundred&event=300")
    assert page.context["search"].result == "3 of the first 3"
    (rest,) = links(page, 'data-hit="next"')
    assert rest == "?tab=transcript&q=hundred&after=300&event=301#hit"
    page = opened(reviewer, session, rest.removesuffix("#hit"))
    assert (page.context["search"].event, page.context["search"].result) == (400, "1 of 1 after 300")
    page = opened(reviewer, session, "?tab=transcript&q=hundred&event=301")
    assert page.context["search"].event == 400, "from where one reads"
    monkeypatch.setattr(index, "MAX_SEARCHED", 10)
    page = opened(reviewer, session, "?tab=transcript&q=nowhere")
    assert page.context["search"].result.startswith("not in events 1 to ")
    assert len(links(page, 'data-hit="next"')) == 1


@pytest.mark.parametrize("query", [SCRIPT, '" onfocus="alert(1)', "a&event=9", "x" * 5000, "\0"])
def test_hostile_words_stay_words(site, reviewer, query):
    page = reviewer.get(f"/sessions/{with_events(site, SCRIPT, 'two').pk}/", {"tab": "transcript", "q": query})
    assert page.status_code == 200
    main = page.content.decode().partition("<main")[2]
    assert "<script>alert" not in main
    assert 'onfocus="' not in main


def test_other_parameters_of_the_address_stay(session, reviewer):
    page = opened(reviewer, session, "?tab=transcript&page=2&view=%22%3Emine")
    assert links(page, 'rel="next"') == ["?view=%22%3Emine&tab=transcript&page=3#transcript"]
    assert '<input type="hidden" name="view" value="&quot;&gt;mine">' in flat(page)


def test_a_page_that_waits_for_the_index_says_how_far_it_is(site, reviewer, settings, tmp_path):
    settings.TRANSCRIPT_CACHE = tmp_path
    log = b"".join(logs.long_claude(2_000, output_lines=70))
    session = site.session().with_file(EvidenceKind.TRANSCRIPT, log, "long.jsonl").session
    cache.write_progress(session.evidence.get(), cache.IndexProgress(events=120, about=2_000))
    page = opened(reviewer, session, "?event=1900&q=nowhere")
    assert flat(page).count("eading the transcript: 120 of about 2,000 events") == 2
    assert page.content.count(b"data-waits") == 2
    assert events(opened(reviewer, session, "?tab=transcript")) == (1, 200, 200), "the start needs none"


def test_a_session_without_a_transcript_says_so(site, reviewer):
    page = opened(reviewer, site.session().session, "?tab=transcript&q=x&event=3")
    assert "No usable transcript was received." in flat(page)
