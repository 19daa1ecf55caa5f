"""The hazards of JSON lines, each seen in real logs or made by hand: survived, and counted."""

import json
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.formats.events import Message
from grading.formats.lines import INVALID_JSON, LineTally, decode_strict_json, json_or_none, read_objects, split_json
from tests.examples import examples
from tests.formats.logs import claude, jsonl, only, parse

pytestmark = pytest.mark.pure

HELLO = claude("user", "hello", uuid="a")
WORLD = claude("user", "world", uuid="b")


def texts(data: bytes, **options: int) -> tuple[list[str], object]:
    events, _, report = parse(data, **options)
    return [message.text for message in only(events, Message)], report


def test_torn_last_line_is_survived():
    said, report = texts(jsonl(HELLO, WORLD) + b'{"type":"user","mess')
    assert said == ["hello", "world"]
    assert (report.torn_tail, report.not_objects, report.lines, report.recognised) == (True, 0, 3, 2)


def test_last_line_without_line_end_counts():
    said, report = texts(jsonl(HELLO, WORLD).rstrip(b"\n"))
    assert said == ["hello", "world"]
    assert not report.torn_tail


def test_glued_objects_are_read_apart():
    said, report = texts(jsonl(HELLO).rstrip() + jsonl(WORLD))
    assert said == ["hello", "world"]
    assert (report.glued, report.lines, report.coverage) == (1, 2, 1.0)


def test_lines_that_are_no_objects_are_counted():
    said, report = texts(jsonl(HELLO) + b'42\n"massive error"\n[1]\nnull\nnot json\n\n' + jsonl(WORLD))
    assert said == ["hello", "world"]
    assert (report.not_objects, report.lines, report.recognised) == (5, 7, 2)


def test_identical_line_is_read_once():
    said, report = texts(jsonl(HELLO, HELLO, WORLD))
    assert said == ["hello", "world"]
    assert (report.duplicates, report.coverage) == (1, 1.0)


def test_same_uuid_is_read_once():
    said, report = texts(jsonl(HELLO, HELLO | {"slug": "copied-on-resume"}, WORLD))
    assert said == ["hello", "world"]
    assert report.duplicates == 1


def test_repeat_of_an_unknown_line_is_not_recognised():
    _, _, report = parse(jsonl(HELLO, WORLD, {"type": "new"}, {"type": "new"}))
    assert (report.recognised, report.lines, report.duplicates) == (2, 4, 0)
    assert report.problems == ("unknown record type 'new' (2 times)",)


def test_unicode_line_separator_is_text():
    said, report = texts(jsonl(HELLO).replace(b"hello", "a\u2028b\u2029c\x85d".encode()))
    assert said == ["a\u2028b\u2029c\x85d"]
    assert report.lines == 1


def test_windows_line_ends_and_byte_order_mark_are_read():
    said, report = texts(b"\xef\xbb\xbf" + jsonl(HELLO, WORLD).replace(b"\n", b"\r\n"))
    assert said == ["hello", "world"]
    assert report.coverage == 1.0


def test_invalid_utf8_is_replaced_and_counted():
    said, report = texts(jsonl(HELLO).replace(b"hello", b"he\xff\xfello"))
    assert said == ["he\ufffd\ufffdllo"]
    assert report.invalid_utf8 == 1


def test_half_surrogates_and_nul_are_made_storable():
    """PostgreSQL refuses both in text and in JSON."""
    data = jsonl(HELLO).replace(b"hello", rb"a\ud83d b\u0000 c\ud83d\ude00 d\\ud83d")
    said, report = texts(data)
    assert said == ["a\ufffd b\ufffd c\N{GRINNING FACE} d\\ud83d"]
    assert report.invalid_utf8 == 1


def test_half_surrogates_inside_json_in_a_string_are_made_storable():
    assert json_or_none(r'{"a": "\ud800"}') == {"a": "\ufffd"}


