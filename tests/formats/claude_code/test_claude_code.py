"""Claude Code's session logs and stream-json as events."""

import pytest

from grading.formats.events import ApiError, Boundary, Message, PullRequestLink, Role, ToolCall, ToolResult, Usage
from tests.formats.logs import AT, FIXTURES, SESSION, claude, jsonl, only, parse, tool_result, tool_use

pytestmark = pytest.mark.pure


def one(record: dict, kind: type):
    (event,) = only(parse(jsonl(record))[0], kind)
    return event


def test_real_session_reads_whole():
    events, header, report = parse((FIXTURES / "claude-code-hello-world.jsonl").read_bytes())
    assert [(call.name, call.kind) for call in only(events, ToolCall)] == [("Write", "write"), ("Bash", "shell")]
    assert [result.failed for result in only(events, ToolResult)] == [False, False]
    assert header.model == "claude-opus-4-5-20251101"
    assert (header.harness, header.harness_version, header.is_subagent) == ("claude-code", "2.1.14", False)
    assert report.coverage == 1.0
    assert [event.number for event in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "command", "path"),
    [
        ("Bash", {"command": "git push"}, "shell", "git push", ""),
        ("PowerShell", {"command": "ls"}, "shell", "ls", ""),
        ("Write", {"file_path": "/a", "content": "x"}, "write", "", "/a"),
        ("MultiEdit", {"file_path": "/a"}, "edit", "", "/a"),
        ("NotebookEdit", {"notebook_path": "/n"}, "edit", "", "/n"),
        ("Read", {"file_path": "/a"}, "read", "", "/a"),
        ("Grep", {"pattern": "command"}, "search", "", ""),
        ("WebFetch", {"url": "u"}, "web", "", ""),
        ("Task", {"prompt": "p"}, "agent", "", ""),
        ("Agent", {"prompt": "p"}, "agent", "", ""),
        ("TodoWrite", {}, "plan", "", ""),
        ("mcp__x__run", {"command": "rm"}, "other", "", ""),
    ],
)
def test_tool_kinds(name: str, arguments: dict, kind: str, command: str, path: str):
    call = one(claude("assistant", tool_use(name, arguments)), ToolCall)
    assert (call.kind, call.command, call.path, call.arguments) == (kind, command, path, arguments)


def test_failed_result_has_its_exit_code():
    result = one(claude("user", tool_result("Exit code 128\nfatal: not a repository", is_error=True)), ToolResult)
    assert (result.failed, result.exit_code, result.call_id) == (True, 128, "t1")


def test_success_cannot_print_itself_an_exit_code():
    result = one(claude("user", tool_result("Exit code 1")), ToolResult)
    assert (result.failed, result.exit_code) == (False, None)


@pytest.mark.parametrize("offset", [1500, 7900, 200_000])
def test_whole_result_is_kept(offset: int):
    """I09, a commit far into verbose output, or under the id of another call: impossible. The whole result is read,
    whatever call it answers.
    """
    told = "x" * offset + "\n[main abc1234] Fix"
    assert one(claude("user", tool_result(told)), ToolResult).text == told


def test_result_of_blocks_is_joined_and_images_are_named():
    content = [
        {"type": "text", "text": "a"},
        {"type": "image", "source": {"data": "A" * 9000}},
        {"type": "text", "text": "b"},
    ]
    assert one(claude("user", tool_result(content)), ToolResult).text == "a\n[image]\nb"


def test_output_saved_elsewhere_is_taken_from_beside():
    record = claude(
        "user", tool_result("<persisted-output>\nsaved to /f"), toolUseResult={"stdout": "y" * 100, "stderr": ""}
    )
    assert one(record, ToolResult).text == "y" * 100


def test_one_response_over_several_lines_is_counted_once_with_its_largest_numbers():
    def line(n: int, answered: int) -> dict:
        usage = {
            "input_tokens": 5,
            "output_tokens": answered,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 7,
        }
        return claude("assistant", f"part {n}", message={"id": "m1", "model": "opus", "usage": usage})

    (usage,) = only(parse(jsonl(line(1, 2), line(2, 40), line(3, 40)))[0], Usage)
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    assert counts == (5, 40, 100, 7)
    assert usage.model == "opus"


def test_what_was_not_recorded_is_none_and_unknown_keys_are_told():
    usage = {"output_tokens": 3, "cached_tokens_v2": 9, "service_tier": "x", "cache_read_input_tokens": -1}
    events, _, report = parse(jsonl(claude("assistant", "hi", message={"id": "m", "model": "o", "usage": usage})))
    assert events[-1].input_tokens is None
    assert events[-1].cache_read_tokens is None
    assert report.problems == (
        "unknown usage key 'cached_tokens_v2'",
        "usage key 'cache_read_input_tokens' is no whole number of tokens",
    )


