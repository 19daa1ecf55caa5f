"""gptme's conversations as events, in its three ways of writing a tool call."""

from io import BytesIO

import pytest

from grading.formats import read
from grading.formats.events import Clarity, Message, Role, ToolCall, ToolResult, Usage
from grading.formats.gptme.calls import find_calls
from grading.formats.gptme.parser import read_outcome
from grading.signals.extract import extract
from tests.formats.logs import FIXTURES, GPTME_PROMPT, gptme, jsonl, only, parse

pytestmark = pytest.mark.pure

SHELL = "```shell\ngit status\n```"


def talk(*messages: dict) -> tuple:
    return parse(jsonl(GPTME_PROMPT, gptme("user", "Fix it"), *messages))


def test_real_conversation_reads_whole():
    events, header, report = parse((FIXTURES / "gptme-replay-08.jsonl").read_bytes())
    calls, results = only(events, ToolCall), only(events, ToolResult)
    kinds = ["read", "read", "read", "edit", "shell", "shell", "read", "other"]
    assert [call.kind for call in calls] == kinds
    assert [result.call_id for result in results] == [call.call_id for call in calls]
    assert [result.exit_code for result in results] == [None, None, None, None, 1, 0, None, None]
    assert [result.failed for result in results] == [False, False, False, False, True, False, False, False]
    assert sum(usage.output_tokens for usage in only(events, Usage)) == 1296
    assert (header.session_id, header.model, header.harness_version) == (None, "local/replay", "0.35.1")
    assert (header.ended_at - header.started_at).total_seconds() > 200
    assert (report.coverage, report.problems) == (1.0, ())


def test_failed_patches_are_failures():
    events, _, _ = parse((FIXTURES / "gptme-replay-00.jsonl").read_bytes())
    assert [result.failed for result in only(events, ToolResult)] == [False, True, True, True, True, True]


@pytest.mark.parametrize(
    ("content", "name", "kind", "arguments"),
    [
        ("```shell\ngit push\n```", "shell", "shell", {"command": "git push"}),
        ("```bash\nls\n```", "bash", "shell", {"command": "ls"}),
        ("```save a/b.py\nx = 1\n```", "save", "write", {"path": "a/b.py", "content": "x = 1"}),
        ("```append log.md\nx\n```", "append", "write", {"path": "log.md", "content": "x"}),
        ("```patch a.py\n<<<<<<< ORIGINAL\n```", "patch", "edit", {"path": "a.py", "patch": "<<<<<<< ORIGINAL"}),
        ("```a.py\nx\n```", "save", "write", {"path": "a.py", "content": "x"}),
        ("```ipython\n1+1\n```", "ipython", "other", {"code": "1+1"}),
        ("````save a.md\n```py\nx\n```\n````", "save", "write", {"path": "a.md", "content": "```py\nx\n```"}),
        (
            "<tool-use>\n<shell>\necho a &amp;&amp; b\n</shell>\n</tool-use>",
            "shell",
            "shell",
            {"command": "echo a && b"},
        ),
        ("<tool-use>\n<save args='a.py'>\nx\n</save>\n</tool-use>", "save", "write", {"path": "a.py", "content": "x"}),
        ('<tool-use><patch args="a.py">\np\n</patch></tool-use>', "patch", "edit", {"path": "a.py", "patch": "p"}),
        (
            '<function_calls><invoke name="shell"><parameter name="command">ls</parameter></invoke></function_calls>',
            "shell",
            "shell",
            {"command": "ls"},
        ),
        ('@shell(call_1): {"command": "echo \\"}\\""}', "shell", "shell", {"command": 'echo "}"'}),
        ('ok\n@save(toolu-1): {"path": "a", "content": "{"}', "save", "write", {"path": "a", "content": "{"}),
    ],
)
def test_every_way_of_writing_a_call_is_read(content: str, name: str, kind: str, arguments: dict):
    """I11, calls in an unknown syntax erased, and then their outputs: impossible. The syntax is read, and an output
    without a call is kept.
    """
    events, _, report = talk(gptme("assistant", f"Now.\n\n{content}"))
    (call,) = only(events, ToolCall)
    assert (call.name, call.kind, call.arguments) == (name, kind, arguments)
    assert call.command == arguments.get("command", "")
    assert call.path == arguments.get("path", "")
    assert report.problems == ()


