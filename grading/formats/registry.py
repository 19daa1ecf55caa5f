"""The harnesses whose logs the site knows. A new one is added to HARNESSES; docs/formats.md is generated from it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, cast

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

ENOUGH_SAMPLES, ENOUGH_SOURCES = 10, 2


class FormatTier(StrEnum):
    """How much of a harness's logs counts. FULL: all of it. FACTS: the session is shown with its facts, and its log
    gives no grade. RECOGNISED: the logs are refused by the harness's name.
    """

    FULL = "full"
    FACTS = "facts"
    RECOGNISED = "recognised"


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """A harness. `logs` says where it keeps its logs, and `hook` what sends a session when it ends, if anything does.

    `folders`, below the home folder, hold its logs on the machine of a person who uses it; those of a harness with a
    hook are in `grading.agent.submit_session`.

    `samples` are the real logs that its reader was tried on, from `sources` different places.
    """

    reader: type[Recogniser]
    tier: FormatTier
    logs: str
    folders: tuple[str, ...] = ()
    hook: str = ""
    samples: int = 0
    sources: int = 0

    @property
    def has_few_samples(self) -> bool:
        """Whether a grade from its logs counts half, because too few real logs were read."""
        return self.samples < ENOUGH_SAMPLES or self.sources < ENOUGH_SOURCES


HARNESSES: Final = (
    Harness(
        reader=ClaudeCode,
        tier=FormatTier.FULL,
        logs="~/.claude/projects/<project>/<session>.jsonl; claude -p --output-format stream-json",
        hook="SessionEnd in ~/.claude/settings.json",
        samples=68,
        sources=12,
    ),
    Harness(
        reader=Codex,
        tier=FormatTier.FULL,
        logs="~/.codex/sessions/**/rollout-*.jsonl[.zst]; ~/.codex/archived_sessions; codex exec --json",
        hook="Stop in ~/.codex/hooks.json",
        samples=53,
        sources=5,
    ),
    Harness(
        reader=Gptme,
        tier=FormatTier.FULL,
        logs="~/.local/share/gptme/logs/<session>/conversation.jsonl; terminal output",
        hook="session.end in ~/.config/gptme/config.toml",
        samples=58,
        sources=2,
    ),
    Harness(
        reader=OpenCode,
        tier=FormatTier.FULL,
        logs="~/.local/share/opencode/opencode.db; ~/.local/share/opencode/storage; opencode export",
        folders=(".local/share/opencode",),
        samples=10,
        sources=1,
    ),
    Harness(
        reader=CopilotCli,
        tier=FormatTier.FULL,
        logs="~/.copilot/session-state/<session>/events.jsonl",
        folders=(".copilot/session-state",),
        samples=9,
        sources=1,
    ),
    Harness(
        reader=GeminiCli,
        tier=FormatTier.FULL,
        logs="~/.gemini/tmp/<project>/chats/session-*.json",
        folders=(".gemini/tmp",),
        samples=3,
        sources=1,
    ),
    Harness(reader=InspectAi, tier=FormatTier.FULL, logs="logs/*.eval; logs/*.json", samples=13, sources=1),
    Harness(reader=SweAgent, tier=FormatTier.FULL, logs="trajectories/**/*.traj", samples=9, sources=1),
    Harness(
        reader=OpenHands,
        tier=FormatTier.FULL,
        logs="a saved trajectory; output.jsonl of an evaluation",
        samples=5,
        sources=1,
    ),
    Harness(
        reader=MiniSweAgent,
        tier=FormatTier.FACTS,
        logs="*.traj.json, the file given to mini --output",
        samples=1,
        sources=1,
    ),
    Harness(
        reader=Pi,
        tier=FormatTier.FACTS,
        logs="~/.pi/agent/sessions/**/*.jsonl; ~/.openclaw/agents/*/sessions/*.jsonl",
        folders=(".pi/agent/sessions", ".openclaw/agents"),
    ),
    Harness(
        reader=Droid,
        tier=FormatTier.FACTS,
        logs="~/.factory/sessions/**/*.jsonl; droid exec -o stream-json",
        folders=(".factory/sessions",),
    ),
    Harness(
        reader=Kimi, tier=FormatTier.FACTS, logs="~/.kimi-code/sessions/**/wire.jsonl", folders=(".kimi-code/sessions",)
    ),
    Harness(
        reader=Qwen, tier=FormatTier.FACTS, logs="~/.qwen/projects/<project>/chats/*.jsonl", folders=(".qwen/projects",)
    ),
    Harness(
        reader=Cursor,
        tier=FormatTier.FACTS,
        logs="~/.cursor/projects/<project>/agent-transcripts/**/*.jsonl",
        folders=(".cursor/projects",),
    ),
    Harness(
        reader=Antigravity,
        tier=FormatTier.FACTS,
        logs="~/.gemini/antigravity-cli/**/transcript.jsonl",
        folders=(".gemini/antigravity-cli",),
    ),
    Harness(reader=Atif, tier=FormatTier.FACTS, logs="trajectory.json of a Harbor trial, versions 1.4 to 1.8"),
    Harness(reader=Kiro, tier=FormatTier.RECOGNISED, logs="~/.kiro/sessions"),
    Harness(reader=Grok, tier=FormatTier.RECOGNISED, logs="~/.grok/sessions"),
    Harness(reader=Hermes, tier=FormatTier.RECOGNISED, logs="~/.hermes/sessions"),
    Harness(reader=ClaudeCodeWeb, tier=FormatTier.RECOGNISED, logs="an exported session"),
    Harness(
        reader=Cline, tier=FormatTier.RECOGNISED, logs="ui_messages.json and api_conversation_history.json of a task"
    ),
    Harness(reader=Goose, tier=FormatTier.RECOGNISED, logs="~/.local/share/goose/sessions"),
    Harness(reader=Amp, tier=FormatTier.RECOGNISED, logs="~/.local/share/amp/threads"),
    Harness(reader=Aider, tier=FormatTier.RECOGNISED, logs=".aider.chat.history.md"),
    Harness(reader=OpenHandsSdk, tier=FormatTier.RECOGNISED, logs="~/.openhands/conversations/<id>/events"),
)
# Files that hold a part of a session, or several, and are refused with what to do instead.
CONTAINERS: Final[tuple[type[Recogniser], ...]] = (OpenCodeDatabase, OpenCodeStorage, Predictions, Database)

PARSERS: Final[dict[str, type[Parser]]] = {
    harness.reader.format: cast("type[Parser]", harness.reader)
    for harness in HARNESSES
    if harness.tier is not FormatTier.RECOGNISED
}
RECOGNISED: Final = (
    *CONTAINERS,
    *(harness.reader for harness in HARNESSES if harness.tier is FormatTier.RECOGNISED),
)
FORMATS: Final = tuple(sorted(PARSERS))
BY_FORMAT: Final = {harness.reader.format: harness for harness in HARNESSES}


def titles(conjunction: str) -> str:
    """The names of all harnesses in a sentence, the last one after a conjunction.

    >>> titles("or")[:33]
    'Claude Code, Codex CLI, gptme, Op'
    """
    *others, last = [parser.title for parser in PARSERS.values()]
    return f"{', '.join(others)} {conjunction} {last}"
