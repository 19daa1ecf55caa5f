"""The words of the journal's classifier: what names an outcome, and what takes it back. All linear, all bounded."""

import re
from collections.abc import Mapping
from types import MappingProxyType


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


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
# What before a word of success denies it.
NEGATIONS = re.compile(
    r"\b(?:not|never|no|none|nothing|neither|nor|without|cannot|unable|fail(?:ed|s)? to|hardly|barely|isn't|aren't|"
    r"wasn't|weren't|didn't|don't|doesn't|hasn't|haven't|hadn't|couldn't|can't|won't|wouldn't|instead of|rather than|"
    r"un(?:resolved|finished|merged))\b",
    re.IGNORECASE,
)
# What before it makes it a plan, a condition or somebody's earlier work.
UNREAL = re.compile(
    r"\b(?:will|would|should|shall|could|can|may|might|must|to be|needs?|going to|plan(?:s|ned|ning)?|todo|next|once|"
    r"if|when|until|unless|after|before|waiting|awaiting|pending|hope|try(?:ing)?|tried|expect(?:s|ed)?|already|previously|"
    r"earlier|almost|partly|partially|half)\b|\?",
    re.IGNORECASE,
)
# What before it makes it an adjective.
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
# Inline code, links, images, quotations, comments: somebody else's words, or names.
FOREIGN = re.compile(
    r"`[^`\n]{0,500}`|!?\[[^\]\n]{0,300}\]\([^)\n]{0,500}\)|!?\[[^\]\n]{0,300}\]\[[^\]\n]{0,100}\]|<[^>\n]{1,500}>|"
    r"https?://\S{1,500}|\"[^\"\n]{0,500}\"|“[^”\n]{0,500}”|«[^»\n]{0,500}»|(?<!\w)'[^'\n]{2,300}'(?!\w)",
)
