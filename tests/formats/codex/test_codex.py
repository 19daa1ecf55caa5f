"""Codex's rollouts, its legacy logs and `codex exec --json` as events."""

import json

import pytest

from grading.formats.events import ApiError, Boundary, Message, Role, ToolCall, ToolResult, Usage
from tests.formats.logs import FIXTURES, THREAD, codex, codex_item, codex_meta, jsonl, only, parse, token_count

pytestmark = pytest.mark.pure

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch"
PARENT = "019f5129-58cd-7e23-bb57-2fac45120e7f"


def events_of(*records: dict) -> list:
    return parse(jsonl(codex_meta(), *records))[0]


def call_of(kind: str, **fields: object) -> ToolCall:
    (call,) = only(events_of(codex_item(kind, call_id="c1", **fields)), ToolCall)
    return call


def shell(command: object) -> ToolCall:
    return call_of("function_call", name="shell", arguments=json.dumps({"command": command}))


def result_of(output: object, kind: str = "function_call_output") -> ToolResult:
    (result,) = only(events_of(codex_item(kind, call_id="c1", output=output)), ToolResult)
    return result


def test_real_session_reads_whole():
    """A review thread, kept under its parent's file name; its own id is the first `session_meta`'s."""
    events, header, report = parse((FIXTURES / "codex-019ed628.jsonl").read_bytes())
    assert [call.kind for call in only(events, ToolCall)] == ["shell"] * 4
    assert [result.exit_code for result in only(events, ToolResult)] == [0, 0, 0, 0]
    usages = only(events, Usage)
    assert sum(usage.output_tokens for usage in usages) == 1162
    assert sum(usage.input_tokens + usage.cache_read_tokens for usage in usages) == 57112
    assert (header.session_id, header.model, header.harness_version) == (
        "019ed628-d563-7e40-bbb1-93a6a302d688",
        "gpt-5.5",
        "0.139.0",
    )
    assert header.is_subagent
    assert report.coverage == 1.0


def test_patch_as_custom_tool_call_is_an_edit():
    """I08: edits that arrive as a custom tool call were not seen for weeks."""
    call = call_of("custom_tool_call", name="apply_patch", input=PATCH)
    assert (call.kind, call.path, call.arguments["paths"]) == ("edit", "src/a.py", ["src/a.py", "b.py"])
    assert call.arguments["patch"] == PATCH


@pytest.mark.parametrize(
    "command",
    [
        ["apply_patch", PATCH],
        ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"],
        f"cd /w && apply_patch <<'EOF'\n{PATCH}\nEOF",
    ],
)
def test_patch_through_the_shell_is_an_edit(command: object):
    call = shell(command)
    assert (call.kind, call.path, call.arguments["patch"]) == ("edit", "src/a.py", PATCH)


def test_talking_of_a_patch_is_no_edit():
    assert shell(f"echo 'apply_patch {PATCH}'").kind == "shell"


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "command"),
    [
        ("exec_command", {"cmd": "git push"}, "shell", "git push"),
        ("shell", {"command": ["bash", "-lc", "git status"]}, "shell", "git status"),
        ("shell", {"command": ["/bin/sh", "-c", "git add $1", "sh", "a"]}, "shell", "git add $1"),
        (
            "shell",
            {"command": ["git", "-c", "user.name=a", "commit", "-m", "x"]},
            "shell",
            "git -c user.name=a commit -m x",
        ),
        ("shell", {"command": ["git", "commit", "-m", "a b"]}, "shell", "git commit -m 'a b'"),
        ("shell_command", {"command": "ls"}, "shell", "ls"),
        ("write_stdin", {"session_id": 1, "chars": "y\n"}, "shell", "y\n"),
        ("update_plan", {"plan": []}, "plan", ""),
        ("spawn_agent", {"message": "m"}, "agent", ""),
        ("view_image", {"path": "/a.png"}, "read", ""),
        ("_create_pull_request", {"title": "t"}, "other", ""),
    ],
)
def test_tool_kinds(name: str, arguments: dict, kind: str, command: str):
    call = call_of("function_call", name=name, arguments=json.dumps(arguments))
    assert (call.kind, call.command, call.arguments) == (kind, command, arguments)


def test_web_search_is_a_call():
    assert call_of("web_search_call", action={"type": "search", "query": "q"}).kind == "web"


def test_commands_inside_a_script_count():
    script = 'const r = await tools.exec_command({"cmd":"git commit -m x","workdir":"/w"});\ntext(r.output);\n'
    call = call_of("custom_tool_call", name="exec", input=script)
    assert (call.kind, call.command) == ("shell", "git commit -m x")


def test_arguments_that_are_no_json_are_kept():
    call = call_of("function_call", name="exec_command", arguments='{"cmd": ')
    assert (call.kind, call.arguments) == ("shell", {"input": '{"cmd": '})


