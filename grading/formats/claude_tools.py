"""Claude Code's tools: what kind each is, its command or path, and what its result says."""

import re
from typing import Final

from grading.formats.events import Clarity
from grading.formats.reader import Record
from grading.formats.values import parts_text, text, words

KINDS: Final = {
    name: kind
    for kind, names in {
        "shell": "Bash BashOutput KillBash KillShell Monitor PowerShell bash",
        "write": "Write",
        "edit": "Edit MultiEdit NotebookEdit str_replace_based_edit_tool",
        "read": "NotebookRead Read ReadMcpResource",
        "search": "Glob Grep LS ToolSearch",
        "web": "WebFetch WebSearch web_fetch web_search",
        "agent": "Agent SendMessage Task TaskOutput TaskStop Workflow",
        "plan": "EnterPlanMode ExitPlanMode TaskCreate TaskGet TaskList TaskUpdate TodoRead TodoWrite exit_plan_mode",
    }.items()
    for name in names.split()
}
COMMANDED: Final = words("Bash PowerShell bash")
# Tools of its own that do nothing we grade by.
BUILT_IN: Final = words(
    "AskUserQuestion Config CronCreate CronDelete CronList EnterWorktree ExitWorktree ListMcpResources "
    "ListMcpResourcesTool LSP ReadMcpResourceTool ReportFindings ScheduleWakeup Skill SlashCommand StructuredOutput"
)
EXIT_CODE: Final = re.compile(r"\s*(?:Error: )?Exit code (-?\d{1,9})\b")


def kind(name: str) -> str:
    return KINDS.get(name, "other")


def command(name: str, arguments: Record) -> str:
    return text(arguments.get("command")) if kind(name) == "shell" else ""


def clarity(name: str, arguments: object) -> Clarity:
    """How much of a call can be read; `arguments` as the log has them, whatever they are."""
    if not name or not isinstance(arguments, dict) or "__unparsedToolInput" in arguments:
        return Clarity.UNREADABLE
    if name in COMMANDED:
        return Clarity.UNDERSTOOD if command(name, arguments).strip() else Clarity.UNREADABLE
    return Clarity.UNDERSTOOD if name in KINDS or name in BUILT_IN else Clarity.OPAQUE


def path(arguments: Record) -> str:
    return text(arguments.get("file_path")) or text(arguments.get("notebook_path")) or text(arguments.get("path"))


def output(block: Record, structured: Record) -> str:
    """A tool result's text; where the harness only left a pointer to a saved file, the output it kept beside it."""
    told = parts_text(block.get("content"))
    if told.lstrip().startswith("<persisted-output>"):
        kept = "\n".join(part for key in ("stdout", "stderr") if (part := text(structured.get(key))))
        return kept if len(kept) > len(told) else told
    return told


def exit_code(output: str) -> int | None:
    match = EXIT_CODE.match(output)
    return int(match[1]) if match else None
