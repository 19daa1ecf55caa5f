"""What logs show of settings, instructions and interruptions: events beside the conversation."""

import hashlib

import pytest

from grading.formats.events import Interruption, LoadedInstructions, Setting
from tests.formats.logs import background, claude, codex, codex_item, codex_meta, jsonl, only

pytestmark = pytest.mark.pure


def settings(data: bytes) -> list[tuple[str, str]]:
    return [(event.name, event.value) for event in only(background(data), Setting)]


def instructions(data: bytes) -> list[tuple[str, int, str]]:
    return [(event.name, event.size, event.sha256) for event in only(background(data), LoadedInstructions)]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_claude_code_writes_them_on_its_lines():
    """Version, mode, effort, folder and skill are on the lines themselves; a change is noted, a repeat is not."""
    lines = [
        claude("user", "Fix it", version="2.1.0", cwd="/w", permissionMode="plan"),
        claude("assistant", "On it", version="2.1.0", cwd="/w", effort="high", attributionSkill="review"),
        claude("user", "Go on", version="2.1.1", permissionMode="default"),
    ]
    assert settings(jsonl(*lines)) == [
        ("harness_version", "2.1.0"),
        ("folder", "/w"),
        ("permission_mode", "plan"),
        ("reasoning_effort", "high"),
        ("skill", "review"),
        ("harness_version", "2.1.1"),
        ("permission_mode", "default"),
    ]


def test_claude_code_logs_instructions_that_were_loaded_late():
    """A rule that was loaded for a file is in the log with its text as on disk."""
    content = {"path": "/w/.claude/rules/go.md", "content": "Rule", "rawContent": "---\n---\nRule"}
    attachment = {"type": "nested_memory", "displayPath": ".claude/rules/go.md", "content": content}
    line = claude("user", "x") | {"type": "attachment", "attachment": attachment}
    expected = (".claude/rules/go.md", 12, sha256("---\n---\nRule"))
    assert instructions(jsonl(claude("user", "Fix it"), line)) == [expected]


def turn(**fields) -> dict:
    return codex("turn_context", {"model": "gpt-5", "turn_id": "t", **fields})


def test_codex_writes_them_with_each_turn():
    """The version is in the session's record; effort and permissions come with each turn."""
    data = jsonl(
        codex_meta(cli_version="0.144.0", git={"repository_url": "git@forge.example:ada/engine.git"}),
        turn(effort="high", approval_policy="never", sandbox_policy={"type": "read-only"}),
        turn(approval_policy="on-request", collaboration_mode={"settings": {"reasoning_effort": "low"}}),
    )
    assert settings(data) == [
        ("harness_version", "0.144.0"),
        ("folder", "/w"),
        ("repository", "git@forge.example:ada/engine.git"),
        ("model", "gpt-5"),
        ("reasoning_effort", "high"),
        ("permission_mode", "never, read-only"),
        ("reasoning_effort", "low"),
        ("permission_mode", "on-request"),
    ]


def test_codex_logs_its_instructions_and_interruptions():
    """AGENTS.md comes as a message or with a turn; a turn that a person stopped is an interruption."""
    text = "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>"
    data = jsonl(
        codex_meta(),
        codex_item("message", role="user", content=[{"type": "input_text", "text": text}]),
        turn(user_instructions="Be brief."),
        codex("event_msg", {"type": "turn_aborted", "reason": "interrupted"}),
        codex("event_msg", {"type": "turn_aborted", "reason": "replaced"}),
    )
    assert instructions(data) == [("AGENTS.md", 8, sha256("Be kind.")), ("AGENTS.md", 9, sha256("Be brief."))]
    assert len(only(background(data), Interruption)) == 1


@pytest.mark.parametrize("value", [None, 7, [], {}, {"type": 3}, "", True, ["x"], {"a": {"b": []}}])
def test_wrong_types_are_no_settings(value):
    """A value of another type is left out, whatever it is."""
    lines = [
        claude("assistant", "x", version=value, cwd=value, effort=value, permissionMode=value, attributionSkill=value)
    ]
    lines.append(
        claude("user", "y") | {"type": "attachment", "attachment": {"type": "nested_memory", "content": value}}
    )
    assert settings(jsonl(*lines)) == []
    data = jsonl(
        codex_meta(cwd=value, cli_version=value, git=value), turn(effort=value, model=value, sandbox_policy=value)
    )
    assert settings(data) == []


def test_text_that_no_database_takes_is_replaced():
    """NUL and half a surrogate pair in a setting arrive as replacement characters."""
    data = jsonl(claude("user", "Fix it", version="2.1\u0000\ud800"))
    assert settings(data) == [("harness_version", "2.1��")]
