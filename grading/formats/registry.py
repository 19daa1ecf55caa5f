"""The harnesses whose logs the site knows. A new one is added to HARNESSES; docs/formats.md is generated from it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, cast

from grading.formats.claude_code.parser import ClaudeCode
from grading.formats.codex.parser import Codex
from grading.formats.copilot_cli.parser import CopilotCli
from grading.formats.gemini_cli.parser import GeminiCli
from grading.formats.gptme.parser import Gptme
from grading.formats.inspect_ai.parser import InspectAi
from grading.formats.opencode.parser import OpenCode, OpenCodeDatabase, OpenCodeStorage
from grading.formats.openhands.parser import OpenHands
from grading.formats.reader import Parser, Recogniser
from grading.formats.swe_agent.parser import SweAgent

ENOUGH_SAMPLES, ENOUGH_SOURCES = 10, 2


class Tier(StrEnum):
    """How much of a harness's logs counts. FULL: all of it. FACTS: the session is shown with its facts, and its log
    gives no grade. RECOGNISED: the logs are refused by the harness's name.
    """

    FULL = "full"
    FACTS = "facts"
    RECOGNISED = "recognised"


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """A harness. `logs` says where it keeps its logs, and `hook` what sends a session when it ends, if anything does.

    `samples` are the real logs that its reader was tried on, from `sources` different repositories.
    """

    reader: type[Recogniser]
    tier: Tier
    logs: str
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
        tier=Tier.FULL,
        logs="~/.claude/projects/<project>/<session>.jsonl; claude -p --output-format stream-json",
        hook="SessionEnd in ~/.claude/settings.json",
        samples=80,
        sources=14,
    ),
    Harness(
        reader=Codex,
        tier=Tier.FULL,
        logs="~/.codex/sessions/<date>/rollout-*.jsonl, also .jsonl.zst and in archived_sessions; codex exec --json",
        hook="Stop in ~/.codex/hooks.json",
        samples=54,
        sources=6,
    ),
    Harness(
        reader=Gptme,
        tier=Tier.FULL,
        logs="~/.local/share/gptme/logs/<session>/conversation.jsonl; terminal output",
        hook="session.end in ~/.config/gptme/config.toml",
        samples=49,
        sources=2,
    ),
    Harness(
        reader=OpenCode,
        tier=Tier.FULL,
        logs="~/.local/share/opencode/opencode.db, or storage/ before version 1.2; opencode export",
        samples=10,
        sources=1,
    ),
    Harness(
        reader=CopilotCli, tier=Tier.FULL, logs="~/.copilot/session-state/<session>/events.jsonl", samples=9, sources=1
    ),
    Harness(
        reader=GeminiCli, tier=Tier.FULL, logs="~/.gemini/tmp/<project>/chats/session-*.json", samples=3, sources=1
    ),
    Harness(reader=InspectAi, tier=Tier.FULL, logs="logs/*.eval and logs/*.json", samples=13, sources=1),
    Harness(reader=SweAgent, tier=Tier.FULL, logs="trajectories/**/*.traj", samples=9, sources=1),
    Harness(
        reader=OpenHands,
        tier=Tier.FULL,
        logs="a saved trajectory; output.jsonl of an evaluation",
        samples=5,
        sources=1,
    ),
)
# Files that hold a part of a session, or several, and are refused with what to do instead.
CONTAINERS: Final[tuple[type[Recogniser], ...]] = (OpenCodeDatabase, OpenCodeStorage)

PARSERS: Final[dict[str, type[Parser]]] = {
    harness.reader.format: cast("type[Parser]", harness.reader)
    for harness in HARNESSES
    if harness.tier is not Tier.RECOGNISED
}
RECOGNISED: Final = (
    *CONTAINERS,
    *(harness.reader for harness in HARNESSES if harness.tier is Tier.RECOGNISED),
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
