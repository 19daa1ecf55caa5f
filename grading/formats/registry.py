"""The formats that can be read. A new one is added here and nowhere else."""

from typing import Final

from grading.formats.claude_code import ClaudeCode
from grading.formats.codex import Codex
from grading.formats.gptme import Gptme
from grading.formats.reader import Parser

PARSERS: Final[dict[str, type[Parser]]] = {parser.format: parser for parser in (ClaudeCode, Codex, Gptme)}
FORMATS: Final = tuple(sorted(PARSERS))