def test_many_responses_are_each_counted_once():
    """More responses than are held back at a time, each twice."""
    records = [
        claude("assistant", f"{n} {half}", message={"id": f"m{n}", "model": "o", "usage": {"output_tokens": 1}})
        for n in range(1000)
        for half in "ab"
    ]
    assert len(only(parse(jsonl(*records))[0], Usage)) == 1000


@pytest.mark.parametrize(
    ("text", "fields", "reason"),
    [
        ("You've hit your session limit · resets 3am", {"error": "rate_limit"}, "quota"),
        ("Claude AI usage limit reached|1760000000", {}, "quota"),
        ("Credit balance is too low", {}, "quota"),
        ("Login expired · Please run /login", {"error": "authentication_failed"}, "auth"),
        ("Invalid API key", {}, "auth"),
        ('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}', {}, "overloaded"),
        ("API Error: 429 too fast", {}, "rate_limit"),
        ("API Error: something", {"apiErrorStatus": 401}, "auth"),
        ("API Error: something", {}, "other"),
    ],
)
def test_failed_model_call_is_an_api_error_and_not_speech(text: str, fields: dict, reason: str):
    message = {"model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0}, "id": "m"}
    record = claude("assistant", [{"type": "text", "text": text}], isApiErrorMessage=True, message=message, **fields)
    events, header, _ = parse(jsonl(record))
    assert [(type(event), event.reason) for event in events] == [(ApiError, reason)]
    assert header.model is None


def test_system_api_error_is_an_api_error():
    error = {"formatted": "Overloaded", "status": 529, "message": "529"}
    record = {
        "type": "system",
        "subtype": "api_error",
        "error": error,
        "uuid": "e",
        "sessionId": SESSION,
        "timestamp": AT,
    }
    assert one(record, ApiError).reason == "overloaded"


def test_pull_request_link_is_told_once():
    link = {"type": "pr-link", "sessionId": SESSION, "prNumber": 7, "prUrl": "https://github.com/o/r/pull/7"}
    events, _, _ = parse(jsonl(*[link | {"timestamp": f"2026-01-0{n}T00:00:00Z"} for n in range(1, 4)]))
    assert [event.url for event in only(events, PullRequestLink)] == ["https://github.com/o/r/pull/7"]


def test_compaction_is_a_boundary_and_its_summary_scaffold():
    boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}, "uuid": "b"}
    summary = claude("user", "This session is being continued …", isCompactSummary=True)
    events, _, _ = parse(jsonl(boundary | {"sessionId": SESSION, "parentUuid": None}, summary))
    assert (events[0].kind, events[0].detail, events[1].role) == ("compaction", "auto", Role.SCAFFOLD)


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("Fix it", {}, [("user", "Fix it")]),
        ("Fix it", {"isMeta": True}, [("scaffold", "Fix it")]),
        ("Fix it", {"promptSource": "system"}, [("scaffold", "Fix it")]),
        (
            "<task-notification>done</task-notification>",
            {},
            [("scaffold", "<task-notification>done</task-notification>")],
        ),
        ("<local-command-stdout>x", {}, [("scaffold", "<local-command-stdout>x")]),
        (
            "Fix<system-reminder>be kind</system-reminder> it",
            {},
            [("user", "Fix"), ("scaffold", "<system-reminder>be kind</system-reminder>"), ("user", " it")],
        ),
        ("a <system-reminder> that never ends", {}, [("user", "a <system-reminder> that never ends")]),
    ],
)
def test_injected_text_is_scaffold(text: str, fields: dict, expected: list):
    events, _, _ = parse(jsonl(claude("user", text, **fields)))
    assert [(event.role.value, event.text) for event in events] == expected


def test_reminder_after_a_result_is_scaffold_but_a_quoted_one_is_output():
    """I20, an injected prompt counted as behaviour: impossible. Text added to the scaffold leaves the result byte for
    byte the same.
    """
    quoted = "1 <system-reminder>in the file</system-reminder>\n2 more"
    plain = parse(jsonl(claude("user", tool_result(quoted))))[0]
    reminded = parse(jsonl(claude("user", tool_result(quoted + "\n\n<system-reminder>careful</system-reminder>\n"))))[0]
    assert [event.text for event in only(reminded, ToolResult)] == [event.text for event in only(plain, ToolResult)]
    assert [event.role for event in only(reminded, Message)] == [Role.SCAFFOLD]


