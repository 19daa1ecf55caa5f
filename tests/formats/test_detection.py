"""Detection is by content: all records of a head, never line 1 alone, and foreign files are refused with reasons."""

from io import BytesIO

import pytest

from grading.formats import EmptyTranscript, UnknownFormat, detect, read
from tests.formats.logs import AT, FIXTURES, GPTME_PROMPT, SESSION, claude, codex_item, codex_meta, gptme, jsonl

pytestmark = pytest.mark.pure

FILES = {
    "claude-code-hello-world.jsonl": "claude-code",
    "claude-code-1b3e6441.jsonl": "claude-code",
    "codex-019ed628.jsonl": "codex",
    "gptme-replay-00.jsonl": "gptme",
    "gptme-replay-08.jsonl": "gptme",
    "others/copilot-cli.jsonl": "copilot-cli",
    "others/cursor-agent.jsonl": "cursor",
    "others/droid-stream.jsonl": "droid",
    "others/gemini-cli.json": "gemini-cli",
    "others/pi.jsonl": "pi",
    "others/qwen.jsonl": "qwen",
}


@pytest.mark.parametrize(("name", "expected"), FILES.items())
def test_real_files_are_recognised(name: str, expected: str):
    found = detect((FIXTURES / name).read_bytes()[:50_000])
    assert found.format == expected
    assert found.score >= 0.6
    assert expected in found.reason


@pytest.mark.parametrize(("name", "expected"), FILES.items())
def test_a_format_that_is_known_reads_the_same(name: str, expected: str):
    data = (FIXTURES / name).read_bytes()
    assert list(read(BytesIO(data), format_name=expected)) == list(read(BytesIO(data)))


def test_a_known_format_is_not_looked_for_and_one_that_nobody_knows_is():
    with pytest.raises(UnknownFormat):
        read(BytesIO(b'{"a": 1}\n'), format_name="of another version")
    assert read(BytesIO(b'{"a": 1}\n'), format_name="codex").format == "codex"


RECOGNISED = {
    "Kiro": jsonl({"version": "v1", "kind": "Prompt", "data": {"content": []}}),
    "Goose": jsonl({"working_dir": "/w", "description": "A task", "message_count": 2}),
    "OpenHands SDK": jsonl({"id": "e", "timestamp": AT, "source": "agent", "kind": "ActionEvent"}),
    "Cline or Roo Code": b'[{"ts": 1, "type": "say", "say": "text"},\n{"ts": 2, "type": "ask", "ask": "tool"}]',
    "Amp": b'{"v": 3, "id": "T-1234",\n"messages": []}',
    "Aider": b"# aider chat started at 2026-01-02 03:04:05\n\n> /usr/bin/aider\n",
    "Hermes": b'{"session_id": "s", "platform": "cli", "session_start": "2026",\n"messages": []}',
    "Claude Code on the web": b'{"loglines": [{"type": "user"}]}',
}


@pytest.mark.parametrize(("title", "data"), RECOGNISED.items())
def test_harness_that_is_not_read_is_refused_by_its_name(title: str, data: bytes):
    with pytest.raises(UnknownFormat, match=f"{title} log; not read yet") as caught:
        read(BytesIO(data), "log")
    assert caught.value.harness == title


def test_real_log_of_a_harness_that_is_not_read():
    data = (FIXTURES / "others" / "grok.jsonl").read_bytes()
    with pytest.raises(UnknownFormat, match="a Grok log; not read yet"):
        read(BytesIO(data), "grok.jsonl")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"SQLite format 3\x00" + b"\x00" * 100 + b"CREATE TABLE `part` (`session_id` text)", "OpenCode database"),
        (b'{"id": "m", "sessionID": "s",\n"role": "user", "time": {}}', "one part of an OpenCode session"),
        (jsonl({"instance_id": "i", "model_patch": "diff"}), "patches without the sessions"),
    ],
)
def test_file_that_is_no_single_session_says_what_to_do(data: bytes, words: str):
    with pytest.raises(UnknownFormat, match=words) as caught:
        read(BytesIO(data), "log")
    assert caught.value.harness == ""