def test_calls_are_taken_out_of_what_was_said():
    events, _, _ = talk(gptme("assistant", f"Look:\n\n{SHELL}\n\nand wait."))
    assert [message.text for message in only(events, Message)][-1] == "Look:\n\n\nand wait."


@pytest.mark.parametrize(
    "content", ["```python\nprint(1)\n```", "```\nplain\n```", "```json\n{}\n```", "```stdout\nx\n```"]
)
def test_code_that_is_only_shown_is_no_call(content: str):
    assert find_calls(content) == []


def test_a_call_inside_another_is_its_content():
    assert [call.name for call in find_calls('@save(c1): {"path": "a", "content": "\\n```shell\\nls\\n```\\n"}')] == [
        "save"
    ]
    assert [call.name for call in find_calls('```save a.md\n@shell(c1): {"command": "ls"}\n```')] == ["save"]


def test_calls_in_thinking_are_not_run():
    events, _, _ = talk(gptme("assistant", f"<think>\n{SHELL}\n</think>\n```shell\nls\n```"))
    assert [call.command for call in only(events, ToolCall)] == ["ls"]
    assert [message.thinking for message in only(events, Message)][-1] is True


def test_outputs_belong_to_their_call_ids():
    said = gptme("assistant", '@shell(a): {"command": "1"}\n@shell(b): {"command": "2"}')
    events, _, _ = talk(said, gptme("system", "two", call_id="b"), gptme("system", "one", call_id="a"))
    assert [(result.call_id, result.text) for result in only(events, ToolResult)] == [("b", "two"), ("a", "one")]


def test_outputs_without_ids_belong_to_calls_in_order():
    said = gptme("assistant", f"{SHELL}\n\n```shell\nls\n```")
    events, _, _ = talk(said, gptme("system", "Ran command: `git status`"), gptme("system", "Ran command: `ls`"))
    calls, results = only(events, ToolCall), only(events, ToolResult)
    assert [result.call_id for result in results] == [call.call_id for call in calls]
    assert len({call.call_id for call in calls}) == 2


def test_outputs_without_a_call_are_kept_and_told():
    """I11: outputs are never dropped; where there is one, the assistant called something that we could not read."""
    events, _, report = talk(gptme("assistant", "hm"), gptme("system", "Executed code block.\n\nReturn code: 2"))
    (result,), (call,) = only(events, ToolResult), only(events, ToolCall)
    assert (result.call_id, call.clarity) == (call.call_id, Clarity.UNREADABLE)
    assert report.problems == ("a tool call in a syntax that was not understood",)


@pytest.mark.parametrize(
    "output",
    ["Ran command: `git commit -m x`\n\nReturn code: 2", "Ran command:\n```bash\ngit commit -m x\n```\n\nNo output"],
)
def test_an_output_names_the_command_of_a_call_that_was_not_read(output):
    """As in a list, whose indented blocks gptme ran in 2024."""
    said = gptme("assistant", "1. Commit\n    ```bash\n    git commit -m x\n    ```\n\n```shell\nls\n```")
    events, _, report = talk(said, gptme("system", output), gptme("system", "Ran command: `ls`"))
    calls, results = only(events, ToolCall), only(events, ToolResult)
    commands = {call.call_id: call.command for call in calls}
    assert [commands[result.call_id] for result in results] == ["git commit -m x", "ls"]
    assert report.problems == ("a tool call that only its output names",)


