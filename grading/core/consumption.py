"""The consumption grade (seed 000): what reading leaves behind, as a weighted sum with diminishing returns."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from grading.core.artifacts import DEFAULT_RULES, SHOWED_UP, Artifact, Rule
from grading.core.grade import SourceGrade, scored, unscored
from grading.core.vocabulary import Reason, Source

VERSION = "consumption/1"


def diminishing(count: int, scale: float = 1.0) -> float:
    """`min(1, log1p(count·scale) / log1p(3·scale))` of seed 000, in [0, 1]; three of a kind are full marks.

    >>> [round(diminishing(count), 3) for count in (0, 1, 2, 3, 10)]
    [0.0, 0.5, 0.792, 1.0, 1.0]
    """
    return 0.0 if count <= 0 else min(1.0, math.log1p(count * scale) / math.log1p(3 * scale))


def grade(
    artifacts: Iterable[Artifact],
    *,
    is_consumption: bool,
    readable: bool,
    rules: Sequence[Rule] = DEFAULT_RULES,
    why_unreadable: str = "",
) -> SourceGrade:
    """The weighted sum over kinds, in [0, 1].

    A reading session is scored whenever its evidence could be read (nothing found: the weight of showing up). Any other
    only where it left an artifact, so that `max` never lifts an honest low grade. `readable` False: unscored, and
    `why_unreadable` says why.
    """
    counts = Counter(artifact.kind for artifact in artifacts)
    if not readable:
        detail = why_unreadable or "Neither a patch nor a transcript could be read, so nothing can be counted"
        return unscored(Source.CONSUMPTION, Reason.UNREADABLE, version=VERSION, detail=detail)
    if not is_consumption and not any(counts[rule.kind] for rule in rules):
        return unscored(
            Source.CONSUMPTION,
            Reason.NOT_CONSUMPTION,
            version=VERSION,
            detail="Not a reading category, and no idea, task, post or note was left behind",
        )
    terms = [_term(rule, 1 if rule.kind == SHOWED_UP else counts[rule.kind]) for rule in rules]
    value = min(1.0, math.fsum(float(term["adds"]) for term in terms))
    return scored(Source.CONSUMPTION, value, version=VERSION, detail=_detail(counts, rules), terms=terms)


def _term(rule: Rule, count: int) -> dict[str, str | int | float]:
    share = 1.0 if rule.kind == SHOWED_UP else diminishing(count, rule.scale)
    return {
        "kind": rule.kind,
        "count": count,
        "diminishing": round(share, 6),
        "weight": rule.weight,
        "adds": round(rule.weight * share, 6),
    }


def _detail(counts: Counter[str], rules: Sequence[Rule]) -> str:
    found = [_counted(counts[rule.kind], rule.kind) for rule in rules if counts[rule.kind]]
    return f"Left behind: {', '.join(found)}" if found else "Read, and left nothing behind"


# One and several of each kind that the site knows by itself; another kind is named as its rule is.
NOUNS = {
    "idea": ("idea", "ideas"),
    "task": ("task", "tasks"),
    "engagement": ("post or comment", "posts or comments"),
    "knowledge": ("note", "notes"),
}


def _counted(count: int, kind: str) -> str:
    return f"{count} {NOUNS.get(kind, (kind, kind))[count != 1]}"
