"""The harnesses whose logs the site knows. A new one is added to HARNESSES; docs/formats.md is generated from it."""

from typing import Final

from grading.formats.antigravity.parser import Antigravity
from grading.formats.atif.parser import Atif
from grading.formats.claude_code.parser import ClaudeCode
from grading.formats.codex.parser import Codex
from grading.formats.copilot_cli.parser import CopilotCli
from grading.formats.cursor.parser import Cursor
from grading.formats.droid.parser import Droid
from grading.formats.gemini_cli.parser import GeminiCli
from grading.formats.gptme.parser import Gptme
from grading.formats.inspect_ai.parser import InspectAi
from grading.formats.kimi.parser import Kimi
from grading.formats.mini_swe_agent.parser import MiniSweAgent
from grading.formats.opencode.parser import OpenCode, OpenCodeDatabase, OpenCodeStorage
from grading.formats.openhands.parser import OpenHands
from grading.formats.pi.parser import Pi
from grading.formats.qwen.parser import Qwen
from grading.formats.reader import Parser, Recogniser
from grading.formats.recognised import (
    Aider,
    Amp,
    ClaudeCodeWeb,
    Cline,
    Database,
    Goose,
    Grok,
    Hermes,
    Kiro,
    OpenHandsSdk,
    Predictions,
)
from grading.formats.swe_agent.parser import SweAgent

HARNESSES: Final[tuple[type[Recogniser], ...]] = (
    ClaudeCode,
    Codex,
    Gptme,
    OpenCode,
    CopilotCli,
    GeminiCli,
    InspectAi,
    SweAgent,
    OpenHands,
    MiniSweAgent,
    Pi,
    Droid,
    Kimi,
    Qwen,
    Cursor,
    Antigravity,
    Atif,
    Kiro,
    Grok,
    Hermes,
    ClaudeCodeWeb,
    Cline,
    Goose,
    Amp,
    Aider,
    OpenHandsSdk,
)
# Files that hold a part of a session, or several, and are refused with what to do instead.
CONTAINERS: Final[tuple[type[Recogniser], ...]] = (OpenCodeDatabase, OpenCodeStorage, Predictions, Database)

BY_FORMAT: Final = {harness.format: harness for harness in HARNESSES}
PARSERS: Final = {name: harness for name, harness in BY_FORMAT.items() if issubclass(harness, Parser)}
RECOGNISED: Final = (*CONTAINERS, *(harness for harness in HARNESSES if not issubclass(harness, Parser)))
FORMATS: Final = tuple(sorted(PARSERS))


def titles(conjunction: str) -> str:
    """The names of all harnesses in a sentence, the last one after a conjunction.

    >>> titles("or")[:33]
    'Claude Code, Codex CLI, gptme, Op'
    """
    *others, last = [parser.title for parser in PARSERS.values()]
    return f"{', '.join(others)} {conjunction} {last}"
