"""Which harness wrote a file, judged by all records in a generous head of it, never by its name or its first line."""

from dataclasses import dataclass
from io import BytesIO
from typing import Final

from grading.formats.lines import LineTally, read_objects
from grading.formats.registry import PARSERS
from grading.formats.values import text

HEAD: Final = 256 * 1024
THRESHOLD: Final = 0.5
MAX_KINDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """`score` in [0, 1]: the mean over the head's records of how surely each is of that format. None: unknown.

    `records`: how many JSON objects the head holds, one or more a line.
    """

    format: str | None
    score: float
    reason: str
    records: int


def detect(head: bytes, filename: str = "") -> Detection:
    """The format of a transcript from its first bytes (`HEAD` of them are plenty). The file's name only adds words.

    A format is named where its records make up at least half of the head (`THRESHOLD`), so that a foreign file with
    a few familiar lines is refused rather than misread.
    """
    tally = LineTally()
    records = [record for _, record in read_objects(BytesIO(head), tally)]
    if not records:
        reason = "text or bytes that are not JSON lines"
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            reason = "text in UTF-16, not UTF-8"
        elif head.lstrip()[:1] in (b"{", b"["):
            is_one_line = tally.torn_tail and b"\n" not in head.strip()
            what = "one line of JSON that does not end" if is_one_line else "a JSON document over several lines"
            reason = f"{what}, not a log with one object a line"
        return Detection(format=None, score=0.0, reason=reason, records=0)
    scores = {name: sum(map(parser.score, records)) / len(records) for name, parser in PARSERS.items()}
    best = max(scores, key=lambda name: scores[name])
    score = round(scores[best], 3)
    if score >= THRESHOLD:
        mine = sum(1 for record in records if PARSERS[best].score(record))
        named = f" in {filename!r}" if filename else ""
        reason = f"{mine} of {len(records)} records{named} are {best}'s"
        return Detection(format=best, score=score, reason=reason, records=len(records))
    kinds: list[str] = []  # what the first few records call themselves, or their keys
    for record in records:
        kind = text(record.get("type"))
        kinds.append(f"type {kind[:40]!r}" if kind else f"keys {', '.join(sorted(record)[:5])[:80]!r}")
    told = "; ".join(list(dict.fromkeys(kinds))[:MAX_KINDS])
    closest = f"; closest is {best} with a score of {score}" if score else ""
    reason = f"JSON of another kind ({told}){closest}"
    return Detection(format=None, score=score, reason=reason, records=len(records))
