"""gptme's own evals: its terminal output, read by the product's parser.

The label is that of objective checks. In two failures of five the model never answered: zero steps, a wrong key, an API
that was down. They are marked as unanswered, to see that they are not graded.
"""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.labelled.sessions import LabelledSession
from grading.formats import EmptyTranscript, read
from grading.formats.events import Event, Message, Role, ToolCall

FILE = "gptme-evals.jsonl.gz"


def sessions(folder: Path) -> Iterator[LabelledSession]:
    with gzip.open(folder / FILE, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            events = _events(row["gen_stdout"])
            yield LabelledSession(
                set="gptme-evals",
                task=row["test"],
                name=row["id"],
                good=str(row["passed"]) == "1",
                answered=any(map(_is_answer, events)),
                events=events,
            )


def _events(output: str) -> tuple[Event, ...]:
    """The events of a session; none if its output is empty."""
    try:
        return tuple(read(io.BytesIO(output.encode()), "stdout.txt"))
    except EmptyTranscript:
        return ()


def _is_answer(event: Event) -> bool:
    return isinstance(event, ToolCall) or (isinstance(event, Message) and event.role is Role.ASSISTANT)
