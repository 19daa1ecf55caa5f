"""Makes `docs/formats.md` from the registry of harnesses: `python docs/formats.py`."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from grading.formats.reader import FormatTier, Recogniser  # noqa: E402 - the path first
from grading.formats.registry import HARNESSES  # noqa: E402

PAGE = ROOT / "docs" / "formats.md"
# What a person found in real logs, by name in a file of labels and on this page: (one, several).
EFFECTS = {
    "commits": ("commit", "commits"),
    "pushes": ("push", "pushes"),
    "prs": ("pull request", "pull requests"),
    "pull_requests": ("pull request", "pull requests"),
    "tests": ("test run", "test runs"),
}
HEAD = """\
# Log formats

The site tells a log's harness by its content, never by its name. `manage.py import_sessions FOLDER` takes in a folder
of logs of any of these harnesses ([how](how-to/take-in-old-logs.md)); `POST /api/v1/sessions` takes one log at a time.
A log may be compressed with Zstandard. [How to add a format](how-to/add-a-log-format.md).

This page is made by `python docs/formats.py` from the parsers in `grading/formats`; change those.
"""
SECTIONS = {
    FormatTier.FULL: (
        "Read and graded",
        """\
What a session did, used and cost is read from its log, and rules grade it where no judge does. "Few samples": the
reader was tried on fewer than ten real logs, or on logs from one place only. A reward by rules from such a log counts
half, until more logs have been read.

The last column says what a person found in these logs by reading them; tests compare it with what the reader finds.
"None": no real log at hand shows a commit, a push, a pull request or a test run, so that the reader of these is tested
with constructed logs only.
""",
    ),
    FormatTier.FACTS: (
        "Shown with their facts",
        """\
The transcript, the facts and the cost are shown, and a judge reads the log. Rules don't grade by it: too few real logs
were at hand to know that its reader is right.
""",
    ),
    FormatTier.RECOGNISED: (
        "Recognised",
        """\
Such a log is refused by its harness's name, and kept if it came with a session.
""",
    ),
}
TAIL = """\
## When a harness changes

Each log's report counts the records and the tool calls of kinds that its reader doesn't know. When they are more than
2 %, the session's page says so, and an advisory (A53) names the version and the kinds. Tools of MCP servers (`mcp__…`)
are known to be custom. A session most of whose calls are of unknown tools isn't graded by its log.

## Export

`manage.py export_trajectory AGENT SESSION` writes a session's own log as a trajectory in ATIF 1.7, whichever harness
wrote it, without the secrets that the site recognises.

## OpenCode's database

OpenCode keeps all sessions in one database. `manage.py import_sessions ~/.local/share/opencode` copies it with SQLite's
backup function, which is safe while OpenCode runs and never writes to it, and takes in each session of the copy as
`opencode export` would write it. Sessions of versions before 1.2, in the folder `storage`, are put together the same
way.
"""


def page() -> str:
    """The page's text."""
    parts = [HEAD]
    for tier, (title, introduction) in SECTIONS.items():
        harnesses = [harness for harness in HARNESSES if harness.tier is tier]
        parts.append(f"## {title}\n\n{introduction}\n{table(harnesses, tier)}")
    return "\n".join([*parts, TAIL])


def table(harnesses: list[type[Recogniser]], tier: FormatTier) -> str:
    """The harnesses of a tier, one in a row."""
    if tier is FormatTier.RECOGNISED:
        rows = [f"| {harness.title} | {code(harness.logs)} |" for harness in harnesses]
        return "\n".join(["| harness | its logs |", "|---|---|", *rows]) + "\n"
    is_full = tier is FormatTier.FULL
    columns = ["harness", "name", "its logs", "sent by a hook", "real logs read", *["found in them"] * is_full]
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    for harness in harnesses:
        row = [harness.title, f"`{harness.format}`", code(harness.logs), harness.hook or "–", samples(harness, tier)]
        lines.append(f"| {' | '.join([*row, labelled(harness)] if is_full else row)} |")
    return "\n".join(lines) + "\n"


def labelled(harness: type[Recogniser]) -> str:
    """How many effects a person found in the harness's real logs, by the files of labels."""
    name = harness.format
    files = (
        ROOT / "tests" / "formats" / name.replace("-", "_") / "labels.json",
        ROOT / f"benchmarks/labels/{name}.json",
    )
    counts: dict[tuple[str, str], int] = {}
    for file in filter(Path.exists, files):
        for label in json.loads(file.read_text(encoding="utf-8")):
            for key, words in EFFECTS.items():
                counts[words] = counts.get(words, 0) + len(label.get(key, ()))
    found = [f"{count} {words[count > 1]}" for words, count in counts.items() if count]
    return ", ".join(found) or "none"


def samples(harness: type[Recogniser], tier: FormatTier) -> str:
    if not harness.samples:
        return "none"
    few = ", few samples" if tier is FormatTier.FULL and harness.has_few_samples() else ""
    return f"{harness.samples} from {harness.sources} source{'s' * (harness.sources != 1)}{few}"


def code(logs: str) -> str:
    """Places of logs, separated by semicolons; paths as code."""
    parts = [part.strip() for part in logs.split(";")]
    return "; ".join(f"`{part}`" if part.startswith(("~", "logs/", "trajectories/")) else part for part in parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
