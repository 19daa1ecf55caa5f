"""What identifies a record in every copy of it, and the logs of subagents."""

import json
from datetime import UTC, datetime, timedelta
from io import BytesIO

import pytest

from grading.formats import read
from grading.formats.events import ApiError, Background, Clarity, Message, Role, ToolCall, ToolResult
from grading.signals.extract import extract
from tests.formats.logs import THREAD, claude, codex, codex_item, codex_meta, jsonl, only, parse, tool_result, tool_use

pytestmark = pytest.mark.pure

PARENT = "019f5129-58cd-7e23-bb57-2fac45120e7f"
CALL = "call_0LFclfsu3OTmIQeyRb2Zriww"


def records(*lines: dict) -> list[str]:
    events = [event for event in read(BytesIO(jsonl(*lines))) if not isinstance(event, Background)]
    assert all(event.record for event in events)
    return list(dict.fromkeys(event.record for event in events))


def test_a_claude_log_under_new_session_ids_has_the_same_records():
    lines = [claude("user", "Fix it", uuid="a"), claude("assistant", tool_use("Bash", {"command": "ls"}), uuid="b")]
    copy = [line | {"sessionId": f"new-{number}"} for number, line in enumerate(lines)]
    assert records(*lines) == records(*copy) == ["a", "b"]


def test_times_in_fractions_of_a_second():
    """Python's `time.time()`, as mini-SWE-agent writes it."""
    extra = [{"timestamp": 1774958400.25}, {"timestamp": 1774958460.75}]
    messages = [{"role": "user", "content": "Fix it", "extra": each} for each in extra]
    document = {"trajectory_format": "mini-swe-agent-1.1", "messages": messages}
    reader = read(BytesIO(json.dumps(document).encode()))
    first, last = (event.at for event in reader)
    assert (first, last - first) == (datetime(2026, 3, 31, 12, 0, 0, 250_000, UTC), timedelta(seconds=60.5))
    assert reader.header.started_at == first


def history(at: str) -> list[dict]:
    thought = codex_item("reasoning", summary=[], encrypted_content="x" * 200)
    called = codex_item("function_call", name="exec_command", arguments='{"cmd":"git commit"}', call_id=CALL)
    answered = codex_item("function_call_output", call_id=CALL, output="Exit code: 0\nOutput:\n[main abc1234] x")
    said = codex_item("message", role="assistant", id=at, content=[{"type": "output_text", "text": "Done."}])
    asked = codex_item("message", role="user", content=[{"type": "input_text", "text": "Fix it"}])
    return [line | {"timestamp": at} for line in (asked, thought, called, answered, said, said | {"n": 1})]


def test_codex_records_with_rewritten_times_and_ids_are_the_same():
    original = records(codex_meta(id=PARENT), *history("2026-01-01T00:00:00Z"))
    assert [CALL, f"{CALL}:output"] == original[1:3]
    assert records(codex_meta(id=PARENT), *history("2026-02-02T00:00:00Z")) == original


def test_codex_sessions_that_begin_alike_have_records_of_their_own():
    asked = history("2026-01-01T00:00:00Z")[:1]
    assert not set(records(codex_meta(), *asked)) & set(records(codex_meta(id=PARENT), *asked))


@pytest.mark.parametrize("call_id", ["item_3", "call_1"])
def test_an_id_of_many_identifies_nothing(call_id: str):
    one, other = (
        records(
            codex_meta(id=session),
            codex_item("function_call", name="exec_command", arguments=f'{{"cmd":"{session}"}}', call_id=call_id),
        )
        for session in (THREAD, PARENT)
    )
    assert not set(one) & set(other)


def test_a_message_of_several_parts_is_one_turn():
    blocks = [{"type": "text", "text": text} for text in ("a", "b", "<system-reminder>c</system-reminder>")]
    events, _, _ = parse(
        jsonl(
            claude("user", blocks, uuid="a"), claude("user", "d", uuid="b"), claude("user", "e", uuid="c", isMeta=True)
        )
    )
    assert extract(events).user_turns == 2


