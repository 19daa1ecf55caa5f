"""Codex's code mode: each tool call in a script is a call of its own, and its success is the command's."""

import json

import pytest

from grading.formats.events import Clarity, ToolCall, ToolResult
from tests.formats.logs import codex, codex_item, codex_meta, jsonl, only, parse

pytestmark = pytest.mark.pure

DONE = "Script completed\nWall time 0.1 seconds\nOutput:\n"
PATCH = "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch"


def run(script: str, *items: str, status: str = DONE, between: tuple = ()) -> tuple[list[ToolCall], list[ToolResult]]:
    output = [{"type": "input_text", "text": text} for text in (status, *items)]
    called = codex_item("custom_tool_call", name="exec", input=script, call_id="call_1")
    answered = codex_item("custom_tool_call_output", call_id="call_1", output=output)
    events, _, _ = parse(jsonl(codex_meta(), called, *between, answered))
    return only(events, ToolCall), only(events, ToolResult)


def told(results: list[ToolResult]) -> list[tuple]:
    return [(result.call_id, result.text, result.failed, result.exit_code) for result in results]


def test_a_completed_script_is_no_successful_command():
    calls, results = run('const r = await tools.exec_command({cmd:"gh pr merge 1"}); text(r.output)', "not mergeable")
    assert [(call.name, call.kind, call.command) for call in calls] == [("exec_command", "shell", "gh pr merge 1")]
    assert told(results) == [("call_1", "not mergeable", None, None)]


@pytest.mark.parametrize("printed", ["text(JSON.stringify(r))", "text(r)", "text({code: 1, r})"])
def test_an_exit_code_in_what_the_harness_gave_back_is_known(printed: str):
    result = {"chunk_id": "a", "exit_code": 1, "output": "no"}
    item = json.dumps({"code": 1, "r": result} if "code" in printed else result)
    _, results = run(f'const r = await tools.exec_command({{cmd:"make"}}); {printed}', item)
    assert told(results) == [("call_1", "no", True, 1)]


def test_a_running_command_has_no_outcome_yet():
    _, results = run(
        'text(JSON.stringify(await tools.exec_command({cmd:"make"})))', '{"session_id":7,"output":"so far"}'
    )
    assert told(results) == [("call_1", "Process running with session ID 7\nOutput:\nso far", None, None)]


def test_calls_of_one_script_have_their_own_results():
    script = (
        "const rs = await Promise.all([tools.exec_command({cmd:'git push'}), tools.exec_command({cmd:'false'})]);\n"
        'rs.forEach((r, i) => { text("RESULT " + (i+1) + " exit=" + r.exit_code + "\\n" + r.output) });'
    )
    calls, results = run(script, "RESULT 1 exit=0\nmain -> main", "RESULT 2 exit=1\n")
    assert [(call.call_id, call.command) for call in calls] == [("call_1#1", "git push"), ("call_1#2", "false")]
    assert told(results) == [("call_1#1", "main -> main", False, 0), ("call_1#2", "", True, 1)]


def test_results_in_one_list_are_told_apart():
    script = "text(JSON.stringify(await Promise.all(['a', 'b'].map(cmd => tools.exec_command({cmd})))))"
    _, results = run(script, '[{"exit_code":0,"output":"1"},{"exit_code":2,"output":"2"}]')
    assert told(results) == [("call_1#1", "1", False, 0), ("call_1#2", "2", True, 2)]


def test_outputs_that_cannot_be_told_apart_are_one_calls():
    called = "const rs = await Promise.all(['a', 'b'].map(cmd => tools.exec_command({cmd})));"
    script = f"{called} text(rs.map(r => r.output).join('\\n'))"
    calls, results = run(script, "1\n2")
    assert [(call.name, call.kind, call.command) for call in calls] == [("exec", "shell", "a\nb")]
    assert told(results) == [("call_1", "1\n2", None, None)]


@pytest.mark.parametrize(
    ("printed", "item", "failed"),
    [
        ('r.output + "\\nexit=" + r.exit_code', "exit=0\nexit=1", True),
        ('"exit=" + r.exit_code + "\\n" + r.output', "exit=1\nexit=0", True),
        ("r.output + r.exit_code", "took 10", None),
        ('r.output + "\\nexit=" + r.exit_code', "exit=0\n[truncated]", None),
        ('"exit_code: 0"', "exit_code: 0", None),
        ("JSON.stringify({exit_code: 0})", '{"exit_code":0}', None),
    ],
)
def test_only_the_harness_says_how_a_command_ended(printed: str, item: str, failed: object):
    """What a command prints, or the script makes up, is no exit code."""
    _, results = run(f'const r = await tools.exec_command({{cmd:"make"}}); text({printed})', item)
    assert [result.failed for result in results] == [failed]


