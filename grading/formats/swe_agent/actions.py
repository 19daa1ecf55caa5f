"""SWE-agent's commands: the call that an action's text makes, and whether its output shows that it failed."""

import re
import shlex
from typing import Any, Final

from grading.formats.events import Clarity, ToolCall
from grading.formats.values import kind_by_name, word_set

KINDS: Final = kind_by_name(
    {
        "write": "create",
        "edit": "append edit insert",
        "read": "goto open scroll_down scroll_up view_image",
        "search": "find_file search_dir search_file",
        "web": "click_mouse close_site get_console_output open_site screenshot_site",
        "other": (
            "connect_exec connect_sendline connect_start connect_stop debug_add_breakpoint debug_continue debug_exec "
            "debug_start debug_step debug_stop decompile disassemble exit_cost exit_forfeit set_cursors submit "
            "submit_review"
        ),
    }
)
EDITORS: Final = word_set("str_replace_based_edit_tool str_replace_editor")
EDITOR_KINDS: Final = {"create": "write", "insert": "edit", "str_replace": "edit", "undo_edit": "edit", "view": "read"}
FIRST_WORD: Final = re.compile(r"\s{0,20}([\w.-]{1,60})")
END_OF_EDIT: Final = re.compile(r"\n?end_of_edit\s{0,20}\Z")
LINES: Final = re.compile(r"\d{1,9}:\d{1,9}")
FAILURE: Final = re.compile(
    r"\s{0,20}(?:Your proposed edit has introduced new syntax error|Your edit was not applied|No replacement was "
    r"performed|Text not found|Error\b|ERROR\b|Usage:|File [^\n]{1,300} not found|Invalid `|The path [^\n]{1,300} does "
    r"not exist|Wrong flag!|Your command|EXECUTION TIMED OUT|EXITED DUE TO)"
)
SUCCESS: Final = re.compile(
    r"\s{0,20}(?:\[File: |File updated|Replaced \d|Found \d|File created successfully|The file [^\n]{1,300} has been "
    r"edited|Here's the )"
)
MAX_ACTION: Final = 400_000


def read_action(action: str, open_file: str) -> ToolCall:
    """The call of an action, without a number and an id. `open_file` is what SWE-agent's editor shows after it.

    An action that begins with none of SWE-agent's own commands is a command line of the shell.
    """
    match = FIRST_WORD.match(action)
    name = match[1] if match else ""
    rest = action[match.end() :] if match else ""
    if name in EDITORS:
        return _read_editor(name, rest)
    if name not in KINDS:
        command = action.strip()
        clarity = Clarity.UNDERSTOOD if command else Clarity.UNREADABLE
        return ToolCall(name="bash", kind="shell", arguments={"command": command}, command=command, clarity=clarity)
    kind = KINDS[name]
    if kind == "edit":
        return ToolCall(name=name, kind=kind, arguments=_edit_arguments(rest), path=open_file)
    parts = _split_words(rest)
    path = parts[0] if parts and kind in ("read", "write") else ""
    arguments = {"args": rest.strip()} | ({"content": ""} if kind == "write" else {})
    return ToolCall(name=name, kind=kind, arguments=arguments, path=path)


def _edit_arguments(rest: str) -> dict[str, Any]:
    """The arguments of `edit`: a range of lines and a text to the end marker, or a text and its replacement."""
    first_line, _, text = rest.partition("\n")
    if END_OF_EDIT.search(rest):
        return {"content": END_OF_EDIT.sub("", text), "lines": first_line.strip()}
    parts = _split_words(rest)
    if len(parts) > 1 and not LINES.fullmatch(parts[0]):
        return {"old_string": parts[0], "new_string": parts[1]}
    return {"content": text or rest.strip()}


def _read_editor(name: str, rest: str) -> ToolCall:
    """A call of the editor tool: a command, a path and options such as `--old_str`."""
    parts = _split_words(rest)
    command, path = [*parts, "", ""][:2]
    arguments: dict[str, Any] = {"command": command, "path": path}
    for option, value in zip(parts[2::2], parts[3::2], strict=False):
        arguments[option.lstrip("-")] = value
    kind = EDITOR_KINDS.get(command)
    if kind is None or not path:
        return ToolCall(name=name, kind="edit", arguments=arguments, path=path, clarity=Clarity.UNREADABLE)
    return ToolCall(name=name, kind=kind, arguments=arguments, path=path)


def _split_words(text: str) -> list[str]:
    """The words of a command line; none if its quotes don't match."""
    try:
        return shlex.split(text[:MAX_ACTION])
    except ValueError:
        return []


def has_failed(call: ToolCall, output: str) -> bool | None:
    """Whether an output shows that its call failed; None if it shows nothing. The shell's exit code isn't recorded."""
    if call.kind == "shell":
        return None
    if FAILURE.match(output):
        return True
    return False if SUCCESS.match(output) or call.kind in ("read", "search") else None
