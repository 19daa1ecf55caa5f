"""Sample sessions, so that an empty site has something to show. They come in like any other and leave in one act."""

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from grading import intake
from grading.intake.erasing import erase
from grading.models import Agent, Session

FOLDER = Path(__file__).parent / "sessions"
AGENT = "samples"
# A sample with a plain task and a log of its own, to begin with.
FIRST = "2026-replay-03-extract-function"
PARTS = {
    "transcript.jsonl": "transcript",
    "conversation.jsonl": "transcript",
    "journal.md": "journal",
    "changes.patch": "patch",
    "facts.json": "facts",
}


def load(now: dt.datetime) -> Iterator[intake.Receipt]:
    """Submit the samples through the ordinary intake, as having ended in the days before `now`; oldest first.

    A sample that is there already stays as it is.
    """
    agent, _created = Agent.objects.get_or_create(name=AGENT, defaults={"title": "Sample sessions", "is_sample": True})
    hour = now.replace(minute=0, second=0, microsecond=0)
    described = [(path.parent, json.loads(path.read_text())) for path in FOLDER.glob("*/session.json")]
    for folder, sample in sorted(described, key=lambda item: -item[1]["hours_ago"]):
        end = hour - dt.timedelta(hours=sample["hours_ago"])
        if Session.objects.filter(agent=agent, external_id=sample["metadata"]["session_id"]).exists():
            continue
        metadata = intake.SubmittedSession(
            **sample["metadata"], started_at=end - dt.timedelta(minutes=sample["minutes"]), ended_at=end
        )
        with ExitStack() as stack:
            files: dict[str, IO[bytes]] = {
                part: stack.enter_context((folder / name).open("rb"))
                for name, part in PARTS.items()
                if (folder / name).exists()
            }
            yield intake.submit(agent=agent, metadata=metadata, is_sample=True, **files)  # type: ignore[arg-type]  # files alone


def remove(who: str) -> dict[str, int]:
    """Erase every sample session with its rewards. Returns the number of deleted rows by table. `who` is recorded."""
    counts = erase(Session.objects.samples(), who=who, why="sample sessions removed")
    Agent.objects.filter(is_sample=True, sessions=None).delete()
    return counts
