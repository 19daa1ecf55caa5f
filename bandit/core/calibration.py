"""What unjudged sessions are worth to a bandit, learned from judged ones.

A session without a verdict has a fallback grade r from one of the `sources`, or it abstained for a reason. Its kind is
(source, "") or (ABSTAINED, reason). Judged sessions have a kind too: the grade that they would have without a verdict.
Two things are learned from them about each kind k:

- the shift: the mean of (verdict − r). A fallback grade is read as r + shift;
- the difference: how far verdicts of this kind are from the mean verdict of their arm.

How a fallback counts depends on n, the arm's verdicts of judges and people before today, in the VERDICT_DAYS up to the
last one.

- n < ENOUGH_VERDICTS: it counts the policy's weight times 1 − n/ENOUGH_VERDICTS, and all fallbacks of an arm together
  count for at most MAX_PSEUDO times 1 − n/ENOUGH_VERDICTS pseudo-observations.
- Otherwise its grade is not read. Like an abstention, the session is estimated to be worth the arm's mean plus the
  kind's difference. Such estimates move an arm's mean, as judged sessions may not be typical, but they are no evidence
  of their own.

All means are shrunk as if PRIOR_PAIRS more pairs had shown the more general mean: an arm's difference towards the
kind's, and the kind's difference and shift towards 0 (Bühlmann's credibility, 1967).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from statistics import fmean
from typing import Any, Self

from bandit.core.table import ABSTAINED

VERDICT_DAYS = 60
ENOUGH_VERDICTS = 5
MAX_PSEUDO = 3.0
PRIOR_PAIRS = 5.0
# The prior of the variance of (verdict − fallback), worth PRIOR_PAIRS pairs.
PRIOR_VARIANCE = 0.04

# A source and "", or ABSTAINED and a reason.
Kind = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSession:
    """A session's verdict and fallback, both in [0, 1], for one arm that ran in it.

    `source` is that of the fallback, or ABSTAINED: then `reason` says why, and `fallback` is 0 and ignored. Raises
    ValueError for grades out of range.
    """

    arm: str
    source: str
    reason: str = ""
    fallback: float
    judge: float
    day: date

    def __post_init__(self) -> None:
        if not (0 <= self.fallback <= 1 and 0 <= self.judge <= 1):
            raise ValueError(f"a judged session has two grades in [0, 1]; got {self}")

    @property
    def kind(self) -> Kind:
        return self.source, self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class KindEstimate:
    """What judged sessions say of one kind of unjudged ones. All numbers are differences of grades, in [−1, 1].

    `shift` is added to a fallback's grade, `deviation` is the standard deviation of a verdict about that; both are 0
    for abstentions. `difference` is from an arm's mean; `by_arm` has the arms with pairs of their own. `pairs` is the
    number of pairs by arm.
    """

    source: str
    reason: str = ""
    shift: float = 0.0
    deviation: float = 0.0
    difference: float = 0.0
    by_arm: Mapping[str, float] = field(default_factory=dict)
    pairs: Mapping[str, int] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        return self.source, self.reason

    @property
    def n(self) -> int:
        return sum(self.pairs.values())

    def difference_in(self, arm: str) -> float:
        """How far the sessions of this kind are estimated to be from the mean of this arm."""
        return self.by_arm.get(arm, self.difference)

    def read(self, fallback: float) -> float:
        """A fallback's grade on the judge's scale, in [0, 1]."""
        return min(max(fallback + self.shift, 0.0), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackCalibration:
    """How grades of the fallback `sources` and abstentions are read; `latest` is the day of the newest pair.

    Without `kinds`, as before the first pair, fallbacks are read as they are and unjudged sessions are not estimated.
    """

    sources: tuple[str, ...]
    kinds: tuple[KindEstimate, ...] = ()
    latest: date | None = None

    @property
    def by_kind(self) -> dict[Kind, KindEstimate]:
        return {each.kind: each for each in self.kinds}

    @property
    def shifts(self) -> dict[str, float]:
        """What is added to the grades of each fallback source."""
        return {each.source: each.shift for each in self.kinds if each.source != ABSTAINED}

    @property
    def reads_abstentions(self) -> bool:
        return any(each.source == ABSTAINED for each in self.kinds)

    @property
    def n(self) -> int:
        """Number of pairs it was fitted to."""
        return sum(each.n for each in self.kinds)

    def as_json(self) -> dict[str, Any]:
        """As JSON for `from_json`."""
        return {
            "sources": list(self.sources),
            "kinds": [asdict(each) for each in self.kinds],
            "latest": None if self.latest is None else self.latest.isoformat(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        latest = data["latest"]
        return cls(
            sources=tuple(data["sources"]),
            kinds=tuple(KindEstimate(**each) for each in data["kinds"]),
            latest=None if latest is None else date.fromisoformat(latest),
        )


def fallback_share(verdicts: int) -> float:
    """The share of its weight that a fallback has in an arm with this many recent verdicts, in [0, 1]."""
    return max(0.0, 1 - verdicts / ENOUGH_VERDICTS)


def fit(pairs: Iterable[JudgedSession], sources: Sequence[str]) -> FallbackCalibration:
    """Fit a calibration of these fallback sources. Pairs in any order give the same bits."""
    ordered = sorted(pairs, key=lambda pair: (pair.kind, pair.arm, pair.day, pair.judge, pair.fallback))
    by_arm: dict[str, list[float]] = defaultdict(list)
    by_kind: dict[Kind, list[JudgedSession]] = defaultdict(list)
    for pair in ordered:
        by_arm[pair.arm].append(pair.judge)
        by_kind[pair.kind].append(pair)
    arm_means = {arm: fmean(verdicts) for arm, verdicts in by_arm.items()}
    return FallbackCalibration(
        sources=tuple(sources),
        kinds=tuple(_estimate(kind, own, arm_means) for kind, own in by_kind.items()),
        latest=max((pair.day for pair in ordered), default=None),
    )


def _estimate(kind: Kind, pairs: Sequence[JudgedSession], arm_means: Mapping[str, float]) -> KindEstimate:
    differences: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        differences[pair.arm].append(pair.judge - arm_means[pair.arm])
    difference = _shrunk([each for own in differences.values() for each in own], 0.0)
    shift = variance = 0.0
    if kind[0] != ABSTAINED:
        gaps = [pair.judge - pair.fallback for pair in pairs]
        shift = _shrunk(gaps, 0.0)
        squares = sum((gap - shift) ** 2 for gap in gaps)
        variance = (squares + PRIOR_PAIRS * PRIOR_VARIANCE) / (len(gaps) + PRIOR_PAIRS)
    return KindEstimate(
        source=kind[0],
        reason=kind[1],
        shift=shift,
        deviation=variance**0.5,
        difference=difference,
        by_arm={arm: _shrunk(own, difference) for arm, own in differences.items()},
        pairs={arm: len(own) for arm, own in differences.items()},
    )


def _shrunk(values: Sequence[float], towards: float) -> float:
    """The mean of the values as if PRIOR_PAIRS more of the value `towards` had been seen."""
    return (sum(values) + PRIOR_PAIRS * towards) / (len(values) + PRIOR_PAIRS)
