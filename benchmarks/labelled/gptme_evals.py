"""gptme's own evals: its terminal output, turned back into the `conversation.jsonl` and read by the product's parser.

The label is that of objective checks. In two failures of five the model never answered: zero steps, a wrong key, an API
that was down. They are marked as unanswered, to see that they are not graded.
"""

import gzip
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.labelled.sessions import LabelledSession
from grading.formats import read

FILE = "gptme-evals.jsonl.gz"
SPEAKER = re.compile(r"^(User|Assistant|System): ?", re.MULTILINE)
# While it waits, the terminal shows this; after a reply it wipes the line. Then comes the tool's live output.
WAITING = "Thinking..."
WIPED = re.compile(r"[\r ]{60,}")
WIPE = "\x00\n"
CLOSING = re.compile(r"^\[\d\d:\d\d:\d\d\] |^--- Finished generation ---", re.MULTILINE)
# A thought's tags are printed twice, once as they stream.
TWICE = re.compile(r"</?think(?:ing)?>?[ \r]{2,}(?=</?think)")
THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
BUDGET = re.compile(r"<(?:budget|system_info)")
# The terminal removes git's brackets as its own markup. The live output before it still has them.
GIT_LINE = re.compile(r"^\[[^\[\]\n]{1,100} [0-9a-f]{7,40}\](?P<subject>.{1,200})$", re.MULTILINE)


def sessions(folder: Path) -> Iterator[LabelledSession]:
    with gzip.open(folder / FILE, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            records = list(conversation(row["gen_stdout"]))
            yield LabelledSession(
                set="gptme-evals",
                task=row["test"],
                name=row["id"],
                good=str(row["passed"]) == "1",
                answered=any(record["role"] == "assistant" for record in records),
                events=tuple(read(io.BytesIO(_jsonl(records)), "conversation.jsonl")),
            )


def conversation(output: str) -> Iterator[dict[str, Any]]:
    """The messages of a session, from its terminal output."""
    yield {"role": "system", "content": "You are gptme."}
    parts = SPEAKER.split(WIPED.sub(WIPE, TWICE.sub("", output.replace("\r\n", "\n"))))
    live = ""
    for speaker, part in zip(parts[1::2], parts[2::2], strict=True):
        text, _, after = part.partition(WIPE)
        text = CLOSING.split(text, maxsplit=1)[0].strip()
        if speaker == "Assistant":
            reply = THOUGHT.sub("", text.removeprefix(WAITING)).strip()
            live = after
            if text != WAITING and text:
                yield {"role": "assistant", "content": reply or "<think></think>"}
        elif not BUDGET.match(text):
            yield {"role": speaker.lower(), "content": _with_brackets(text, live)}


def _with_brackets(text: str, live: str) -> str:
    for match in GIT_LINE.finditer(live):
        subject = rf"^{re.escape(match['subject'])}$"
        text = re.sub(subject, lambda _, line=match[0]: line, text, count=1, flags=re.MULTILINE)
    return text


def _jsonl(records: list[dict[str, Any]]) -> bytes:
    stamped = ({**record, "timestamp": "2026-01-01T00:00:00"} for record in records)
    return "\n".join(json.dumps(record) for record in stamped).encode()