@pytest.mark.parametrize(
    "first",
    [
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}, "isSnapshotUpdate": False},
        {"type": "summary", "summary": "s", "leafUuid": "u"},
        {"type": "queue-operation", "operation": "dequeue", "timestamp": AT, "sessionId": SESSION},
        {"type": "mode", "mode": "normal", "sessionId": SESSION},
        {"type": "progress", "data": {"type": "hook_progress"}, "uuid": "p", "sessionId": SESSION},
        {"type": "never-seen-before", "sessionId": SESSION},
    ],
    ids=lambda record: record["type"],
)
def test_first_line_may_be_anything(first: dict):
    assert detect(jsonl(first, claude("user", "hello"), claude("assistant", "hi"))).format == "claude-code"


def test_stubs_are_recognised():
    """One snapshot line of 236 bytes; one user line; metadata only."""
    snapshot = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {"messageId": "m"}}
    for stub in (snapshot, claude("user", "hi"), {"aiTitle": "A title", "sessionId": SESSION}):
        assert detect(jsonl(stub)).format == "claude-code"


def test_stream_json_is_claude_codes():
    init = {"type": "system", "subtype": "init", "session_id": SESSION, "uuid": "i", "model": "m", "tools": []}
    said = {"type": "assistant", "message": {"role": "assistant", "content": []}, "parent_tool_use_id": None}
    assert detect(jsonl(init, said | {"session_id": SESSION})).format == "claude-code"


def test_codex_exec_and_legacy_are_codexs():
    assert detect(jsonl({"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"})).format == "codex"
    legacy = {"id": "x", "timestamp": AT, "instructions": None, "git": {}}
    assert detect(jsonl(legacy, {"record_type": "state"})).format == "codex"


def test_a_chat_of_another_program_is_no_gptme():
    chat = {"role": "user", "content": "hi", "timestamp": AT, "conversation_id": 7}
    assert detect(jsonl(chat)).format is None


def test_a_few_familiar_lines_do_not_make_a_format():
    foreign = [{"type": "message", "id": str(n)} for n in range(3)]
    found = detect(jsonl(claude("user", "hi"), *foreign))
    assert found.format is None
    assert found.score == 0.25
    assert (
        found.reason
        == "JSON of another kind (type 'user'; type 'message'); closest is claude-code with a score of 0.25"
    )


def test_head_that_cuts_a_line_is_enough():
    data = jsonl(codex_meta(), codex_item("message", role="user", content=[{"type": "input_text", "text": "x" * 9000}]))
    assert detect(data[:5000]).format == "codex"


def test_first_line_longer_than_the_head_is_read():
    data = jsonl(claude("user", "x" * 1_000_000), claude("assistant", "hi"))
    assert len(list(read(BytesIO(data)))) == 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{\n  "lines": []\n}\n', "a JSON document over several lines"),
        (b'{"a": [1, 2', "one line of JSON that does not end"),
        ("{}".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04 an archive", "not JSON lines"),
        (b"Assistant: done\n", "not JSON lines"),
        (b'{"type": "session.begun", "data": []}\n', "type 'session.begun'"),
        (b'{"step": 1, "action": "x"}\n', "keys 'action, step'"),
    ],
)
def test_unknown_format_says_what_came_and_what_to_do(data: bytes, words: str):
    with pytest.raises(UnknownFormat) as caught:
        read(BytesIO(data), "log.jsonl")
    assert words in str(caught.value)
    assert "'log.jsonl'" in str(caught.value)
    assert "Submit the log file that the harness itself wrote" in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\n", b"  \r\n\n"])
def test_empty_transcript_is_told_apart(data: bytes):
    with pytest.raises(EmptyTranscript, match="expected a session log"):
        read(BytesIO(data))


def test_reader_knows_its_format_at_once_and_reads_once():
    reader = read(BytesIO(jsonl(GPTME_PROMPT, gptme("user", "hi"))))
    assert reader.format == "gptme"
    assert len({event.number for event in reader}) == 2
    with pytest.raises(RuntimeError, match="can be read once"):
        iter(reader)
