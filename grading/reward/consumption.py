"""The consumption grade: what reading leaves behind, as a weighted sum with diminishing returns."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from grading.reward.grade import SourceGrade, scored, unscored
from grading.signals.artifacts import DEFAULT_RULES, SHOWED_UP, ArtifactDefinition, FoundArtifact
from grading.vocabulary import Reason, Source

# As many of the artifacts that do not count are named in the evidence.
NAMED = 50
VERSION = "consumption/2"
# One and several of each kind that the site knows by itself; another kind is named as its rule is.
NOUNS = {
    "idea": ("idea", "ideas"),
    "task": ("task", "tasks"),
    "engagement": ("post or comment", "posts or comments"),
    "knowledge": ("note", "notes"),
}


def diminishing(count: int, scale: float = 1.0) -> float:
    """`min(1, log1p(count·scale) / log1p(3·scale))`, in [0, 1]; three of a kind are full marks.

    >>> [round(diminishing(count), 3) for count in (0, 1, 2, 3, 10)]
    [0.0, 0.5, 0.792, 1.0, 1.0]
    """
    return min(1.0, math.log1p(max(count, 0) * scale) / math.log1p(3 * scale))


def grade(
    artifacts: Iterable[FoundArtifact],
    *,
    is_consumption: bool,
    readable: bool,
    rules: Sequence[ArtifactDefinition] = DEFAULT_RULES,
    why_unreadable: str = "",
) -> SourceGrade:
    """The weighted sum over kinds, in [0, 1].

    Scored only where a session left an artifact that counts; the weight of showing up is added beside another term. A
    reading session that left none is unscored, as no artifact says nothing of how well it read; so is any other, so
    that `max` never lifts an honest low grade. The evidence names the artifacts that do not count, with the reason.
    `readable` False: unscored, and `why_unreadable` says why.
    """
    found = list(artifacts)
    counts = Counter(artifact.kind for artifact in found if not artifact.left_out)
    left_out = [artifact for artifact in found if artifact.left_out]
    evidence: dict[str, Any] = {}
    if left_out:
        rows = [{"kind": item.kind, "key": item.key[:200], "why": item.left_out} for item in left_out[:NAMED]]
        evidence = {"left_out": rows, "left_out_count": len(left_out)}
    also = f"; {len(left_out):,} left out for want of substance" if left_out else ""
    if not readable:
        detail = why_unreadable or "Neither a patch nor a transcript could be read, so nothing can be counted"
        return unscored(Source.CONSUMPTION, Reason.UNREADABLE, version=VERSION, detail=detail)
    if not any(counts[rule.kind] for rule in rules):
        reason = Reason.NO_ARTIFACTS if is_consumption else Reason.NOT_CONSUMPTION
        what = "Read" if is_consumption else "Not a reading category"
        detail = f"{what}, and no idea, task, post or note that counts was left behind{also}"
        return unscored(Source.CONSUMPTION, reason, version=VERSION, detail=detail, **evidence)
    terms: list[dict[str, Any]] = []
    listed = []
    for rule in rules:
        count = counts[rule.kind]
        share = 1.0 if rule.kind == SHOWED_UP else diminishing(count, rule.scale)
        terms.append(
            {
                "kind": rule.kind,
                "count": 1 if rule.kind == SHOWED_UP else count,
                "diminishing": round(share, 6),
                "weight": rule.weight,
                "adds": round(rule.weight * share, 6),
            }
        )
        if count:
            listed.append(f"{count} {NOUNS.get(rule.kind, (rule.kind, rule.kind))[count != 1]}")
    value = min(1.0, math.fsum(term["adds"] for term in terms))
    detail = f"Left behind: {', '.join(listed)}{also}"
    return scored(Source.CONSUMPTION, value, version=VERSION, detail=detail, terms=terms, **evidence)
