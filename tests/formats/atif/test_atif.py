"""ATIF trajectories: read for their facts, and written from the log of any harness."""

import json
from io import BytesIO

import pytest
from django.core.management import CommandError, call_command

from grading.formats import read
from grading.formats.atif.export import to_trajectory
from grading.formats.events import Message, ToolCall, ToolResult, Usage
from tests.casts import logs
from tests.formats.logs import FIXTURES, only
from tests.transcript import sum_tokens

STEPS = [
    {"step_id": 1, "timestamp": "2026-01-01T00:00:00Z", "source": "user", "message": "Fix it"},
    {
        "step_id": 2,
        "timestamp": "2026-01-01T00:00:09Z",
        "source": "agent",
        "message": "I will.",
        "reasoning_content": "Hm.",
        "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "make"}}],
        "observation": {"results": [{"source_call_id": "c1", "content": "ok"}]},
        "metrics": {"prompt_tokens": 100, "completion_tokens": 9, "cached_tokens": 40, "cost_usd": 0.5},
    },
]
AGENT = {"name": "terminus-2", "version": "2.0", "model_name": "m"}


@pytest.mark.pure
@pytest.mark.parametrize("version", ["1.4", "1.6", "1.8"])
def test_trajectory_is_read(version: str):
    data = {"schema_version": f"ATIF-v{version}", "session_id": "s", "agent": AGENT, "steps": STEPS}
    reader = read(BytesIO(json.dumps(data).encode()))
    events = list(reader)
    assert [(event.text, event.thinking) for event in only(events, Message)] == [
        ("Fix it", False),
        ("Hm.", True),
        ("I will.", False),
    ]
    assert [event.command for event in only(events, ToolCall)] == ["make"]
    assert [event.text for event in only(events, ToolResult)] == ["ok"]
    (usage,) = only(events, Usage)
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens, usage.cost_usd) == (60, 40, 9, 0.5)
    assert (reader.header.session_id, reader.header.model, reader.header.harness_version) == (
        "s",
        "m",
        "terminus-2 2.0",
    )


@pytest.mark.pure
@pytest.mark.parametrize("name", ["claude-code-1b3e6441.jsonl", "codex-019ed628.jsonl", "gptme-replay-08.jsonl"])
def test_export_has_the_same_calls_results_and_tokens(name: str):
    with (FIXTURES / name).open("rb") as stream:
        events = [event for event in read(stream, name) if not event.sidechain]
    trajectory = to_trajectory(iter(events), session_id="s", harness="h", version="1", model="m")
    exported = list(read(BytesIO(json.dumps(trajectory).encode())))
    for kind in (ToolCall, ToolResult):
        assert sorted(event.call_id for event in only(exported, kind)) == sorted(
            event.call_id for event in only(events, kind)
        )
    before, after = sum_tokens(events), sum_tokens(exported)
    assert [count or 0 for count in after[1:3]] == [count or 0 for count in before[1:3]]
    assert [step["step_id"] for step in trajectory["steps"]] == list(range(1, len(trajectory["steps"]) + 1))


@pytest.mark.django_db
def test_session_is_exported_without_its_secrets(site, tmp_path):
    key = "ghp_" + "Ab1" * 12
    site.upload("s1", logs.claude("s1", ("echo done", f"token {key}"), logs.COMMIT))
    output = tmp_path / "trajectory.json"
    call_command("export_trajectory", "bob", "s1", output=output)
    text = output.read_text()
    assert key not in text
    trajectory = json.loads(text)
    assert (trajectory["schema_version"], trajectory["agent"]["name"]) == ("ATIF-v1.7", "claude-code")
    commands = [call["arguments"]["command"] for step in trajectory["steps"] for call in step.get("tool_calls", [])]
    assert commands == ["echo done", logs.COMMIT[0]]


@pytest.mark.django_db
def test_unknown_session_and_session_without_a_log_say_so(site):
    with pytest.raises(CommandError, match="expected the id of one of bob's sessions; got 's9'"):
        call_command("export_trajectory", "bob", "s9")
    site.upload("s2", journal="Fixed it.")
    with pytest.raises(CommandError, match="no log that could be used"):
        call_command("export_trajectory", "bob", "s2")
