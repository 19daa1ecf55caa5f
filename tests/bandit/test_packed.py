"""JSON is packed with what rows have in common, and whatever was packed once can be read for ever."""

import json
import zlib

import pytest
from django.core.exceptions import FieldError
from hypothesis import given
from hypothesis import strategies as st

from bandit.models import Selection
from bandit.packed import TYPICAL, pack, pack_text, unpack, unpack_text
from grading.models import Grade
from tests.examples import examples

ADLER = 934736455
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.pure
@examples(60)
@given(JSON)
def test_what_is_packed_comes_back(value):
    assert unpack(pack(value)) == value


@pytest.mark.pure
@examples(60)
@given(st.text())
def test_text_that_is_packed_comes_back(text):
    assert unpack_text(pack_text(text)) == text


@pytest.mark.pure
def test_text_may_begin_with_what_marks_it_as_packed():
    """An agent may send any."""
    said = ["\x01", "\x02", "\x01 commit", "\x02\x02"]
    assert [unpack_text(pack_text(text)) for text in said] == said
    assert pack_text("any") == b"any"


@pytest.mark.pure
def test_a_typical_row_is_a_tenth_of_its_json():
    rows = [line.replace("1", "7") for line in TYPICAL.read_text().splitlines()]
    assert sum(len(pack(json.loads(row))) for row in rows) * 10 < sum(map(len, rows))


@pytest.mark.pure
def test_nothing_is_longer_than_its_json():
    assert [pack({}), pack([]), pack(None)] == [b"{}", b"[]", b"null"]


@pytest.mark.pure
def test_what_was_compressed_without_a_dictionary_can_be_read():
    """Signals were, up to version 0.1."""
    assert unpack(zlib.compress(b'{"results":46}')) == {"results": 46}


@pytest.mark.pure
def test_what_was_packed_in_zlibs_frame_can_be_read():
    """Rows were, before the frame was left out."""
    packer = zlib.compressobj(zdict=TYPICAL.read_bytes())
    framed = packer.compress(b'{"results":46}') + packer.flush()
    assert unpack(framed) == {"results": 46}


@pytest.mark.pure
def test_the_dictionary_is_what_rows_were_packed_with():
    """A better one is another file: change the field to write with that one, and to read with both."""
    assert zlib.adler32(TYPICAL.read_bytes()) == ADLER, "rows that were packed with it could not be read any more"


def test_a_query_that_looks_inside_is_refused():
    with pytest.raises(FieldError, match="Unsupported lookup 'chosen' for PackedJSONField"):
        Selection.objects.filter(explanation__chosen="code").exists()


def test_what_queries_ask_of_a_grade_are_columns():
    evidence = {"view": "full", "mean": 0.25, "purpose": "trial"}
    grade = Grade(evidence={**evidence, "terms": []})
    grade.set_derived_columns()
    assert {name: getattr(grade, name) for name in evidence} == evidence
    bare = Grade(evidence={})
    bare.set_derived_columns()
    assert [getattr(bare, name) for name in evidence] == ["", None, ""]
