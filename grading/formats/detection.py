"""Detects which harness wrote a file, from all records in its first bytes and never from its name or first line alone.

The two errors here are the only ones that stop a transcript from being read. Lesser problems are counted and reported.
"""

from dataclasses import dataclass
from io import BytesIO
from typing import Final

from grading.formats.lines import LineTally, read_objects
from grading.formats.registry import FORMATS, PARSERS
from grading.formats.values import text

HEAD_BYTES: Final = 256 * 1024
MIN_SCORE: Final = 0.5
MAX_KINDS_IN_REASON: Final = 3


class UnknownFormat(ValueError):
    """No supported format was detected in the first bytes of a transcript.

    The message says what was expected, what was there and what to do; `reason` is only the detector's part of it.
    """

    def __init__(self, reason: str, *, head: bytes, filename: str = "") -> None:
        self.reason = reason
        name = f" {filename!r}" if filename else ""
        super().__init__(
            f"unknown transcript format: expected one of {', '.join(FORMATS)}; got{name} {reason}, beginning with "
            f"{head[:80]!r}. Submit the log file that the harness itself wrote, unchanged and as UTF-8; "
            "a harness not named here needs a format module first."
        )


class EmptyTranscript(ValueError):
    """A transcript without bytes, or of whitespace only: the session's log was never written."""

    def __init__(self, filename: str = "") -> None:
        name = f" {filename!r}" if filename else ""
        super().__init__(
            f"empty transcript: expected a session log, got the file{name} with nothing in it. Check that the hook "
            "was given the session's own log and that the harness had closed it; without one, submit no transcript."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """`format` is None if no format reaches MIN_SCORE. `score` in [0, 1]: the mean of `Parser.score` over the records.

    `records`: the number of JSON objects in the file's first bytes; a line may have several.
    """

    format: str | None
    score: float
    reason: str
    records: int


def detect(head: bytes, filename: str = "") -> Detection:
    """Detect a transcript's format from its first bytes (HEAD_BYTES are plenty); `filename` only appears in the reason.

    A foreign file with a few familiar lines is refused rather than misread: about half of the records must match.
    """
    tally = LineTally()
    records = [record for _, record in read_objects(BytesIO(head), tally)]
    if not records:
        reason = "text or bytes that are not JSON lines"
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            reason = "text in UTF-16, not UTF-8"
        elif head.lstrip().startswith((b"{", b"[")):
            is_one_line = tally.torn_tail and b"\n" not in head.strip()
            what = "one line of JSON that does not end" if is_one_line else "a JSON document over several lines"
            reason = f"{what}, not a log with one object a line"
        return Detection(format=None, score=0.0, reason=reason, records=0)
    scores = {name: sum(map(parser.score, records)) / len(records) for name, parser in PARSERS.items()}
    best = max(scores, key=lambda name: scores[name])
    score = round(scores[best], 3)
    if score >= MIN_SCORE:
        matching = sum(1 for record in records if PARSERS[best].score(record))
        named = f" in {filename!r}" if filename else ""
        reason = f"{matching} of {len(records)} records{named} are {best}'s"
        return Detection(format=best, score=score, reason=reason, records=len(records))
    kinds: list[str] = []
    for record in records:
        kind = text(record.get("type"))
        kinds.append(f"type {kind[:40]!r}" if kind else f"keys {', '.join(sorted(record)[:5])[:80]!r}")
    first_kinds = "; ".join(list(dict.fromkeys(kinds))[:MAX_KINDS_IN_REASON])
    closest = f"; closest is {best} with a score of {score}" if score else ""
    reason = f"JSON of another kind ({first_kinds}){closest}"
    return Detection(format=None, score=score, reason=reason, records=len(records))
