"""OpenHands' actions and observations, in the forms of several versions."""

import json

import pytest

from grading.formats.events import ApiError, Interruption, Message, Role, ToolCall, ToolResult, Usage
from tests.formats.logs import background, jsonl, only, parse

pytestmark = pytest.mark.pure

AT = "2025-01-27T22:44:56"
TASK = {"id": 0, "timestamp": AT, "source": "user", "message": "", "action": "message", "args": {"content": "Fix it"}}


def action(number: int, kind: str, **args: object) -> dict:
    return {"id": number, "timestamp": AT, "source": "agent", "message": "", "action": kind, "args": args}


def observation(cause: int, kind: str, content: str, **extras: object) -> dict:
    fields = {"id": cause + 1, "timestamp": AT, "source": "agent", "message": "", "cause": cause}
    return fields | {"observation": kind, "content": content, "extras": extras}


def document(*events: dict) -> bytes:
    return json.dumps([TASK, *events], indent=1).encode()


@pytest.mark.parametrize(
    ("kind", "extras", "failed"),
    [
        ("run", {"metadata": {"exit_code": 0}}, False),
        ("run", {"metadata": {"exit_code": 2}}, True),
        ("run", {"metadata": {"exit_code": -1}}, None),
        ("error", {}, True),
        ("edit", {}, False),
        ("mcp", {}, None),
    ],
)
def test_end_of_a_call(kind: str, extras: dict, *, failed: bool | None):
    events, _, _ = parse(document(action(1, "run", command="make"), observation(1, kind, "out", **extras)))
    assert [(event.call_id, event.failed) for event in only(events, ToolResult)] == [("1", failed)]


@pytest.mark.parametrize(
    ("command", "kind"), [("create", "write"), ("view", "read"), ("str_replace", "edit"), ("", "edit")]
)
def test_editor_is_what_its_command_says(command: str, kind: str):
    events, _, _ = parse(document(action(1, "edit", command=command, path="/w/a.py")))
    assert [(event.kind, event.path) for event in only(events, ToolCall)] == [(kind, "/w/a.py")]


def test_usage_of_a_response_counts_once():
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "cache_read_input_tokens": 30}
    response = {"tool_call_metadata": {"model_response": {"id": "r1", "model": "m", "usage": usage}}}
    run = action(1, "run", command="ls") | response | {"llm_metrics": {"accumulated_cost": 0.25}}
    events, header, _ = parse(document(run, observation(1, "run", "a") | response))
    first, cost = only(events, Usage)
    assert (first.input_tokens, first.output_tokens, first.cache_read_tokens) == (70, 9, 30)
    assert (cost.cost_usd, cost.input_tokens) == (0.25, None)
    assert header.model == "m"


def test_state_of_the_agent():
    stopped = observation(1, "agent_state_changed", "", agent_state="stopped")
    failed = observation(2, "agent_state_changed", "", agent_state="error", reason="RateLimitError: slow down")
    data = document(stopped, failed)
    assert [event.reason for event in only(parse(data)[0], ApiError)] == ["rate_limit"]
    assert any(isinstance(event, Interruption) for event in background(data))


def test_pairs_of_the_first_versions_are_read():
    """An action and its observation are a pair, and the fields of an action stand beside each other."""
    history = [
        [{"action": "message", "content": "Fix it"}, {"observation": "null", "content": ""}],
        [
            {"action": "run", "command": "ls", "thought": "I look."},
            {"observation": "run", "content": "a", "exit_code": 0},
        ],
    ]
    line = {"instance_id": "i1", "history": history, "metrics": {"accumulated_cost": 0.5}}
    events, header, _ = parse(jsonl(line))
    assert [(event.role, event.text) for event in only(events, Message)] == [
        (Role.USER, "Fix it"),
        (Role.ASSISTANT, "I look."),
    ]
    (call,), (result,) = only(events, ToolCall), only(events, ToolResult)
    assert (call.command, result.call_id, result.exit_code) == ("ls", call.call_id, 0)
    assert only(events, Usage)[0].cost_usd == 0.5
    assert header.title == "i1"


def test_saved_trajectory_of_the_api_is_read():
    data = json.dumps({"trajectory": [TASK, action(1, "run", command="ls")]}).encode()
    assert [event.command for event in only(parse(data)[0], ToolCall)] == ["ls"]
