"""No bytes whatever make a reader raise anything but its two named faults."""

import json
from contextlib import suppress
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.formats import EmptyTranscript, UnknownFormat, detect, read
from grading.formats.claude_code.parser import METADATA as CLAUDE_METADATA
from grading.formats.claude_code.parser import ClaudeCode
from grading.formats.codex.parser import Codex
from grading.formats.events import Background, Event
from grading.formats.gptme.parser import Gptme
from grading.formats.lines import LineTally
from grading.formats.reader import Parser
from grading.formats.values import word_set
from tests.examples import examples
from tests.formats.logs import FIXTURES, GPTME_PROMPT, claude, codex_meta, jsonl

pytestmark = pytest.mark.pure

WORDS = sorted(
    word_set(
        "action api_error apply_patch arguments assistant attachment call_id changes chars cmd command "
        "command_execution compact_boundary compacted content custom_tool_call data error event_msg exec exit_code "
        "file_change function_call function_call_output id image info input input_tokens is_error item "
        "item.completed message metadata model name output output_tokens parts patch payload pr-link prUrl "
        "progress queued_command rate_limit_event rate_limit_info reasoning response_item result role save "
        "sessionId session_id session_meta shell snapshot source subtype summary system text thinking timestamp "
        "token_count toolUseResult tool_result tool_use total_token_usage turn.completed turn_context turn_id type "
        "usage user uuid "
    )
)
words = st.sampled_from(WORDS)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=20)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=6), max_leaves=20
)
records = st.dictionaries(words, values, max_size=8)
PREFIXES = {
    "claude-code": jsonl(*[claude("user", f"{n}") for n in range(12)]),
    "codex": jsonl(*[codex_meta(n=n) for n in range(12)]),
    "gptme": jsonl(*[GPTME_PROMPT | {"timestamp": str(n)} for n in range(12)]),
}
KINDS = {
    ClaudeCode: [
        *CLAUDE_METADATA,
        "user",
        "assistant",
        "attachment",
        "progress",
        "system",
        "result",
        "rate_limit_event",
    ],
    Codex: ["session_meta", "response_item", "event_msg", "turn_context", "compacted", "item.completed", "turn.failed"],
    Gptme: ["system", "user", "assistant", "tool"],
}


def consume(data: bytes) -> list[Event]:
    reader = read(BytesIO(data), max_line=100_000)
    events = list(reader)
    report = reader.report
    assert 0 <= report.recognised <= report.lines
    assert reader.header.harness == reader.format
    assert [event.number for event in events] == sorted(event.number for event in events)
    numbers = [event.number for event in events if not isinstance(event, Background)]
    assert len(numbers) == len({*numbers})
    for event in events:
        json.dumps(getattr(event, "text", "")).encode()
        getattr(event, "text", "").encode()
    return events


@given(st.binary(max_size=2000))
def test_no_bytes_raise_anything_but_the_named_faults(data: bytes):
    detect(data)
    with suppress(UnknownFormat, EmptyTranscript):
        consume(data)


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
@given(data=st.binary(max_size=500))
def test_no_bytes_after_a_good_start_raise(prefix: bytes, data: bytes):
    consume(prefix + data)


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
@examples(40)
@given(hostile=st.lists(records, max_size=5))
def test_no_records_of_familiar_words_raise(prefix: bytes, hostile: list):
    consume(prefix + jsonl(*hostile))


@pytest.mark.parametrize("parser", KINDS, ids=lambda parser: parser.format)
@examples(20)
@given(data=st.data())
def test_no_shape_of_a_known_record_raises(parser: type[Parser], data: st.DataObject):
    """Right kind, wrong everything else: each field may be of any type."""
    reading = parser(LineTally().problems)
    for kind in data.draw(st.lists(st.sampled_from(KINDS[parser]), max_size=5)):
        record = data.draw(records) | {"type": kind, "role": kind}
        message = data.draw(records) | {"content": data.draw(st.lists(records, max_size=3) | st.text())}
        reading.feed(record | {"message": message, "content": data.draw(values), "payload": data.draw(records)})
    reading.finish()
    reading.header()


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.jsonl")), ids=lambda path: path.stem)
@examples(25)
@given(data=st.data())
def test_real_logs_with_damage_are_read(path, data: st.DataObject):
    """Cut anywhere, a few bytes overwritten, a piece repeated."""
    whole = bytearray(path.read_bytes())
    places = data.draw(st.lists(st.integers(4000, len(whole) - 1), max_size=5))
    for place in places:
        whole[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(4000, len(whole)))
    tail = whole[-data.draw(st.integers(1, 3000)) :]
    with suppress(UnknownFormat):
        consume(bytes(whole[:cut] + tail))
