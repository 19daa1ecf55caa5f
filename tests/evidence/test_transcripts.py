"""Transcripts of any length: the index says what the reader says, and is only a cache."""

import io
import json
import os
import threading
import time
import tracemalloc
from functools import lru_cache
from pathlib import Path

import pytest
from django.template import Context, Template

from grading import formats, wakeup
from grading.evidence import store, transcripts
from grading.evidence.transcripts import building, cache, index, pages
from grading.evidence.transcripts.lines import FOLDED, MAX_OPEN_CALLS, lines
from grading.intake import erasing
from grading.models import Evidence, Session
from grading.templatetags.gradingsite_tags import cited, place
from tests.casts import logs
from tests.transcript import Transcript

LONG_KEY, SHORT_KEY = "sk-ant-api03-" + "aB3xZ9" * 16, "AKIA" + "Q7ZX" * 4
CORPUS = Path(__file__).parent.parent / "data" / "transcripts"
KNOWN = sorted(path for path in CORPUS.rglob("*.jsonl") if formats.detect(path.read_bytes()[:200_000]).format)


@pytest.fixture(autouse=True)
def folder(settings, tmp_path, monkeypatch):
    """Nobody is woken up: whoever asks builds."""
    settings.MEDIA_ROOT, settings.TRANSCRIPT_CACHE = tmp_path / "evidence", tmp_path / "cache"
    monkeypatch.setattr(wakeup, "_silent_until", time.monotonic() + 1000)
    return tmp_path / "cache"


def kept(data: bytes, filename: str = "") -> Evidence:
    stored = store.store(io.BytesIO(data))
    return Evidence(kind="transcript", sha256=stored.sha256, size=stored.size, filename=filename)


def said(*texts: str) -> Evidence:
    """A transcript in which the user says this, from event 1 on."""
    return kept(logs.gptme(*(("user", text) for text in texts)))


def long(events: int = 2_000) -> Evidence:
    """Larger than what is indexed while somebody waits, or read without an index."""
    return kept(_long(events))


@lru_cache
def _long(events: int) -> bytes:
    return b"".join(logs.long_claude(events, output_lines=70))


def numbers(page) -> list[int]:
    return [line.number for line in page.lines]


def stored(folder) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def wait_for_index(row) -> None:
    deadline = time.monotonic() + 60
    while cache.find_index(row) is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- the index -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", KNOWN, ids=lambda path: path.stem[:40])
def test_the_index_says_what_the_reader_says(path):
    row = kept(path.read_bytes(), path.name)
    with path.open("rb") as file:
        reader = formats.read(file)
        expected = list(lines(reader))
    transcripts.build(row)
    with index.opened(cache.path_of(row)) as held:
        found = [line for first in range(1, held.last + 1, index.PAGE) for line in held.block(first)]
        assert (found, held.format) == (expected, reader.format)


def test_pages_from_the_index_are_those_from_the_file():
    row = kept(b"".join(logs.long_claude(350, output_lines=1)))
    for number in (1, 200, 201, 350, 9_999):
        read = pages._read_from_file(row, pages.page_number(number))
        indexed = transcripts.page(row, number)
        assert indexed.last == 350
        assert (read.lines, read.previous, read.following, read.problem) == (
            indexed.lines, indexed.previous, indexed.following, indexed.problem,
        )  # fmt: skip


def test_a_page_knows_its_neighbours():
    row = said(*(f"line {number}" for number in range(1, 451)))
    first, middle, last = (transcripts.page(row, number) for number in (1, 400, 401))
    assert (numbers(first)[0], numbers(first)[-1], first.previous, first.following) == (1, 200, None, 2)
    assert (numbers(middle)[0], numbers(middle)[-1], middle.previous, middle.following) == (201, 400, 1, 3)
    assert (numbers(last)[0], numbers(last)[-1], last.previous, last.following) == (401, 450, 2, None)
    assert [(page.first, page.end, page.number) for page in (first, middle, last)] == [
        (1, 200, 1), (201, 400, 2), (401, 450, 3),
    ]  # fmt: skip
    assert (first.last, first.last_page) == (450, 3)


