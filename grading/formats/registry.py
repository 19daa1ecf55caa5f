"""The harnesses whose logs can be read. A new one is added here; what else it needs, tests say."""

from typing import Final

from grading.formats.claude_code import ClaudeCode
from grading.formats.codex import Codex
from grading.formats.gptme import Gptme
from grading.formats.reader import Parser

PARSERS: Final[dict[str, type[Parser]]] = {parser.format: parser for parser in (ClaudeCode, Codex, Gptme)}
FORMATS: Final = tuple(sorted(PARSERS))


def titles(conjunction: str) -> str:
    """The harnesses as people call them.

    >>> titles("or")
    'Claude Code, Codex CLI or gptme'
    """
    *others, last = [parser.title for parser in PARSERS.values()]
    return f"{', '.join(others)} {conjunction} {last}"