def test_hook_output_in_attachments_is_scaffold():
    attachment = {"type": "hook_success", "content": "", "stdout": "hook says: all tests pass"}
    record = {"type": "attachment", "attachment": attachment, "uuid": "h", "sessionId": SESSION, "timestamp": AT}
    assert one(record, Message).role is Role.SCAFFOLD


def test_sidechain_is_marked_and_a_subagents_log_known():
    own, side = claude("assistant", "a", isSidechain=False), claude("assistant", "b", isSidechain=True)
    events, header, _ = parse(jsonl(own, side))
    assert ([event.sidechain for event in events], header.is_subagent) == ([False, True], False)
    assert parse(jsonl(side))[1].is_subagent


def test_subagents_calls_inside_progress_are_sidechain():
    nested = claude("assistant", tool_use("Bash", {"command": "git commit"}))
    nested["message"] |= {"id": "m", "model": "haiku", "usage": {"output_tokens": 4}}
    record = {
        "type": "progress",
        "data": {"type": "agent_progress", "message": nested},
        "uuid": "p",
        "sessionId": SESSION,
    }
    events, header, _ = parse(jsonl(record, record | {"uuid": "q"}, claude("user", "hi")))
    assert [(type(event), event.sidechain) for event in events] == [(ToolCall, True), (Message, False), (Usage, True)]
    assert header.model is None


def test_thinking_is_told_apart():
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ok"}]
    events, _, _ = parse(jsonl(claude("assistant", content)))
    assert [(event.text, event.thinking) for event in events] == [("hm", True), ("ok", False)]


def test_copied_history_ends_at_a_change_of_session():
    """A resumed log begins with another session's lines; the log is the session it goes on as."""
    old = [claude("user", "old", sessionId="old"), claude("assistant", "older", sessionId="old")]
    events, header, report = parse(jsonl(*old, claude("user", "new"), claude("assistant", "newer")))
    assert header.session_id == SESSION
    assert [(event.kind, event.detail) for event in only(events, Boundary)] == [("session_change", SESSION)]
    assert isinstance(events[2], Boundary)
    assert "the session id changes" in report.problems[0]


def test_title_and_span_and_place_are_read():
    records = [
        claude("user", "hi", cwd="/w", gitBranch="feat/x", version="2.1.9", timestamp="2026-01-01T00:00:00Z"),
        claude("assistant", "ho", cwd="/elsewhere", timestamp="2026-01-01T00:05:00Z"),
        {"type": "ai-title", "aiTitle": "By AI", "sessionId": SESSION},
        {"type": "custom-title", "customTitle": "By hand", "sessionId": SESSION},
    ]
    header = parse(jsonl(*records))[1]
    assert (header.title, header.cwd, header.branch, header.harness_version) == ("By hand", "/w", "feat/x", "2.1.9")
    assert (header.ended_at - header.started_at).total_seconds() == 300


def stream(kind: str, **fields: object) -> dict:
    return {"type": kind, "session_id": SESSION, "uuid": f"{kind}-{len(str(fields))}"} | fields


def test_stream_json_totals_come_from_its_result():
    init = stream("system", subtype="init", model="opus", cwd="/w", tools=[], claude_code_version="2.1.5")
    message = {"role": "assistant", "id": "m", "model": "opus", "content": [{"type": "text", "text": "hi"}]}
    message["usage"] = {"input_tokens": 10, "output_tokens": 1}
    total = {"input_tokens": 10, "output_tokens": 250, "cache_read_input_tokens": 7}
    result = stream("result", subtype="success", is_error=False, result="hi", usage=total, total_cost_usd=0.25)
    events, header, report = parse(jsonl(init, stream("assistant", message=message, parent_tool_use_id=None), result))
    usages = only(events, Usage)
    assert sum(usage.output_tokens or 0 for usage in usages) == 250
    assert sum(usage.input_tokens or 0 for usage in usages) == 10
    assert [usage.cost_usd for usage in usages] == [None, 0.25]
    assert (events[-1].kind, events[-1].detail) == ("end", "success")
    assert (header.session_id, header.model, header.cwd, header.harness_version) == (SESSION, "opus", "/w", "2.1.5")
    assert report.coverage == 1.0


def test_stream_json_that_ends_on_the_quota_says_so():
    init = stream("system", subtype="init", model="opus", tools=[])
    result = stream("result", subtype="success", is_error=True, result="Claude AI usage limit reached|1760000000")
    (error,) = only(parse(jsonl(init, result))[0], ApiError)
    assert error.reason == "quota"


def test_stream_json_marks_a_subagents_messages():
    message = {"role": "assistant", "id": "m", "content": [{"type": "text", "text": "hi"}]}
    events, _, _ = parse(jsonl(stream("assistant", message=message, parent_tool_use_id="toolu_1")))
    assert events[0].sidechain
