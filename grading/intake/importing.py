"""Importing logs that harnesses left on disk: each file is one session, its own identity read from the log itself."""

import datetime as dt
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from grading import formats, intake
from grading.formats.events import TranscriptHeader
from grading.models import Agent, Evidence
from grading.models.evidence import EvidenceKind

GPTME_LOG = "conversation.jsonl"


class Fate(StrEnum):
    """What became of one file."""

    IMPORTED = "imported"
    ADDED = "added to a session that was there"
    THERE = "already there"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOutcome:
    """What became of one file; where it is not simply imported, why (one phrase for many files), and what was seen."""

    path: Path
    fate: Fate
    why: str = ""
    detail: str = ""


def logs_under(paths: Iterable[Path]) -> Iterator[Path]:
    """The .jsonl files in these folders, in a stable order, and the files named themselves."""
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*.jsonl") if file.is_file())
        else:
            yield path


def import_log(path: Path, *, agent: Agent, category: str | None = None) -> ImportOutcome:
    """Take one log in through the ordinary intake. What is no session's own log is left alone, with the reason."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        known = Evidence.objects.filter(sha256=digest, kind=EvidenceKind.TRANSCRIPT, session__agent=agent)
        if known.exists():
            return ImportOutcome(path=path, fate=Fate.THERE)
        with path.open("rb") as file:
            reader = formats.read(file, path.name)
            for _event in reader:
                pass
        if reader.report.recognised:
            return _submit(path, agent, reader.header, category)
        why, detail = "logs in which nothing was recognised", ""
    except formats.UnknownFormat as error:
        why, detail = "not a log of Claude Code, gptme or Codex CLI", error.reason
    except formats.EmptyTranscript:
        why, detail = "empty files", ""
    except ValidationError as error:
        why, detail = "logs whose identity or times cannot be true", str(error.errors()[0]["msg"])
    except OSError as error:
        why, detail = "files that cannot be read", str(error.strerror)
    return ImportOutcome(path=path, fate=Fate.REFUSED, why=why, detail=detail)


def _submit(path: Path, agent: Agent, header: TranscriptHeader, category: str | None) -> ImportOutcome:
    """A session's id is in its log; gptme's is the name of its folder, Claude Code's stubs have it as file name.

    A subagent's log without a name of its own goes by that of its file; it says itself whose it is.
    """
    metadata = intake.SubmittedSession(
        session_id=header.session_id or (path.parent.name if path.name == GPTME_LOG else path.stem),
        started_at=header.started_at,
        ended_at=header.ended_at or dt.datetime.fromtimestamp(path.stat().st_mtime, tz=dt.UTC),
        category=category,
    )
    with path.open("rb") as file:
        receipt = intake.submit(agent=agent, metadata=metadata, transcript=file)
    wrong = [problem for problem in receipt.problems if problem.is_error]
    why, detail = "", ""
    if wrong:
        why, detail = f"kept, but not used for grading: {wrong[0].code}", wrong[0].got
    elif header.is_subagent:
        why = "logs of subagents, which count for the session that started them"
    return ImportOutcome(path=path, fate=Fate.IMPORTED if receipt.created else Fate.ADDED, why=why, detail=detail)
