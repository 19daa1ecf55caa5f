"""gptme's own evals: what its terminal showed, as the `conversation.jsonl` it came from, read by the product's parser.

The label is that of objective checks. Two failures of five never got an answer out of the model: zero steps, a wrong
key, an API that was down. They are kept, marked as unanswered, to see that they are not scored.
"""

import gzip
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.labelled.labelled import Labelled
from grading.formats import read

FILE = "gptme-evals.jsonl.gz"
SPEAKER = re.compile(r"^(User|Assistant|System): ?", re.MULTILINE)
# While it waits, the terminal shows a word; after a reply it wipes the line. What follows is the tool's live output.
WAITING = "Thinking..."
WIPED = re.compile(r"[\r ]{60,}")
WIPE = "\x00\n"
CLOSING = re.compile(r"^\[\d\d:\d\d:\d\d\] |^--- Finished generation ---", re.MULTILINE)
# A thought's tags are printed twice, once as they stream.
TWICE = re.compile(r"</?think(?:ing)?>?[ \r]{2,}(?=</?think)")
THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
BUDGET = re.compile(r"<(?:budget|system_info)")
# The terminal takes git's brackets for its own markup and eats them; the live output before still has them.
GIT_LINE = re.compile(r"^\[[^\[\]\n]{1,100} [0-9a-f]{7,40}\](?P<subject>.{1,200})$", re.MULTILINE)


def sessions(folder: Path) -> Iterator[Labelled]:
    with gzip.open(folder / FILE, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            records = list(conversation(row["gen_stdout"]))
            yield Labelled(
                set="gptme-evals",
                task=row["test"],
                name=row["id"],
                good=str(row["passed"]) == "1",
                answered=any(record["role"] == "assistant" for record in records),
                events=tuple(read(io.BytesIO(_jsonl(records)), "conversation.jsonl")),
            )


def conversation(shown: str) -> Iterator[dict[str, Any]]:
    """The messages of a session as its terminal showed them."""
    yield {"role": "system", "content": "You are gptme."}
    parts = SPEAKER.split(WIPED.sub(WIPE, TWICE.sub("", shown.replace("\r\n", "\n"))))
    live = ""
    for speaker, part in zip(parts[1::2], parts[2::2], strict=True):
        text, _, after = part.partition(WIPE)
        text = CLOSING.split(text, maxsplit=1)[0].strip()
        if speaker == "Assistant":
            said = THOUGHT.sub("", text.removeprefix(WAITING)).strip()
            live = after
            if text != WAITING and text:
                yield {"role": "assistant", "content": said or "<think></think>"}
        elif not BUDGET.match(text):
            yield {"role": speaker.lower(), "content": _with_brackets(text, live)}


def _with_brackets(text: str, live: str) -> str:
    for found in GIT_LINE.finditer(live):
        text = re.sub(
            rf"^{re.escape(found['subject'])}$", lambda _, line=found[0]: line, text, count=1, flags=re.MULTILINE
        )
    return text


def _jsonl(records: list[dict[str, Any]]) -> bytes:
    stamped = ({**record, "timestamp": "2026-01-01T00:00:00"} for record in records)
    return "\n".join(json.dumps(record) for record in stamped).encode()