def test_neighbours_are_found_across_a_gap_that_has_no_lines(folder):
    """Usage has numbers and no lines."""
    events = Transcript().says("begin")
    for _ in range(600):
        events.used("m", input_tokens=1)
    events.says("end")
    path = folder / "gap.sqlite3"
    folder.mkdir()
    index.write(path, "x", lines(events.events))
    with index.opened(path) as held:
        first, empty, last = (pages._page_of(held, number) for number in (1, 2, 4))
    assert (numbers(first), first.following, numbers(last), last.previous) == ([1], 4, [602], 1)
    assert (empty.lines, empty.previous, empty.following, empty.problem) == ((), 1, 4, "")


def test_a_result_away_from_its_call_says_whose_it_is():
    events = Transcript().call("a", command="x").call("b", command="y").result("a").result("b").run("z").events
    assert [line.call_number for line in lines(events)] == [None, None, 1, 2, None, None]


def test_no_part_of_a_secret_is_left_where_a_long_text_was_cut():
    """Also if marks make the text so much shorter that all that was read of it could be shown."""
    text = "".join(f"{number:05} {LONG_KEY} {SHORT_KEY}\n" for number in range(1_000))
    for events in (Transcript().says(text).events, Transcript().call("a", command=text).events):
        (line,) = (line for line in lines(events) if line.number == 1)
        assert "redacted" in line.stored_text + line.head
        assert SHORT_KEY[:4] not in line.stored_text + line.head


def test_open_calls_are_bounded():
    events = Transcript()
    for number in range(MAX_OPEN_CALLS + 1):
        events.call(f"c{number}")
    assert [line.call_number for line in lines(events.result("c0").result("c1").events)][-2:] == [None, 2]


def test_hostile_text_is_stored_as_it_is():
    text = "'); DROP TABLE line; -- <script>\u202e %s {{ x }} 😀"
    broken = json.dumps({"role": "user", "content": "\ud800 half \u0000", "timestamp": "2026-03-31T11:00:00"}).encode()
    row = kept(logs.gptme(("user", text)) + broken)
    found = transcripts.page(row, 1)
    assert [line.stored_text for line in found.lines] == [text, "\ufffd half \ufffd"]


def test_an_index_is_made_in_bounded_memory():
    row = long(4_000)
    tracemalloc.start()
    transcripts.build(row)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < row.size / 2


def test_long_text_is_bounded_and_says_how_much_is_left_out():
    (line,) = transcripts.page(said("x" * (FOLDED + 5)), 1).lines
    assert (len(line.text), len(line.text) + len(line.rest), line.cut) == (1200, FOLDED, 5)


# --- until the index is there ----------------------------------------------------------------------------------------


def test_the_first_page_waits_for_nothing_and_one_far_in_says_how_far_it_is():
    row = long()
    assert row.size > pages.MAX_BYTES_READ
    cache.write_progress(row, cache.IndexProgress(events=120, about=2_000))  # somebody is at work
    first, far = transcripts.page(row, 1), transcripts.page(row, 2_000)
    assert (numbers(first)[0], numbers(first)[-1], first.following, first.last) == (1, 200, 2, None)
    assert (far.lines, str(far.reading)) == ((), "reading the transcript: 120 of about 2,000 events")
    assert str(transcripts.find(row, "x")) == str(far.reading)


def test_without_a_broker_the_asker_builds_beside_its_work():
    row = long()
    assert transcripts.page(row, 1).last is None
    wait_for_index(row)
    assert transcripts.page(row, 2_000).lines[-1].stored_text == "Done."


def test_where_no_worker_comes_the_next_asker_builds(redis_url, monkeypatch):
    monkeypatch.setattr(wakeup, "_silent_until", 0)
    row = long()
    row.pk = 1
    transcripts.page(row, 1)
    assert [thread for thread in threading.enumerate() if thread.name.startswith("index")] == []
    path = cache.path_of(row).with_suffix(".progress")
    os.utime(path, (0, 0))
    transcripts.page(row, 1)
    wait_for_index(row)


@pytest.mark.worker
def test_a_worker_makes_the_index(site, redis_url, start_worker, settings, monkeypatch):
    monkeypatch.setattr(wakeup, "_silent_until", 0)
    state = Path(os.environ["GRADINGSITE_STATE"])
    settings.MEDIA_ROOT, settings.TRANSCRIPT_CACHE = state / "evidence", state / "cache" / "transcripts"
    start_worker()
    row = long()
    row.session = site.session().session
    row.save()
    transcripts.announce(row)
    wait_for_index(row)


