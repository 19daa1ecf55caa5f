"""The journal grade: what a session says of itself in words. Self-reported, so the weakest source, and capped."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from re import Match
from types import MappingProxyType

from grading.reward import journal_words
from grading.reward.grade import SourceGrade, scored, unscored
from grading.vocabulary import Reason, Source

VERSION = "journal/1"
BASE = 0.08
CAP = 0.60
BLOCKED_PENALTY = 0.04
MAX_TEXT = 200_000
MAX_LINE = 2_000
MAX_HITS = 100
# Beyond this many hits of a kind more words are not more work.
MAX_COUNT = 3
# Chosen so that one submitted pull request is worth 0.32, as in the founding story.
WEIGHTS = MappingProxyType({"merged": 0.75, "submitted": 0.62, "fixed": 0.45, "pushed": 0.40, "completed": 0.35})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One outcome word in one clause; "did not merge" and "will be merged" are listed, not counted."""

    kind: str
    line: int
    text: str
    counted: bool
    why: str = ""


def grade(text: str | None) -> SourceGrade:
    """What a journal claims, in [0, 0.6].

    `0.08 + 0.52·(1 − exp(−u)) − 0.04·blocked`, where u is the sum of `weight·log2(1 + min(count, 3))` over kinds of
    outcome. Quoted, fenced, linked text, headings and front matter say nothing; without an outcome word it is unscored.
    """
    if text is None or not text.strip():
        return unscored(Source.JOURNAL, Reason.NO_JOURNAL, version=VERSION, detail="No journal was submitted")
    found = hits(text)
    counts = Counter(hit.kind for hit in found if hit.counted)
    listed = [{"kind": h.kind, "line": h.line, "text": h.text, "counted": h.counted, "why": h.why} for h in found]
    if not counts:
        return unscored(
            Source.JOURNAL,
            Reason.NO_SIGNAL,
            version=VERSION,
            detail="The journal names no outcome (submitted, merged, fixed, completed, blocked, nothing to do)",
            hits=listed,
        )
    terms = [
        {"kind": kind, "count": counts[kind], "weight": weight, "adds": round(_adds(weight, counts[kind]), 6)}
        for kind, weight in WEIGHTS.items()
        if counts[kind]
    ]
    units = math.fsum(_adds(weight, counts[kind]) for kind, weight in WEIGHTS.items())
    penalty = BLOCKED_PENALTY * (counts["blocked"] > 0)
    value = max(0.0, BASE + (CAP - BASE) * -math.expm1(-units) - penalty)
    detail = f"The journal says: {', '.join(f'{kind} ×{count}' for kind, count in counts.most_common())}"
    return scored(Source.JOURNAL, value, version=VERSION, detail=detail, terms=terms, penalty=penalty, hits=listed)


def hits(text: str) -> list[Hit]:
    """Every outcome word in the journal's own prose, with its line (from 1) and whether it counts; at most 100."""
    found: list[Hit] = []
    for number, line, is_self in _prose(text[:MAX_TEXT]):
        own = journal_words.FOREIGN.sub(_stand_in, line[:MAX_LINE].replace("’", "'"))
        parts = [part for part in journal_words.CLAUSES.split(own) if part]
        for clause in [clause for part in parts for clause in journal_words.COMMA.split(part)]:
            found += _in_clause(clause, number, is_self=is_self)
            if len(found) >= MAX_HITS:
                return found[:MAX_HITS]
    return found


def _stand_in(foreign: Match[str]) -> str:
    """What takes the place of foreign text: its address may say that it is a pull request, its words say nothing."""
    return " PR " if journal_words.PULL_ADDRESS.search(foreign.group()) else " … "


def _adds(weight: float, count: int) -> float:
    return weight * math.log2(1 + min(count, MAX_COUNT))


def _prose(text: str) -> Iterator[tuple[int, str, bool]]:
    """Lines that are the writer's own report, with whether they stand where a session assesses itself.

    A journal without headings is one assessment. Sections about plans, context and reading are left out.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    start, fence = 0, ""
    if lines[0].strip() == "---":  # front matter, to the next such line
        ends = (at + 1 for at, line in enumerate(lines[1:], start=1) if line.strip() in ("---", "..."))
        start = next(ends, 0)
    is_self, is_elsewhere = not any(journal_words.HEADING.match(line) for line in lines), False
    for number, line in enumerate(lines[start:], start=start + 1):
        mark = journal_words.FENCE.match(line)
        if mark is not None and (not fence or mark["mark"].startswith(fence)):
            fence = "" if fence else mark["mark"][:3]
            continue
        if (
            fence
            or line.lstrip().startswith((">", "|"))
            or line.startswith(("    ", "\t"))
            or journal_words.OPEN_TASK.match(line)
        ):
            continue
        heading = journal_words.HEADING.match(line)
        if heading is not None:
            is_elsewhere = journal_words.ELSEWHERE.search(heading["title"]) is not None
            is_self = not is_elsewhere and journal_words.SELF.search(heading["title"]) is not None
        elif not is_elsewhere:
            yield number, line, is_self


def _in_clause(clause: str, line: int, *, is_self: bool) -> Iterator[Hit]:
    for kind, pattern in journal_words.OUTCOMES.items():
        match = pattern.search(clause)
        if match is None:
            continue
        if kind not in ("blocked", "noop"):
            why = _unreal(clause, match)
        elif is_self:
            why = "negated" if journal_words.UNBLOCKED.search(clause[: match.start()]) else ""
        else:  # a word of failure is held against a session only where it assesses itself
            why = "not in the session's own assessment"
        yield Hit(kind=kind, line=line, text=clause.strip()[:200], counted=not why, why=why)


def _unreal(clause: str, match: Match[str]) -> str:
    """Why a word of success is no claim that it happened in this session."""
    before = clause[max(0, match.start() - 60) : match.end()]
    lead = before[: len(before) - len(match.group())]
    if journal_words.NEGATIONS.search(before) or journal_words.DENIED.match(clause, match.end()):
        return "negated"
    if journal_words.UNREAL.search(lead) or clause.rstrip().endswith("?"):
        return "planned, conditional or earlier"
    if journal_words.ARTICLE.search(lead):
        return "describes a thing"
    return ""
