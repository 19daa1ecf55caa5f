"""Inspect's logs: archives that are compressed with Zstandard, several samples, and how calls end."""

import json
import struct
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
import zstandard

from grading.formats import read
from grading.formats.events import ToolCall, ToolResult, Usage
from tests.formats.logs import only

pytestmark = pytest.mark.pure

LOGS = Path(__file__).parent / "logs"
METHOD = struct.Struct("<H")


def with_zstandard(data: bytes) -> bytes:
    """The archive as newer versions of Inspect write it: each member is compressed with Zstandard, method 93."""
    target = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in source.namelist():
            archive.writestr(name, zstandard.ZstdCompressor().compress(source.read(name)))
    packed = bytearray(target.getvalue())
    # The method's place in each member's header, and in its entry of the directory.
    for signature, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = packed.find(signature)
        while start >= 0:
            METHOD.pack_into(packed, start + place, 93)
            start = packed.find(signature, start + 4)
    return bytes(packed)


def test_newer_archive_is_read_like_an_older_one():
    data = (LOGS / "log_streaming.eval").read_bytes()
    older, newer = read(BytesIO(data)), read(BytesIO(with_zstandard(data)))
    assert list(newer) == list(older)
    assert newer.header == older.header
    assert newer.report == older.report


def log(*messages: dict, **sample: object) -> bytes:
    evaluation = {"task": "t", "model": "m", "packages": {"inspect_ai": "0.3"}, "eval_id": "e"}
    samples = [{"id": 1, "epoch": 1, "messages": list(messages)} | sample]
    return json.dumps({"version": 2, "status": "success", "eval": evaluation, "samples": samples}).encode()


def test_calls_and_their_results():
    """A shell's exit code is not recorded, so its success is unknown; an error of a tool is one."""
    calls = [
        {"id": "c1", "function": "bash", "arguments": {"cmd": "git push"}},
        {"id": "c2", "function": "text_editor", "arguments": {"command": "view", "path": "/w/a"}},
        {"id": "c3", "function": "bash", "arguments": {"cmd": "sleep 9"}},
    ]
    results = [
        {"role": "tool", "tool_call_id": "c1", "function": "bash", "content": "done"},
        {"role": "tool", "tool_call_id": "c2", "function": "text_editor", "content": "text"},
        {"role": "tool", "tool_call_id": "c3", "function": "bash", "content": "", "error": {"message": "timeout"}},
    ]
    events = list(read(BytesIO(log({"role": "assistant", "content": "", "tool_calls": calls}, *results))))
    assert [(call.kind, call.command, call.path) for call in only(events, ToolCall)] == [
        ("shell", "git push", ""),
        ("read", "", "/w/a"),
        ("shell", "sleep 9", ""),
    ]
    assert [(result.failed, result.text) for result in only(events, ToolResult)] == [
        (None, "done"),
        (False, "text"),
        (True, "timeout"),
    ]


@pytest.mark.parametrize(("total", "given"), [(115, 60), (155, 100)])
def test_cached_tokens_are_counted_apart(total: int, given: int):
    """Some providers count cached tokens as input (100 + 15 = 115), and some don't."""
    usage = {"input_tokens": 100, "output_tokens": 15, "input_tokens_cache_read": 40, "total_tokens": total}
    (event,) = only(list(read(BytesIO(log(model_usage={"m": usage})))), Usage)
    assert (event.input_tokens, event.output_tokens, event.cache_read_tokens) == (given, 15, 40)
