"""Gemini CLI's chats: messages that are written again, and how calls end."""

import pytest

from grading.formats.events import ApiError, Interruption, Message, Role, ToolCall, ToolResult, Usage
from tests.formats.logs import AT, background, jsonl, only, parse

pytestmark = pytest.mark.pure

START = {"sessionId": "s1", "projectHash": "p", "startTime": AT, "kind": "main"}


def message(kind: str, content: object, message_id: str, **fields: object) -> dict:
    return {"id": message_id, "timestamp": AT, "type": kind, "content": content} | fields


def call(call_id: str, status: str, output: str = "") -> dict:
    response = {"functionResponse": {"id": call_id, "name": "run_shell_command", "response": {"output": output}}}
    return {
        "id": call_id,
        "name": "run_shell_command",
        "args": {"command": "make"},
        "status": status,
        "result": [response] if output else [],
    }


def test_last_form_of_a_message_counts():
    """A message is written when it comes, and again when each of its calls ends."""
    tokens = {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "total": 115}
    log = jsonl(
        START,
        message("user", "Build it", "m1"),
        message("gemini", "I will.", "m2", toolCalls=[call("c1", "executing")]),
        message("gemini", "I will.", "m2", toolCalls=[call("c1", "success", "ok")], tokens=tokens, model="g"),
        {"$set": {"lastUpdated": AT, "summary": "A build"}},
        message("gemini", "Done.", "m3", model="g"),
    )
    events, header, report = parse(log)
    assert [(event.role, event.text) for event in only(events, Message)] == [
        (Role.USER, "Build it"),
        (Role.ASSISTANT, "I will."),
        (Role.ASSISTANT, "Done."),
    ]
    assert [event.command for event in only(events, ToolCall)] == ["make"]
    assert [(event.failed, event.text) for event in only(events, ToolResult)] == [(False, "ok")]
    (usage,) = only(events, Usage)
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (60, 15, 40)
    assert (header.session_id, header.title, header.model) == ("s1", "A build", "g")
    assert report.coverage == 1


@pytest.mark.parametrize(
    ("status", "output", "failed", "exit_code"),
    [
        ("success", "Output: x\nExit Code: 0\nSignal: 0", False, 0),
        ("success", "Output: x\nExit Code: 2\nSignal: 0", True, 2),
        ("success", "x", False, None),
        ("error", "no such file", True, None),
    ],
)
def test_end_of_a_call(status: str, output: str, *, failed: bool, exit_code: int | None):
    events, _, _ = parse(jsonl(START, message("gemini", "", "m1", toolCalls=[call("c1", status, output)])))
    assert [(event.failed, event.exit_code) for event in only(events, ToolResult)] == [(failed, exit_code)]


def test_cancelled_call_has_no_result_and_is_an_interruption():
    log = jsonl(START, message("gemini", "", "m1", toolCalls=[call("c1", "cancelled", "cancelled by the user")]))
    assert only(parse(log)[0], ToolResult) == []
    assert [type(event) for event in background(log)] == [Interruption]


def test_error_is_a_failed_model_call():
    (error,) = parse(jsonl(START, message("error", "429 quota exceeded", "m1")))[0]
    assert isinstance(error, ApiError)
    assert error.reason == "quota"
