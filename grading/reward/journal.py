"""The journal grade: what a session reports of itself in prose. Self-reported, so the weakest source, and capped.

The regular expressions below find words of outcome and what negates them. All run in linear time.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType

from grading.reward.grade import SourceGrade, scored, unscored
from grading.vocabulary import Reason, Source

VERSION = "journal/1"
BASE = 0.08
CAP = 0.60
BLOCKED_PENALTY = 0.04
MAX_TEXT = 200_000
MAX_LINE = 2_000
MAX_HITS = 100
# How many characters before a word of success may negate or qualify it.
MAX_LEAD = 60
# More hits of a kind than this are not more work.
MAX_COUNT = 3
# Chosen so that one submitted pull request is worth 0.32, as in the founding story.
WEIGHTS = MappingProxyType({"merged": 0.75, "submitted": 0.62, "fixed": 0.45, "pushed": 0.40, "completed": 0.35})


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


# The patterns of the classifier.
PULL = r"(?:PRs?|MRs?|pull requests?|merge requests?|patch(?:es)?)"
OUTCOMES: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "merged": _any(r"\b(?:squash-)?merged\b(?! (?:origin/)?(?:main|master|upstream)\b)"),
        "submitted": _any(
            r"\bsubmitted\b",
            rf"\b(?:opened|created|raised|sent|filed)\b(?=.{{0,40}}\b{PULL}\b)",
            rf"\b{PULL}\b.{{0,30}}\b(?:opened|created|raised|sent)\b",
        ),
        "fixed": _any(r"\b(?:fixed|resolved|repaired|corrected)\b"),
        "pushed": _any(
            r"\b(?:pushed|committed|deployed|released|shipped|landed|published)\b",
            r"\bproduced \d{1,3} commits?\b",
        ),
        "completed": _any(
            r"\b(?:completed|finished|implemented|closed)\b",
            r"\b(?:session|task|work|everything|all) (?:is |are )?(?:complete|done)\b",
        ),
        "blocked": _any(r"\b(?:blocked|stuck|gave up|unable to|could not|couldn't|failed to)\b"),
        "noop": _any(
            r"\bno-?op\b",
            r"\bnothing to (?:do|change|report)\b",
            r"\bno (?:work|changes?) (?:was |were )?(?:done|made|needed|available)\b",
        ),
    }
)
# Negates a word of success that follows.
NEGATIONS = re.compile(
    r"\b(?:not|never|no|none|nothing|neither|nor|without|cannot|unable|fail(?:ed|s)? to|hardly|barely|isn't|aren't|"
    r"wasn't|weren't|didn't|don't|doesn't|hasn't|haven't|hadn't|couldn't|can't|won't|wouldn't|instead of|rather than|"
    r"un(?:resolved|finished|merged))\b",
    re.IGNORECASE,
)
# Makes a word of success that follows a plan, a condition or earlier work.
UNREAL = re.compile(
    r"\b(?:will|would|should|shall|could|can|may|might|must|to be|needs?|going to|plan(?:s|ned|ning)?|todo|next|once|"
    r"if|when|until|unless|after|before|waiting|awaiting|pending|hope|try(?:ing)?|tried|expect(?:s|ed)?|already|previously|"
    r"earlier|almost|partly|partially|half)\b|\?",
    re.IGNORECASE,
)
# Makes a word of success that follows an adjective.
ARTICLE = re.compile(r"(?:\b(?:a|an|the|any|every|each|this|that)|[(/])\s?$", re.IGNORECASE)
DENIED = re.compile(r"\W{0,5}(?:no|none|false|0|never|not yet)\b", re.IGNORECASE)
UNBLOCKED = re.compile(r"\b(?:not|no|never|nothing|isn't|wasn't|aren't|weren't|longer)\b", re.IGNORECASE)
CLAUSES = re.compile(r"(?<=[.!;])\s|[;—–]|\s-\s|,?\s(?:but|however|although|though|while)\s|\n", re.IGNORECASE)
COMMA = re.compile(r",\s(?:and|then|so)?\b", re.IGNORECASE)
PULL_ADDRESS = re.compile(r"https?://\S{1,300}/(?:pull|pulls|merge_requests)/\d")
FENCE = re.compile(r"[ \t]{0,12}(?P<mark>`{3,}|~{3,})")
HEADING = re.compile(r"\s{0,3}(?P<level>#{1,6})\s+(?P<title>.{0,200})")
OPEN_TASK = re.compile(r"\s*(?:[-*+]|\d+\.)\s+\[ \]")
# Sections where a session assesses itself, and sections that are about something else.
SELF = re.compile(
    r"outcome|summary|result|status|assess|blocker|what (?:i did|was done|happened)|done|deliver|reflection",
    re.IGNORECASE,
)
ELSEWHERE = re.compile(
    r"next|plan|todo|to do|context|background|lessons|follow|future|remaining|backlog|ideas|notes from|reading|sources",
    re.IGNORECASE,
)
# Inline code, links, images, quotations, comments: other people's words, or names.
FOREIGN = re.compile(
    r"`[^`\n]{0,500}`|!?\[[^\]\n]{0,300}\]\([^)\n]{0,500}\)|!?\[[^\]\n]{0,300}\]\[[^\]\n]{0,100}\]|<[^>\n]{1,500}>|"
    r"https?://\S{1,500}|\"[^\"\n]{0,500}\"|“[^”\n]{0,500}”|«[^»\n]{0,500}»|(?<!\w)'[^'\n]{2,300}'(?!\w)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One word of outcome in one clause. `why` it isn't counted: "did not merge" and "will be merged" aren't."""

    kind: str
    line: int
    text: str
    counted: bool
    why: str = ""


