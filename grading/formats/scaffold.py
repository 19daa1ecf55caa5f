"""Telling text that a harness injected from text that a person or a model wrote."""

from collections.abc import Iterator
from typing import Final

from grading.formats.events import Role

OPEN: Final = "<system-reminder>"
CLOSE: Final = "</system-reminder>"
MAX_REMINDERS: Final = 20

INJECTED: Final = (
    "<agent-notification>",
    "<environment_context>",
    "<hook_prompt",
    "<ide_",
    "<local-command-",
    "<model_switch>",
    "<multi_agent_mode>",
    "<permissions",
    "<recommended_plugins>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<collaboration_mode>",
    "<skill>",
    "<subagent_notification>",
    "<system",
    "<task-notification>",
    "<turn_aborted>",
    "<user_action>",
    "<user_instructions>",
    "<user-prompt-submit-hook>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "Caveat: The messages below",
    "Stop hook feedback",
    "[Request interrupted",
    "This session is being continued from a previous conversation",
)


def spoken(text: str, *, injected: bool = False) -> Iterator[tuple[Role, str]]:
    """Splits what stands in a user's place into (who said it, text): reminders and injected text are scaffold."""
    if not text.strip():
        return
    if injected or text.lstrip().startswith(INJECTED):
        yield Role.SCAFFOLD, text
        return
    start = 0
    while (opened := text.find(OPEN, start)) >= 0 and (closed := text.find(CLOSE, opened)) >= 0:
        yield from _part(Role.USER, text[start:opened])
        start = closed + len(CLOSE)
        yield Role.SCAFFOLD, text[opened:start]
    yield from _part(Role.USER, text[start:])


def _part(role: Role, text: str) -> Iterator[tuple[Role, str]]:
    if text.strip():
        yield role, text


def without_reminders(text: str) -> tuple[str, str]:
    """(a tool's own output, the reminders the harness put after it). Only trailing ones: a file may quote the tag."""
    end = len(text)
    for _ in range(MAX_REMINDERS):
        if not text[:end].rstrip().endswith(CLOSE) or (opened := text.rfind(OPEN, 0, end)) < 0:
            break
        end = opened
    return (text, "") if end == len(text) else (text[:end].rstrip(), text[end:])