def test_a_shortened_command_is_that_of_the_call_that_begins_so():
    said = gptme("assistant", "```shell\nls\n```\n\n```shell\ncd /a/b && make test\n```")
    events, _, _ = talk(said, gptme("system", "Ran command: `cd /a/b...\n(1 line)`"))
    (result,), calls = only(events, ToolResult), only(events, ToolCall)
    assert result.call_id == calls[1].call_id


def test_an_output_of_what_a_person_ran_is_no_call_of_the_agents():
    events, _, report = talk(gptme("system", "Ran command: `ls`"))
    assert (len(only(events, ToolCall)), len(only(events, ToolResult))) == (0, 1)
    assert report.problems == ("a tool's output without a call that was read",)


def test_an_unknown_call_syntax_is_told():
    _, _, report = talk(gptme("assistant", '@shell(call 1) => {"command": "ls"}'))
    assert report.problems == ("a tool call in a syntax that was not understood",)


@pytest.mark.parametrize(
    "content",
    [
        '<tool_call>\n{"name": "shell", "arguments": {"command": "ls"}}\n</tool_call>',
        '<tool name="shell">\nls\n</tool>',
        "<shell>\nls\n</shell>",
        "<function=shell>\nls\n</function>",
        "<|tool_call_begin|>functions.shell:0",
        '[TOOL_CALLS]\n[{"name": "shell"}]',
        '{"name": "shell", "arguments": {"command": "ls"}}',
        '```json\n{"tool": "shell", "input": {"command": "ls"}}\n```',
        "```tool_code\nls\n```",
        "Action: shell\nAction Input: ls",
        "<tool-use>\n<call name='shell'>ls</call>\n</tool-use>",
        "```shell\n```",
    ],
)
def test_calls_in_an_unknown_syntax_make_a_log_blind(content: str):
    events, _, _ = talk(*[gptme("assistant", f"Now {n}.\n\n{content}") for n in range(47)])
    assert {call.clarity for call in only(events, ToolCall)} == {Clarity.UNREADABLE}
    assert extract(events).unreadable_calls >= 47
    assert extract(events).is_blind


def test_a_fenced_block_of_an_unknown_tool_is_a_call_where_an_output_follows():
    said = gptme("assistant", "```deploy prod\nnow\n```")
    events, _, _ = talk(said, gptme("system", "Deployed"))
    assert [call.clarity for call in only(events, ToolCall)] == [Clarity.UNREADABLE]
    assert [result.call_id for result in only(events, ToolResult)] == [call.call_id for call in only(events, ToolCall)]
    assert only(talk(said, gptme("user", "Thanks"))[0], ToolCall) == []


@pytest.mark.parametrize(
    "content",
    [
        "Use `<tool_call>` tags, or <b>bold</b>.",
        "```xml\n<tool name='a'>\n</tool>\n```",
        '```json\n{"name": "a", "version": "1"}\n```',
        "```python\n@shell(a) => {\n```",
        "functions are fine\nAction: none",
    ],
)
def test_text_and_code_that_is_shown_is_no_unread_call(content: str):
    assert only(talk(gptme("assistant", content), gptme("system", "# Lesson", hide=True))[0], ToolCall) == []


@pytest.mark.parametrize(
    ("content", "clarity"),
    [
        ("```ipython\n1+1\n```", Clarity.OPAQUE),
        ('@deploy(c1): {"a": 1}', Clarity.OPAQUE),
        ("```todo\nadd\n```", Clarity.UNDERSTOOD),
    ],
)
def test_a_tool_that_is_not_known_is_opaque(content: str, clarity: Clarity):
    assert [call.clarity for call in only(talk(gptme("assistant", content))[0], ToolCall)] == [clarity]


@pytest.mark.parametrize(("content", "failed"), [("```a.py\n1\tx\n```", False), ("File not found: a.py", True)])
def test_how_a_read_went_is_known(content: str, failed: object):
    events, _, _ = talk(gptme("assistant", "```read a.py\n```"), gptme("system", content))
    assert [result.failed for result in only(events, ToolResult)] == [failed]