def grade(text: str | None) -> SourceGrade:
    """Grade a journal by the outcomes that it claims, in [0, 0.6].

    `0.08 + 0.52·(1 − exp(−u)) − 0.04·blocked`, where u is the sum of `weight·log2(1 + min(count, 3))` over kinds of
    outcome. Quoted, fenced and linked text, headings and front matter are ignored. Without a word of outcome the
    journal is unscored.
    """
    if text is None or not text.strip():
        return unscored(Source.JOURNAL, Reason.NO_JOURNAL, version=VERSION, detail="No journal was submitted")
    all_hits = hits(text)
    counts = Counter(hit.kind for hit in all_hits if hit.counted)
    listed = [asdict(hit) for hit in all_hits]
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
    """Words of outcome in the journal's own prose, with their lines (from 1) and whether they count; at most 100."""
    all_hits: list[Hit] = []
    for number, line, is_self in _prose(text[:MAX_TEXT]):
        # The address in foreign text may show a pull request; its words don't count.
        own_text = FOREIGN.sub(
            lambda foreign: " PR " if PULL_ADDRESS.search(foreign.group()) else " … ",
            line[:MAX_LINE].replace("’", "'"),
        )
        for part in CLAUSES.split(own_text):
            if not part:
                continue
            for clause in COMMA.split(part):
                all_hits += _find_hits(clause, number, is_self=is_self)
                if len(all_hits) >= MAX_HITS:
                    return all_hits[:MAX_HITS]
    return all_hits


def _adds(weight: float, count: int) -> float:
    return weight * math.log2(1 + min(count, MAX_COUNT))


def _prose(text: str) -> Iterator[tuple[int, str, bool]]:
    """The lines of the writer's own report: number, text, and whether the section is an assessment of the session.

    A journal without headings is one assessment. Sections about plans, context and reading are left out.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    start = _front_matter_length(lines)
    fence = ""  # the marks that opened the code block around the line; empty outside of one
    is_assessment = not any(HEADING.match(line) for line in lines)
    is_skipped = False  # whether the section is about plans, context or reading
    for number, line in enumerate(lines[start:], start=start + 1):
        mark = FENCE.match(line)
        if mark is not None and (not fence or mark["mark"].startswith(fence)):
            fence = "" if fence else mark["mark"][:3]
            continue
        is_quote_or_table = line.lstrip().startswith((">", "|"))
        is_indented_code = line.startswith(("    ", "\t"))
        if fence or is_quote_or_table or is_indented_code or OPEN_TASK.match(line):
            continue
        heading = HEADING.match(line)
        if heading is not None:
            is_skipped = ELSEWHERE.search(heading["title"]) is not None
            is_assessment = not is_skipped and SELF.search(heading["title"]) is not None
        elif not is_skipped:
            yield number, line, is_assessment


def _front_matter_length(lines: Sequence[str]) -> int:
    """The number of lines of YAML front matter, with its "---" lines; 0 if there is none or it doesn't end."""
    if lines[0].strip() != "---":
        return 0
    for index, line in enumerate(lines[1:], start=1):
        if line.strip() in ("---", "..."):
            return index + 1
    return 0


def _find_hits(clause: str, line: int, *, is_self: bool) -> Iterator[Hit]:
    """The words of outcome in a clause, at most one of each kind. `is_self`: it is the session's own assessment."""
    for kind, pattern in OUTCOMES.items():
        match = pattern.search(clause)
        if match is None:
            continue
        if kind not in ("blocked", "noop"):
            why = _why_no_success(clause, match)
        elif is_self:
            why = "negated" if UNBLOCKED.search(clause[: match.start()]) else ""
        else:  # a word of failure counts against a session only in its own assessment
            why = "not in the session's own assessment"
        yield Hit(kind=kind, line=line, text=clause.strip()[:200], counted=not why, why=why)


def _why_no_success(clause: str, match: re.Match[str]) -> str:
    """Why a word of success doesn't claim a success of this session; empty if it does."""
    start = max(0, match.start() - MAX_LEAD)
    before, up_to_match_end = clause[start : match.start()], clause[start : match.end()]
    if NEGATIONS.search(up_to_match_end) or DENIED.match(clause, match.end()):
        return "negated"
    if UNREAL.search(before) or clause.rstrip().endswith("?"):
        return "planned, conditional or earlier"
    if ARTICLE.search(before):
        return "describes a thing"
    return ""
