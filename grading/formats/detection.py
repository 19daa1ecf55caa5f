"""Detects which harness wrote a file, from what its first bytes hold and never from its name or first line alone."""

from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

from grading.formats.documents import read_beginning
from grading.formats.lines import LineTally, read_objects
from grading.formats.reader import Form, Recogniser
from grading.formats.registry import PARSERS, RECOGNISED
from grading.formats.values import text

HEAD_BYTES: Final = 256 * 1024
MIN_SCORE: Final = 0.5
CERTAIN: Final = 0.9
MAX_KINDS_IN_REASON: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """`format` is None if no format reaches MIN_SCORE. `score` in [0, 1]: for JSON lines the mean of `Parser.score`.

    `records`: the number of JSON objects in the file's first bytes; a line may have several. `harness` is the name of a
    harness whose logs are recognised and not read, else "".
    """

    format: str | None
    score: float
    reason: str
    records: int
    form: Form = Form.LINES
    harness: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatCandidate:
    """A harness that may have written a file of that form."""

    score: float
    form: Form
    recogniser: type[Recogniser]


def detect(head: bytes, filename: str = "") -> Detection:
    """Detect a transcript's format from its first bytes (HEAD_BYTES are plenty); `filename` only appears in the reason.

    A foreign file with a few familiar lines is refused rather than misread: about half of the records must match.
    """
    tally = LineTally()
    records = [record for _, record in read_objects(BytesIO(head), tally)]
    candidates = _candidates(head, records, (*PARSERS.values(), *RECOGNISED))
    best = max(candidates, key=lambda candidate: candidate.score)
    if best.score < MIN_SCORE:
        reason = _describe_records(records, best) if records else _describe_other(head, tally)
        return Detection(format=None, score=best.score, reason=reason, records=len(records))
    recogniser = best.recogniser
    if recogniser in RECOGNISED:
        article = "an" if recogniser.title[0] in "AEIOU" else "a"
        reason = recogniser.reason or f"{article} {recogniser.title} log; not read yet"
        return Detection(
            format=None,
            score=best.score,
            reason=reason,
            records=len(records),
            harness="" if recogniser.reason else recogniser.title,
        )
    named = f" in {filename!r}" if filename else ""
    reason = f"the {best.form}{named} is {recogniser.format}'s"
    if best.form is Form.LINES:
        matching = sum(1 for record in records if recogniser.score(record))
        reason = f"{matching} of {len(records)} records{named} are {recogniser.format}'s"
    return Detection(format=recogniser.format, score=best.score, reason=reason, records=len(records), form=best.form)


def detect_form(head: bytes, recogniser: type[Recogniser]) -> Form:
    """The form of a log that is known to be of that harness."""
    records = [record for _, record in read_objects(BytesIO(head), LineTally())]
    return max(_candidates(head, records, (recogniser,)), key=lambda candidate: candidate.score).form


def _candidates(
    head: bytes, records: list[dict[str, Any]], recognisers: tuple[type[Recogniser], ...]
) -> list[FormatCandidate]:
    """Each harness with its score for each form that the file may have; a single one if its JSON lines are certain."""
    candidates: list[FormatCandidate] = []
    for recogniser in recognisers:
        score = round(sum(map(recogniser.score, records)) / len(records), 3) if records else 0.0
        candidate = FormatCandidate(score=score, form=Form.LINES, recogniser=recogniser)
        if score >= CERTAIN:
            return [candidate]
        candidates.append(candidate)
    document = read_beginning(head)
    for recogniser in recognisers:
        if document is not None:
            score = recogniser.score_document(document)
            candidates.append(FormatCandidate(score=score, form=Form.DOCUMENT, recogniser=recogniser))
        score, form = recogniser.score_bytes(head)
        candidates.append(FormatCandidate(score=score, form=form, recogniser=recogniser))
    return candidates


def _describe_other(head: bytes, tally: LineTally) -> str:
    """What a file without JSON lines is, as text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text in UTF-16, not UTF-8"
    if not head.lstrip().startswith((b"{", b"[")):
        return "text or bytes that are not JSON lines"
    is_one_line = tally.torn_tail and b"\n" not in head.strip()
    what = "one line of JSON that does not end" if is_one_line else "a JSON document over several lines"
    return f"{what}, not a log with one object a line"


def _describe_records(records: list[dict[str, Any]], closest: FormatCandidate) -> str:
    """What the JSON lines of no known harness are, as text, with the closest harness."""
    kinds: list[str] = []
    for record in records:
        kind = text(record.get("type"))
        kinds.append(f"type {kind[:40]!r}" if kind else f"keys {', '.join(sorted(record)[:5])[:80]!r}")
    first_kinds = "; ".join(list(dict.fromkeys(kinds))[:MAX_KINDS_IN_REASON])
    hint = f"; closest is {closest.recogniser.format} with a score of {closest.score}" if closest.score else ""
    return f"JSON of another kind ({first_kinds}){hint}"