# JSON, and what is nearly JSON, in which decoders differ.
PIECES = (
    *("NaN", "-Infinity", "1e400", "-0", "-0.0", "1E5", "01", "1.", ".5", "+1", "5e-324", "0.1", "9" * 25, "9" * 5000),
    *("18446744073709551616", "-9223372036854775809", "9007199254740993.0", "null", "true", "[]", "{}", "[1,]", "'x'"),
    *(r'"\ud800"', r'"\ude00"', r'"\ud83d\ude00"', r'"\ud83d\ud83d\ude00"', r'"\/"', r'"\x"', r'"\u12"', r'"\\u0000"'),
    *('"\x01"', '"\t"', '"\x7f"', '"\u2028"', '"\U0001f600"', '{"a":1,"b":2,"a":3}', "[" * 300 + "]" * 300),
)
values = st.sampled_from(PIECES) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
).map(json.dumps)
objects = st.lists(st.tuples(st.text(max_size=3), values), max_size=4).map(
    lambda pairs: "{" + ",".join(f"{json.dumps(name)}: {value}" for name, value in pairs) + "}"
)
spoilt = st.tuples(objects, st.integers(0, 200), st.text(max_size=2)).map(
    lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] :]
)


@examples(200)
@given(objects | spoilt)
def test_what_is_decoded_strictly_is_what_python_decodes(source):
    """Whatever one decoder can't read is left to the other, so that logs are read as if there were only Python's."""
    value = decode_strict_json(source)
    if value is not INVALID_JSON:
        (only_value,) = (each for _text, each in split_json(source, LineTally()))
        assert repr(value) == repr(only_value)


def test_oversized_line_is_skipped_and_counted():
    big = claude("user", "x" * 5000, uuid="c")
    said, report = texts(jsonl(HELLO, big, WORLD), max_line=1000)
    assert said == ["hello", "world"]
    assert (report.oversized, report.lines) == (1, 3)
    assert report.problems == ("line 2 is longer than 1000 bytes and was skipped",)


class Metered(BytesIO):
    """Remembers the most bytes that were asked for at once."""

    most = 0

    def readline(self, size: int = -1, /) -> bytes:
        self.most = max(self.most, size)
        return super().readline(size)


def test_oversized_line_is_never_held_whole():
    stream = Metered(b'{"a":"' + b"x" * 1_000_000 + b'"}\n' + jsonl(HELLO))
    tally = LineTally()
    assert len(list(read_objects(stream, tally, max_line=1000))) == 1
    assert tally.oversized == 1
    assert stream.most <= 64 * 1024


@pytest.mark.parametrize("limit", [0, 1, -1])
def test_line_of_just_the_limit_is_read(limit: int):
    line = jsonl(HELLO)
    last = line.rstrip().replace(b'"a"', b'"b"')
    _, report = texts(line + last, max_line=len(last) + limit)
    assert report.oversized == (2 if limit < 0 else 0)


def test_deep_nesting_is_survived():
    said, report = texts(jsonl(HELLO) + b'{"a":' * 100_000 + b"}" * 100_000 + b"\n" + jsonl(WORLD))
    assert said == ["hello", "world"]
    assert report.not_objects == 1
    assert "JSON nested too deeply" in report.problems


def test_nan_and_infinity_are_no_numbers():
    record = claude("assistant", "done", message={"id": "m", "model": "x", "usage": {"input_tokens": 1}})
    events, _, report = parse(
        jsonl(record).replace(b'"input_tokens": 1', b'"input_tokens": NaN, "output_tokens": 1e999')
    )
    assert "NaN instead of a number" in report.problems
    assert "usage key 'output_tokens' is no whole number of tokens" in report.problems
    assert (events[-1].input_tokens, events[-1].output_tokens) == (None, None)


def test_huge_integers_are_survived():
    long, longer = b"9" * 4000, b"9" * 5000
    data = jsonl(HELLO, WORLD).replace(b'"timestamp": "2026-01-02T03:04:05.678Z"', b'"timestamp": ' + long, 1)
    said, report = texts(data + b'{"type": "user", "n": ' + longer + b"}\n")
    assert said == ["hello", "world"]
    assert report.not_objects == 1


def test_problems_are_bounded():
    known, unknown = [claude("user", f"n{n}") for n in range(200)], [{"type": f"t{n}"} for n in range(99)]
    _, _, report = parse(jsonl(*known, *unknown))
    assert len(report.problems) == 41
    assert report.problems[-1] == "other problems (59 times)"