def test_two_builders_at_once_do_no_harm(folder):
    row = long(600)
    threads = [threading.Thread(target=transcripts.build, args=[row]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stored(folder) == [cache.path_of(row).name]
    assert transcripts.page(row, 600).lines[-1].stored_text == "Done."


# --- what cannot be read ---------------------------------------------------------------------------------------------


def test_what_is_no_transcript_is_said_in_words():
    row = kept(b"\x00 no transcript " * 100_000)
    assert "could not be read" in transcripts.page(row, 1).problem
    building.build(row)
    found = transcripts.find(row, "x")
    assert "could not be read" in found.problem


def test_a_damaged_file_shows_its_start_and_says_what_to_do(folder):
    row = long()
    (blob,) = folder.parent.rglob("*.zst")
    blob.write_bytes(blob.read_bytes()[:-200])
    transcripts.build(row)
    assert numbers(transcripts.page(row, 1))[0] == 1
    assert "restore it from a backup" in transcripts.page(row, 2_000).problem


def test_progress_is_never_seen_half_written():
    row = said("one")
    cache.write_progress(row, cache.IndexProgress(problem="The disk was full"))
    has_stopped = threading.Event()

    def keep_writing() -> None:
        while not has_stopped.is_set():
            cache.write_progress(row, cache.IndexProgress(problem="The disk was full"))

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        assert {cache.progress(row).problem for _ in range(3_000)} == {"The disk was full"}
    finally:
        has_stopped.set()
        writer.join()


def test_what_failed_is_tried_again_after_a_while():
    row = long()
    cache.write_progress(row, cache.IndexProgress(problem="The disk was full"))
    assert transcripts.page(row, 2_000).problem == "The disk was full"
    os.utime(cache.path_of(row).with_suffix(".progress"), (0, 0))
    assert transcripts.page(row, 2_000).problem == ""
    wait_for_index(row)


def test_a_broken_index_is_made_again():
    row = said("one")
    transcripts.page(row, 1)
    for rubbish in (b"rubbish" * 1000, b""):
        cache.path_of(row).write_bytes(rubbish)
        assert transcripts.page(row, 1).lines[0].stored_text == "one"
        assert transcripts.find(row, "one").hits == (1,)


def test_where_nothing_can_be_written_the_start_is_read_all_the_same(settings, tmp_path):
    (tmp_path / "file").write_text("in the way")
    settings.TRANSCRIPT_CACHE = tmp_path / "file"
    for row in (said("one"), long()):
        assert transcripts.page(row, 1).lines[0].number == 1
        assert "file" in transcripts.find(row, "one").problem
    assert "mend the folder" in transcripts.page(row, 2_000).problem


# --- the search ------------------------------------------------------------------------------------------------------


def test_the_search_knows_no_case_and_no_wildcards():
    row = said("Die PRÜFSUMME stimmt", "100% sure", "100 percent", "snake_case", "snakeXcase", "STRASSE", "a'b\"c;")
    for query, hits in {
        "prüfsumme": (1,), "100%": (2,), "%": (2,), "_": (4,), "snake_case": (4,), "straße": (6,), "a'b\"c;": (7,),
        "100": (2, 3), "nowhere": (), "\\": (),
    }.items():  # fmt: skip
        assert transcripts.find(row, query).hits == hits, query


def test_the_search_finds_commands_and_what_is_behind_the_fold():
    row = kept(logs.claude("s", ("make UNIQUE", "x" * 5_000 + "hidden" + "y" * 20_000 + "beyond")))
    assert transcripts.find(row, "unique").hits == (2,)
    assert len(transcripts.find(row, "HIDDEN").hits) == 1
    assert transcripts.find(row, "beyond").hits == (), "only what can be shown"


def test_a_search_goes_on_where_it_stopped(monkeypatch):
    row = said(*(f"line {number}" for number in range(1, 31)))
    monkeypatch.setattr(index, "MAX_HITS", 10)
    found = transcripts.find(row, "line")
    assert (found.hits, found.searched, found.more) == (tuple(range(1, 11)), 10, True)
    assert transcripts.find(row, "line", after=20) == index.SearchHits(
        hits=tuple(range(21, 31)), searched=30, more=False
    )
    monkeypatch.setattr(index, "MAX_SEARCHED", 40)
    assert transcripts.find(row, "line 30") == index.SearchHits(hits=(), searched=6, more=True)


# --- the cache -------------------------------------------------------------------------------------------------------


def test_another_version_of_the_parser_makes_another_index(folder, monkeypatch):
    row = said("one")
    transcripts.build(row)
    old = cache.path_of(row)
    monkeypatch.setattr(cache, "VERSION", f"{cache.VERSION}-next")
    assert transcripts.page(row, 1).lines
    assert cache.path_of(row).exists()
    assert not old.exists(), "old ones go"


def test_the_least_recently_used_go_when_there_is_too_much(settings, folder):
    first, second, third = (said(text) for text in ("one", "two", "three"))
    for age, row in enumerate((first, second)):
        transcripts.build(row)
        os.utime(cache.path_of(row), (age, age))
    transcripts.page(first, 1)  # used
    settings.TRANSCRIPT_CACHE_BYTES = 2 * cache.path_of(first).stat().st_size
    transcripts.build(third)
    assert stored(folder) == sorted(cache.path_of(row).name for row in (first, third))


def test_what_dead_builders_left_goes(folder):
    row = said("one")
    left = cache.path_of(row).parent / "x.part"
    left.parent.mkdir(parents=True)
    left.touch()
    os.utime(left, (0, 0))
    transcripts.build(row)
    assert not left.exists()


def test_the_cache_may_be_deleted_at_any_time(folder):
    row = said("one")
    transcripts.page(row, 1)
    for path in folder.rglob("*"):
        if path.is_file():
            path.unlink()
    assert transcripts.page(row, 1).lines


@pytest.mark.django_db(transaction=True)
def test_erasing_a_session_erases_its_index(site, folder):
    session, other = site.session().session, site.session().session
    for each in (session, other):
        row = said(f"secret of {each.pk}")
        row.session = each
        row.save()
        transcripts.build(row)
        cache.write_progress(row, cache.IndexProgress())
    erasing.erase(Session.objects.filter(pk=session.pk), who="olga", why="asked to")
    assert stored(folder) == sorted(
        path.name for path in (cache.path_of(row), cache.path_of(row).with_suffix(".progress"))
    )


def test_an_index_that_is_finished_after_the_erasure_does_not_stay(folder, db):
    row = said("secret")
    with store.open(row) as _held:
        reads = store.open

        def erased_meanwhile(each):
            stream = reads(each)
            store.default_storage.delete(store.blob_name(row.sha256))
            transcripts.forget(row.sha256)
            return stream

        store.open = erased_meanwhile
        try:
            transcripts.build(row)
        finally:
            store.open = reads
    assert [name for name in stored(folder) if not name.endswith(".progress")] == []


# --- citations in words ----------------------------------------------------------------------------------------------


def test_citations_in_a_text_become_links():
    assert cited("Passes [118].") == 'Passes [<a class="cite" href="#e118">118</a>].'
    assert cited("[97, 118]") == '[<a class="cite" href="#e97">97</a>, <a class="cite" href="#e118">118</a>]'
    assert cited("[118]", "?event") == '[<a class="cite" href="?event=118#e118">118</a>]'


def test_other_brackets_and_hostile_text_are_left_alone():
    assert cited("[x] [0] [1234567890] [٣] [] [1,]") == "[x] [0] [1234567890] [٣] [] [1,]"
    assert cited("<b>[7]</b> &#39;") == '&lt;b&gt;[<a class="cite" href="#e7">7</a>]&lt;/b&gt; &amp;#39;'
    assert cited(None) == ""


def test_a_place_is_counted_in_the_order_of_events():
    assert (place(118, [121, 118, 97]), place(5, [1]), place(5, None), place(5, "")) == ("2 of 3", "", "", "")
    page = Template("{% load gradingsite_tags %}{% place 3 missing as x %}[{{ x }}]")
    assert page.render(Context({})) == "[]"
