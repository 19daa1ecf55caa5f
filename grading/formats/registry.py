"""The supported log formats. A new one is added to PARSERS; tests check what else it needs."""

from typing import Final

from grading.formats.claude_code.parser import ClaudeCode
from grading.formats.codex.parser import Codex
from grading.formats.gptme.parser import Gptme
from grading.formats.inspect_ai.parser import InspectAi
from grading.formats.opencode.parser import OpenCode, OpenCodeDatabase, OpenCodeStorage
from grading.formats.reader import Parser, Recogniser
from grading.formats.swe_agent.parser import SweAgent

PARSERS: Final[dict[str, type[Parser]]] = {
    parser.format: parser for parser in (ClaudeCode, Codex, Gptme, OpenCode, SweAgent, InspectAi)
}
RECOGNISED: Final[tuple[type[Recogniser], ...]] = (OpenCodeDatabase, OpenCodeStorage)
FORMATS: Final = tuple(sorted(PARSERS))


def titles(conjunction: str) -> str:
    """The names of all harnesses in a sentence, the last one after a conjunction.

    >>> titles("or")
    'Claude Code, Codex CLI or gptme'
    """
    *others, last = [parser.title for parser in PARSERS.values()]
    return f"{', '.join(others)} {conjunction} {last}"