def test_a_claude_subagents_log_names_its_parent():
    side = {"isSidechain": True, "agentId": "a0ad4f44468bdf20d"}
    _, header, _ = parse(jsonl(claude("user", "Look", uuid="a", **side), claude("assistant", "Done", uuid="b", **side)))
    assert (header.is_subagent, header.session_id) == (True, "a0ad4f44468bdf20d")
    assert header.parent_id == claude("user", "")["sessionId"]


@pytest.mark.parametrize(
    "fields",
    [
        {"source": {"subagent": "review"}, "parent_thread_id": PARENT},
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}},
        {"source": {"subagent": {"other": "guardian"}}, "forked_from_id": PARENT},
    ],
)
def test_a_codex_subagents_rollout_names_its_parent(fields: dict):
    _, header, _ = parse(jsonl(codex_meta(**fields)))
    assert (header.is_subagent, header.session_id, header.parent_id) == (True, THREAD, PARENT)


def test_a_fork_by_a_person_is_no_subagent():
    _, header, _ = parse(jsonl(codex_meta(forked_from_id=PARENT)))
    assert (header.is_subagent, header.parent_id) == (False, None)


@pytest.mark.parametrize(
    ("name", "arguments", "clarity"),
    [
        ("Bash", {"command": "ls"}, Clarity.UNDERSTOOD),
        ("Bash", {}, Clarity.UNREADABLE),
        ("Bash", {"__unparsedToolInput": {"raw": "{"}}, Clarity.UNREADABLE),
        ("BashOutput", {"bash_id": "1"}, Clarity.UNDERSTOOD),
        ("AskUserQuestion", {}, Clarity.UNDERSTOOD),
        ("mcp__github__merge_pull_request", {"pr": 1}, Clarity.OPAQUE),
        ("Deploy", {}, Clarity.OPAQUE),
        ("", {}, Clarity.UNREADABLE),
        ("Read", "a.py", Clarity.UNREADABLE),
    ],
)
def test_how_clear_a_claude_call_is(name: str, arguments: object, clarity: Clarity):
    events, _, _ = parse(jsonl(claude("user", "a"), claude("assistant", tool_use(name, arguments))))
    assert [call.clarity for call in only(events, ToolCall)] == [clarity]


@pytest.mark.parametrize(
    ("name", "arguments", "clarity"),
    [
        ("exec_command", '{"cmd":"ls"}', Clarity.UNDERSTOOD),
        ("exec_command", '{"cmd":', Clarity.UNREADABLE),
        ("exec_command", "{}", Clarity.UNREADABLE),
        ("write_stdin", '{"session_id":1,"chars":""}', Clarity.UNDERSTOOD),
        ("update_plan", "{}", Clarity.UNDERSTOOD),
        ("_create_pull_request", "{}", Clarity.OPAQUE),
        ("mcp__x__y", '{"a"', Clarity.UNREADABLE),
        ("apply_patch", '{"input":"no patch"}', Clarity.UNREADABLE),
    ],
)
def test_how_clear_a_codex_call_is(name: str, arguments: str, clarity: Clarity):
    events, _, _ = parse(jsonl(codex_meta(), codex_item("function_call", name=name, arguments=arguments, call_id="c")))
    assert [call.clarity for call in only(events, ToolCall)] == [clarity]


def test_reading_on_in_a_shell_is_no_shell_call_without_a_command():
    line = codex_item("function_call", name="write_stdin", arguments='{"session_id":1,"chars":""}', call_id="c")
    signals = extract(parse(jsonl(codex_meta(), line))[0])
    assert (signals.shell_calls, signals.bare_shell_calls, signals.is_blind) == (0, 0, False)


def test_shell_calls_without_commands_make_a_log_blind():
    events, _, _ = parse(jsonl(claude("user", "a"), claude("assistant", tool_use("Bash", {"script": "ls"}))))
    signals = extract(events)
    assert (signals.shell_calls, signals.bare_shell_calls, signals.unreadable_calls) == (1, 1, 1)
    assert signals.is_blind


def test_several_results_in_one_message_keep_their_own_text():
    persisted = "<persisted-output>saved</persisted-output>"
    content = [*tool_result(persisted, "a"), *tool_result(persisted, "b")]
    events, _, _ = parse(jsonl(claude("user", "x"), claude("user", content, toolUseResult={"stdout": "of one " * 20})))
    assert [result.text for result in only(events, ToolResult)] == [persisted, persisted]