@pytest.mark.parametrize(
    ("output", "failed", "exit_code"),
    [
        ("Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nok", False, 0),
        ("Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nno", True, 2),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nno", True, 1),
        ("Wall time: 1 seconds\nProcess running with session ID 5\nOutput:\n", None, None),
        ('{"output":"done","metadata":{"exit_code":0,"duration_seconds":0.0}}', False, 0),
        ('{"output":"no","metadata":{"exit_code":7}}', True, 7),
        ("apply_patch verification failed: no such lines", True, None),
        ([{"type": "input_text", "text": "Script completed\nWall time 0.1 seconds\nOutput:\n"}], None, None),
        ({"content": "done", "success": True}, False, None),
        ("Plan updated", False, None),
        ("Wall time: 1 seconds\nOutput:\nProcess exited with code 0", None, None),
        ("a line\nProcess exited with code 0", None, None),
        ("x" * 600 + "\nExit code: 1\nOutput:\n", None, None),
    ],
)
def test_outcome_is_read_from_the_header_only(output: object, failed: object, exit_code: object):
    """A program that prints an exit code has not exited with it."""
    result = result_of(output)
    assert (result.failed, result.exit_code) == (failed, exit_code)


@pytest.mark.parametrize("offset", [1500, 7900])
def test_commit_seen_by_a_later_write_stdin_belongs_to_that_call(offset: int):
    """I09."""
    told = "Process exited with code 0\nOutput:\n" + "x" * offset + "\n[main abc1234] Fix"
    first = codex_item("function_call", name="exec_command", arguments='{"cmd":"git commit"}', call_id="c1")
    running = codex_item("function_call_output", call_id="c1", output="Process running with session ID 1\nOutput:\n")
    second = codex_item("function_call", name="write_stdin", arguments='{"session_id":1,"chars":""}', call_id="c2")
    events = events_of(first, running, second, codex_item("function_call_output", call_id="c2", output=told))
    assert [(result.call_id, result.text) for result in only(events, ToolResult)][1] == ("c2", told)


def test_a_conversation_logged_twice_is_read_once():
    content = [{"type": "output_text", "text": "hi"}]
    events = events_of(
        codex("event_msg", {"type": "user_message", "message": "hello"}),
        codex_item("message", role="user", content=[{"type": "input_text", "text": "hello"}]),
        codex("event_msg", {"type": "agent_message", "message": "hi"}),
        codex_item("message", role="assistant", content=content),
        codex("event_msg", {"type": "exec_command_end", "call_id": "c", "exit_code": 0}),
    )
    assert [(event.role, event.text) for event in events] == [(Role.USER, "hello"), (Role.ASSISTANT, "hi")]


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("developer", "<permissions instructions>"),
        ("user", "<environment_context>\n  <cwd>/w</cwd>"),
        ("user", "# AGENTS.md instructions for /w"),
        ("user", "<turn_aborted>"),
        ("user", '<subagent_notification>\n{"agent_path":"x"}'),
    ],
)
def test_injected_text_is_scaffold(role: str, text: str):
    events = events_of(codex_item("message", role=role, content=[{"type": "input_text", "text": text}]))
    assert [event.role for event in events] == [Role.SCAFFOLD]


def test_cached_tokens_are_named_and_counted_apart():
    """I22: `cached_input_tokens` was dropped and the harness looked expensive."""
    turn = codex("turn_context", {"model": "gpt-5.5"})
    usages = only(events_of(turn, token_count(100, 60, 10), token_count(100, 60, 10), token_count(250, 160, 25)), Usage)
    seen = [(usage.input_tokens, usage.cache_read_tokens, usage.output_tokens, usage.model) for usage in usages]
    assert seen == [(40, 60, 10, "gpt-5.5"), (50, 100, 15, "gpt-5.5")]


def test_a_total_that_falls_was_started_anew():
    usages = only(events_of(token_count(100, 0, 10), token_count(30, 0, 4)), Usage)
    assert [usage.output_tokens for usage in usages] == [10, 4]


def turn(identity: str) -> dict:
    return codex("event_msg", {"type": "task_started", "turn_id": identity})