def test_a_changed_result_says_nothing():
    script = 'const r = await tools.exec_command({cmd:"make"}); r.exit_code = 0; text(JSON.stringify(r))'
    assert run(script, '{"exit_code":0,"output":""}')[1][0].failed is None


def test_a_failed_script_failed():
    _, results = run(
        'text((await tools.exec_command({cmd:"a"})).output)', "Script error:\nno", status="Script failed\nOutput:\n"
    )
    assert told(results) == [("call_1", "Script failed\nScript error:\nno", True, None)]


def test_a_servers_tool_is_called_by_its_name():
    script = 'const r = await tools.mcp__github__create_pull_request({title: "x", draft: false}); text(r)'
    calls, results = run(script, '{"content":[{"type":"text","text":"https://x/pull/1"}],"isError":false}')
    (call,) = calls
    assert (call.name, call.arguments, call.clarity) == (
        "mcp__github__create_pull_request",
        {"title": "x", "draft": False},
        Clarity.OPAQUE,
    )
    assert told(results) == [("call_1", "https://x/pull/1", False, None)]


def test_a_patch_in_a_script_succeeded_where_the_harness_recorded_it():
    script = f"const patch = {json.dumps(PATCH)};\nconst r = await tools.apply_patch(patch);\ntext(r);"
    end = codex("event_msg", {"type": "patch_apply_end", "call_id": "exec-4af4", "success": True, "changes": {}})
    calls, results = run(script, "{}", between=(end,))
    assert [(call.kind, call.path, call.arguments["patch"]) for call in calls] == [("edit", "a.py", PATCH)]
    assert [result.failed for result in results] == [False]
    assert [result.failed for result in run(script, "{}")[1]] == [None]


@pytest.mark.parametrize(
    "script", ["const r = await tools.exec_command({cmd: ", "let run = tools.exec_command; run = run({cmd:'c'})"]
)
def test_a_script_that_cannot_be_read_is_unreadable(script: str):
    (call,), _ = run(script)
    assert (call.kind, call.command, call.clarity) == ("shell", "", Clarity.UNREADABLE)


def test_a_command_that_is_made_up_as_it_goes_is_unreadable():
    (call,), _ = run("await tools.exec_command({cmd: 'rm ' + load('x')})")
    assert (call.command, call.clarity) == ("", Clarity.UNREADABLE)


def test_a_script_without_calls_does_nothing():
    (call,), _ = run("text(ALL_TOOLS.map(t => t.name).join())", "a,b")
    assert (call.kind, call.clarity) == ("other", Clarity.UNDERSTOOD)


def test_a_script_read_on_by_wait_says_its_outcome_there():
    script = 'text(JSON.stringify(await tools.exec_command({cmd:"make"})))'
    running = [{"type": "input_text", "text": "Script running with cell ID 5\nWall time 1.0 seconds\nOutput:\n"}]
    done = [{"type": "input_text", "text": text} for text in (DONE, '{"exit_code":0,"output":"ok"}')]
    events, _, _ = parse(
        jsonl(
            codex_meta(),
            codex_item("custom_tool_call", name="exec", input=script, call_id="a"),
            codex_item("custom_tool_call_output", call_id="a", output=running),
            codex_item("function_call", name="wait", arguments='{"cell_id":"5"}', call_id="b"),
            codex_item("function_call_output", call_id="b", output=done),
        )
    )
    assert told(only(events, ToolResult)) == [
        ("a", "Script running with cell ID 5", None, None),
        ("b", "ok", False, 0),
    ]


def test_the_harness_says_how_a_servers_tool_ended():
    called = codex_item("function_call", name="_create_pull_request", arguments="{}", call_id="c")
    answered = codex_item("function_call_output", call_id="c", output='Wall time: 1 seconds\nOutput:\n{"error":"422"}')
    for outcome, failed in (({"Ok": {"isError": True}}, True), ({"Ok": {"content": []}}, False), ({"Err": "no"}, True)):
        end = codex("event_msg", {"type": "mcp_tool_call_end", "call_id": "c", "result": outcome})
        events, _, _ = parse(jsonl(codex_meta(), called, end, answered))
        assert [result.failed for result in only(events, ToolResult)] == [failed]