def synthetic(text: str, **fields: object) -> dict:
    return claude("assistant", [{"type": "text", "text": text}], message={"model": "<synthetic>"}, **fields)


@pytest.mark.parametrize(
    ("text", "fields", "reason"),
    [
        ("You've hit your session limit · resets 3pm", {"error": "rate_limit", "apiErrorStatus": 429}, "quota"),
        ("Claude AI usage limit reached|1755000000", {}, "quota"),
        ('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}', {}, "overloaded"),
        ("API Error: Repeated 529 Overloaded errors", {}, "overloaded"),
        ("Login expired · Please run /login", {"error": "authentication_failed"}, "auth"),
        ("API Error: Request rejected (429)", {}, "rate_limit"),
        ("API Error: Connection error.", {}, "other"),
    ],
)
def test_claudes_own_word_of_an_api_error_is_one(text: str, fields: dict, reason: str):
    events, _, _ = parse(jsonl(claude("user", "a"), synthetic(text, isApiErrorMessage=True, **fields)))
    assert [error.reason for error in only(events, ApiError)] == [reason]


def test_an_api_error_told_twice_is_one():
    limit = {"type": "rate_limit_event", "uuid": "r", "session_id": "s", "rate_limit_info": {"status": "rejected"}}
    told = synthetic("You've hit your limit", isApiErrorMessage=True)
    result = {"type": "result", "subtype": "success", "is_error": True, "result": "You've hit your limit", "uuid": "z"}
    events, _, _ = parse(jsonl(claude("user", "a"), limit, told, result | {"session_id": "s"}))
    assert [error.reason for error in only(events, ApiError)] == ["quota"]


def test_what_the_model_writes_of_errors_is_no_api_error():
    said = claude("assistant", "API Error: 529 Overloaded", message={"model": "claude-opus-4-5"}, error="overloaded")
    assert [event.role for event in only(parse(jsonl(claude("user", "a"), said))[0], Message)][-1] is Role.ASSISTANT
    told = codex_item(
        "message", role="assistant", content=[{"type": "output_text", "text": "You've hit your usage limit"}]
    )
    assert only(parse(jsonl(codex_meta(), told))[0], ApiError) == []


@pytest.mark.parametrize(
    ("message", "info", "reason"),
    [
        ("You've hit your usage limit.", "usage_limit_exceeded", "quota"),
        ("stream disconnected", {"response_too_many_failed_attempts": {"http_status_code": 429}}, "rate_limit"),
        ("Selected model is at capacity", "server_overloaded", "overloaded"),
        ("unexpected status 401 Unauthorized", "unauthorized", "auth"),
        ("Something", None, "other"),
    ],
)
def test_codexs_error_events_are_api_errors(message: str, info: object, reason: str):
    for kind in ("error", "stream_error"):
        event = codex("event_msg", {"type": kind, "message": message, "codex_error_info": info})
        assert [error.reason for error in only(parse(jsonl(codex_meta(), event))[0], ApiError)] == [reason]


def test_each_failed_turn_of_codex_exec_is_an_error():
    failed = {"type": "turn.failed", "error": {"message": "stream disconnected"}}
    lines = [{"type": "thread.started", "thread_id": THREAD}, {"type": "turn.failed"}, failed, {"type": "turn.started"}]
    assert len(only(parse(jsonl(*lines, failed | {"n": 2}))[0], ApiError)) == 3
    passing = {"type": "error", "message": "stream disconnected"}
    lines = [lines[0], passing, {"type": "turn.completed"}, {"type": "turn.started"}, failed]
    assert len(only(parse(jsonl(*lines))[0], ApiError)) == 2, "of a turn that went on, and of one that failed"


def test_codex_exec_tells_a_failure_twice_and_it_is_one():
    said = {"message": "You've hit your usage limit."}
    lines = [
        {"type": "thread.started", "thread_id": THREAD},
        {"type": "error"} | said,
        {"type": "turn.failed", "error": said},
    ]
    assert [error.reason for error in only(parse(jsonl(*lines))[0], ApiError)] == ["quota"]