def test_history_copied_into_a_fork_is_left_out():
    """A forked thread's log repeats its parent's work, tokens included; a commit belongs to one session."""
    fork = {"forked_from_id": PARENT, "source": {"subagent": {"thread_spawn": {}}}}
    copied = codex_item("function_call", name="exec_command", arguments='{"cmd":"git commit"}', call_id="p")
    own = codex_item("function_call", name="exec_command", arguments='{"cmd":"git status"}', call_id="o")
    records = [
        codex_meta(**fork),
        codex_meta(id=PARENT),
        turn("019f5129-5a3c-76e1-b796-fa7d9d963b83"),
        copied,
        token_count(1000, 900, 100),
        turn("019f512a-5265-7782-8aa4-653da37f52ab"),
        own,
        token_count(1200, 950, 130),
    ]
    events, header, report = parse(jsonl(*records))
    assert [call.command for call in only(events, ToolCall)] == ["git status"]
    assert [(usage.input_tokens, usage.output_tokens) for usage in only(events, Usage)] == [(150, 30)]
    assert (header.session_id, header.is_subagent) == (THREAD, True)
    assert report.problems == ("a line copied from the thread this one was forked from, left out (3 times)",)
    assert [event.number for event in events] == [1, 2]


def test_session_meta_repeated_is_one_session():
    events, header, _ = parse(jsonl(*[codex_meta(n=n) for n in range(8)], codex_item("reasoning", summary=[])))
    assert (events, header.session_id) == ([], THREAD)


def test_lines_under_another_sessions_id_are_left_out_and_told():
    mine, theirs, mine_again = (
        codex_item("message", role="assistant", content=[{"type": "output_text", "text": text}])
        for text in ("mine", "theirs", "mine again")
    )
    records = [codex_meta(), mine, codex_meta(id=PARENT), theirs, codex_meta(n=2), mine_again]
    events, header, report = parse(jsonl(*records))
    assert [event.text for event in only(events, Message)] == ["mine", "mine again"]
    assert header.session_id == THREAD
    assert report.problems == ("a line that stands under another session's id, left out",)


@pytest.mark.parametrize("source", [{"subagent": "review"}, {"subagent": {"other": "guardian"}}])
def test_subagents_rollout_is_known(source: dict):
    assert parse(jsonl(codex_meta(source=source)))[1].is_subagent


def test_compaction_is_a_boundary_and_not_its_history():
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "old"}]}]
    events = events_of(codex("compacted", {"message": "so far …", "replacement_history": history}))
    assert [(type(event), event.number) for event in events] == [(Boundary, 1), (Message, 2)]
    assert events[1].role is Role.SCAFFOLD


def test_error_event_is_an_api_error():
    error = {"type": "error", "message": "You've hit your usage limit.", "codex_error_info": "usage_limit_exceeded"}
    assert [(type(event), event.reason) for event in events_of(codex("event_msg", error))] == [(ApiError, "quota")]


def test_unknown_records_are_not_recognised():
    _, _, report = parse(jsonl(codex_meta(), codex_item("new_item"), codex("event_msg", {"type": "new_event"})))
    assert (report.recognised, report.lines) == (1, 3)
    assert report.problems == (
        "unknown record type 'response_item/new_item'",
        "unknown record type 'event_msg/new_event'",
    )


def test_legacy_log_reads():
    records = [
        {"id": THREAD, "timestamp": "2025-06-01T00:00:00Z", "instructions": None, "git": {"branch": "main"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": '{"output":"a","metadata":{"exit_code":0}}'},
    ]
    events, header, report = parse(jsonl(*records))
    assert [type(event) for event in events] == [Message, ToolCall, ToolResult]
    assert (header.session_id, header.branch, events[2].exit_code, report.coverage) == (THREAD, "main", 0, 1.0)


def test_exec_json_reads():
    command = {
        "id": "i1",
        "type": "command_execution",
        "command": "bash -lc ls",
        "aggregated_output": "a",
        "exit_code": 1,
    }
    change = {"id": "i2", "type": "file_change", "changes": [{"path": "a.py", "kind": "update"}], "status": "completed"}
    records = [
        {"type": "thread.started", "thread_id": THREAD},
        {"type": "turn.started"},
        {"type": "item.started", "item": command | {"exit_code": None}},
        {"type": "item.completed", "item": command},
        {"type": "item.completed", "item": change},
        {"type": "item.completed", "item": {"id": "i3", "type": "agent_message", "text": "done"}},
        {"type": "turn.completed", "usage": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 3}},
    ]
    events, header, report = parse(jsonl(*records))
    assert [type(event) for event in events] == [ToolCall, ToolResult, ToolCall, ToolResult, Message, Usage]
    assert (events[1].failed, events[1].exit_code, events[2].kind, events[2].path) == (True, 1, "edit", "a.py")
    assert (events[5].input_tokens, events[5].cache_read_tokens) == (6, 4)
    assert (header.session_id, report.coverage) == (THREAD, 1.0)


def test_exec_json_failure_is_an_api_error():
    failed = {"type": "turn.failed", "error": {"message": "exceeded retry limit, last status: 429 Too Many Requests"}}
    events, _, _ = parse(jsonl({"type": "thread.started", "thread_id": THREAD}, failed))
    assert [event.reason for event in events] == ["rate_limit"]
