"""Where this machine's agents keep their logs, when Claude Code deletes its own, and which prompts have lost theirs."""

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.utils import timezone

from grading.agent.submit_session import LOG_FOLDERS
from grading.formats.registry import HARNESSES
from grading.models import Evidence, LogInPlace, Session
from grading.models.evidence import EvidenceKind
from grading.plain import visible_text
from grading.redaction import redact

CLAUDE_CODE = "claude-code"
DEFAULT_CLEANUP_DAYS = 30
MAX_LINES = 200_000  # of the file of prompts
MAX_LINE_BYTES = 1 << 20
TOLERANCE = dt.timedelta(minutes=1)


def log_folders() -> dict[str, list[Path]]:
    """The folders of logs that exist here, by harness."""
    folders = {name: places() for name, places in LOG_FOLDERS.items()}
    for harness in HARNESSES:
        folders.setdefault(harness.format, [Path.home() / folder for folder in harness.folders])
    existing = {name: [folder for folder in paths if folder.is_dir()] for name, paths in folders.items()}
    return {name: paths for name, paths in existing.items() if paths}


def claude_projects() -> Path:
    """The folder in which Claude Code keeps its transcripts."""
    return LOG_FOLDERS[CLAUDE_CODE]()[0]


def claude_home() -> Path:
    return claude_projects().parent


def cleanup_days() -> int:
    """The days without change after which Claude Code deletes a transcript, according to its settings."""
    try:
        settings = json.loads((claude_home() / "settings.json").read_text(encoding="utf-8"))
        days = settings.get("cleanupPeriodDays")
    except (OSError, ValueError, AttributeError, RecursionError):
        return DEFAULT_CLEANUP_DAYS
    is_number = isinstance(days, int) and not isinstance(days, bool)
    return days if is_number and 0 <= days <= 36_500 else DEFAULT_CLEANUP_DAYS  # noqa: PLR2004 - a century


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    """When Claude Code deletes the transcripts that only it has: the `moments`, in order. `days` is its setting."""

    days: int
    moments: tuple[dt.datetime, ...]
    now: dt.datetime

    @property
    def within_week(self) -> int:
        return sum(moment < self.now + dt.timedelta(days=7) for moment in self.moments)


def cleanup() -> Cleanup:
    days = cleanup_days()
    folder = str(claude_projects())
    paths = set(LogInPlace.objects.filter(path__startswith=folder + "/").values_list("path", flat=True))
    moments = []
    for path in paths:
        with suppress(OSError):  # it is gone
            changed = dt.datetime.fromtimestamp(Path(path).stat().st_mtime, dt.UTC)
            moments.append(changed + dt.timedelta(days=days))
    return Cleanup(days=days, moments=tuple(sorted(moments)), now=timezone.now())


# --- prompts without a transcript ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LostPrompt:
    """A prompt whose transcript is gone, redacted; `project` is the folder that it was typed in."""

    at: dt.datetime
    project: str
    text: str


def lost_prompts() -> list[LostPrompt]:
    """Prompts in Claude Code's history.jsonl whose transcript is neither on disk nor kept here, latest first.

    Earlier versions recorded no session: such a prompt is lost if no session was running at that time.
    """
    ids = {path.stem for path in claude_projects().glob("*/*.jsonl")}
    transcripts = Evidence.objects.filter(kind=EvidenceKind.TRANSCRIPT, problem="")
    transcripts = transcripts.exclude(sha256__in=list(LogInPlace.objects.values_list("pk", flat=True)))
    ids |= set(transcripts.values_list("session__external_id", flat=True))
    sessions = Session.objects.values_list("external_id", "started_at", "ended_at")
    spans = [(start - TOLERANCE, end + TOLERANCE) for name, start, end in sessions if start and name in ids]
    lost = []
    for row in history_lines(claude_home() / "history.jsonl"):
        prompt = read_prompt(row)
        if prompt is None:
            continue
        session = row.get("sessionId")
        if isinstance(session, str) and session:
            has_transcript = session in ids
        else:
            has_transcript = any(start <= prompt.at <= end for start, end in spans)
        if not has_transcript:
            lost.append(prompt)
    return sorted(lost, key=lambda prompt: prompt.at, reverse=True)


def history_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects in a file of JSON lines. Other lines are skipped."""
    try:
        with path.open("rb") as file:
            for _ in range(MAX_LINES):
                line = file.readline(MAX_LINE_BYTES)
                if not line:
                    return
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(row, dict):
                    yield row
    except OSError:
        return


def read_prompt(row: dict[str, Any]) -> LostPrompt | None:
    """The prompt in a line of the history. None for a command such as /clear, and for anything else."""
    text, at, project = row.get("display"), row.get("timestamp"), row.get("project")
    if not isinstance(text, str) or not text.strip() or (text.startswith("/") and " " not in text.strip()):
        return None
    try:
        moment = dt.datetime.fromtimestamp(float(at) / 1000, dt.UTC)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    folder = project if isinstance(project, str) else ""
    return LostPrompt(at=moment, project=visible_text(folder, 200), text=visible_text(redact(text[:2000]), 200))
