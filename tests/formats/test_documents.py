"""A JSON document of any length is read as a stream of its parts."""

import io
import json
import tracemalloc
from collections.abc import Iterator

import pytest

from grading.formats.documents import read_beginning, read_document
from grading.formats.lines import LineTally
from tests.formats.test_memory import Endless

pytestmark = pytest.mark.pure

PATHS = frozenset({"name", "items.item"})
MEBIBYTE = 1024 * 1024


def parts(data: bytes, *, max_size: int = 1000) -> tuple[list, LineTally]:
    tally = LineTally()
    records = [record for _, record in read_document(io.BytesIO(data), tally, PATHS, max_size=max_size)]
    return [(record["path"], record["value"]) for record in records], tally


ITEMS = {
    b'{"name": "n", "items": [1, {"a": [2]}, [3]]}': ["n", 1, {"a": [2]}, [3]],
    b'{"other": {"items": [9], "name": 1}, "items": []}': [],
    b'{"items": [NaN, -Infinity, {"a": Infinity}]}': [None, None, {"a": None}],
    b'{"name": "a\\u0000b\\ud800c"}': ["a\ufffdb?c"],
    b'\xef\xbb\xbf{"name": "\xff"}': ["\ufffd"],
    b'{"name": 1.5, "items": [12345678901234567890123]}': [1.5],
}


@pytest.mark.parametrize(("data", "expected"), ITEMS.items())
def test_parts_are_yielded_in_order(data: bytes, expected: list):
    assert [value for _, value in parts(data)[0]] == expected


def test_document_that_ends_early_is_torn():
    found, tally = parts(b'{"items": [{"a": 1}, {"b": ')
    assert found == [("items.item", {"a": 1})]
    assert tally.torn_tail


def test_part_that_is_too_long_is_skipped():
    found, tally = parts(b'{"items": ["' + b"x" * 2000 + b'", 1]}')
    assert found == [("items.item", 1)]
    assert tally.oversized == 1


def test_nesting_is_limited():
    found, tally = parts(b'{"items": ' + b"[" * 100_000)
    assert found == []
    assert tally.not_objects == 1
    assert read_beginning(b"[" * 100_000) is not None


def test_beginning_has_what_is_complete():
    assert read_beginning(b' {"a": {"b": 1}, "c": [{"d": 2}, {"e": ') == {"a": {"b": 1}, "c": [{"d": 2}, {}]}
    assert read_beginning(b"text") is None


def test_memory_does_not_grow_with_the_document():
    def pieces() -> Iterator[bytes]:
        yield b'{"items": ['
        for number in range(4000):
            yield json.dumps({"number": number, "text": "x" * 10_000}).encode() + b","
        yield b"0]}"

    tally = LineTally()
    tracemalloc.start()
    try:
        records = read_document(Endless(pieces()), tally, PATHS, max_size=100_000)
        assert sum(1 for _ in records) == 4001
        assert tracemalloc.get_traced_memory()[1] < 4 * MEBIBYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("source", [rb'{"messages": ["\ude00"]}', rb'{"messages": ["\ud83d\ud83d\ude00"]}'])
def test_half_a_surrogate_pair_ends_a_document(source):
    """The parser of documents cannot decode it."""
    tally = LineTally()
    paths = frozenset({"messages.item"})
    assert list(read_document(io.BytesIO(source), tally, paths, max_size=1000)) == []
    assert tally.not_objects == 1
    assert read_beginning(source) == {"messages": []}