def test_a_copys_records_are_the_same():
    messages = [gptme("user", "Fix it"), gptme("assistant", SHELL), gptme("system", "Ran command: `git status`")]
    original, copy, other = (
        {event.record for event in read(BytesIO(jsonl(*lines)))}
        for lines in (messages, [*messages, gptme("user", "More")], [gptme("user", "Other")])
    )
    assert original < copy
    assert not original & other


def test_decorators_in_code_are_no_unknown_syntax():
    code = '@patch("a.b")\n@dataclass(frozen=True)\nclass A: ...'
    _, _, report = talk(gptme("assistant", f"```save a.py\n{code}\n```\n\nlike\n\n```py\n{code}\n```"))
    assert report.problems == ()


@pytest.mark.parametrize(
    "message",
    [
        gptme("user", "<system>No tool call detected in last message.</system>"),
        gptme("system", "<system_info>The time is now</system_info>", hide=True),
        gptme("system", "# Relevant Lessons\n\n…"),
        gptme("system", "Pinned.", pinned=True),
    ],
)
def test_injected_text_is_scaffold(message: dict):
    events, _, _ = talk(gptme("assistant", SHELL), message)
    assert isinstance(events[-1], Message)
    assert events[-1].role is Role.SCAFFOLD


def test_the_prompt_is_scaffold_and_the_task_is_the_users():
    events, _, _ = talk()
    assert [event.role for event in events] == [Role.SCAFFOLD, Role.USER]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Ran command: `ls`\n\n`a`\n\n", (False, 0)),
        ("Ran allowlisted command: `ls`\n\n```stdout\na\n```\n\n", (False, 0)),
        ("Ran command: `x`\n\n```stderr\nno\n```\n\nReturn code: 127\n", (True, 127)),
        ("Ran command: `x`\n\n```stdout\nReturn code: 5\n```\n\n", (False, 0)),
        ("Error during execution: Patch failed", (True, None)),
        ("❌ Error during execution: [Errno 13]", (True, None)),
        ("❌ \n`a.py` is no file", (True, None)),
        ("Saved to a.py", (False, None)),
        ("✅ Saved to a.py", (False, None)),
        ("Patch successfully applied to `a.py`", (False, None)),
        ("✅ Patch successfully applied to `a.py`", (False, None)),
        ("````a.py\n1\tx\n````", (None, None)),
    ],
)
def test_outcome_is_read_from_gptmes_own_words(content: str, expected: tuple):
    assert read_outcome(content) == expected


def test_usage_and_cost_are_read():
    usage = {"input_tokens": 5, "output_tokens": 6, "cache_read_tokens": 7, "cache_creation_tokens": 8}
    events, header, _ = talk(gptme("assistant", "hi", metadata={"model": "m", "usage": usage, "cost": 0.5}))
    (seen,) = only(events, Usage)
    counts = (seen.input_tokens, seen.output_tokens, seen.cache_read_tokens, seen.cache_write_tokens, seen.cost_usd)
    assert counts == (5, 6, 7, 8, 0.5)
    assert header.model == "m"


@pytest.mark.parametrize("depth", [1, 3])
def test_hostile_text_costs_no_more_than_its_length(depth: int):
    """Openings without an end, many of them: quadratic reading would take minutes."""
    for opening in ("```a.b\n", "@shell(c): {\n", "<tool-use><shell>", '<parameter name="a">', "<think>", "`" * depth):
        find_calls(opening * 30_000)


def test_an_output_proves_that_a_block_followed_by_text_was_run():
    """In 2024 a bare fence closed a block whatever came after it; today it may open a nested one."""
    said = "Let me look:\n\n```bash\ncat a.rs\n```\nfn main() {\n}"
    output = "Ran command: `cat a.rs`\n\nstdout:\n```\nfn main() {}\n```"
    events, _, _ = talk(gptme("assistant", said), gptme("system", output))
    (call,) = only(events, ToolCall)
    assert (call.command, call.clarity) == ("cat a.rs", Clarity.UNDERSTOOD)
