"""What unjudged sessions are worth to a bandit, learned from judged ones.

A session without a verdict has a fallback grade r from one of the `sources`, or it abstained for a reason. Its kind is
(source, "") or (ABSTAINED, reason). Judged sessions have a kind too: the grade that they would have without a verdict.
Two things are learned from them about each kind k:

- the shift: the mean of (verdict − r). A fallback grade is read as r + shift;
- the difference: how far verdicts of this kind are expected to be from the mean verdict of their arm.

How a fallback counts depends on n, the arm's verdicts of judges and people before today, in the VERDICT_DAYS up to the
last one.

- n < ENOUGH_VERDICTS: it counts the policy's weight times 1 − n/ENOUGH_VERDICTS, and all fallbacks of an arm together
  count for at most MAX_PSEUDO times 1 − n/ENOUGH_VERDICTS pseudo-observations.
- Otherwise its grade is not read. Like an abstention, the session is estimated to be worth the arm's mean plus the
  kind's difference. Such estimates move an arm's mean, as judged sessions may not be typical, but they are no evidence
  of their own.

The shift, a kind's effect and its deviation in an arm are shrunk towards 0 as if PRIOR_PAIRS more pairs had shown none
(Bühlmann's credibility, 1967).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from statistics import fmean
from typing import Any, Self

from bandit.core.table import ABSTAINED, GRADED

VERDICT_DAYS = 60
ENOUGH_VERDICTS = 5
MAX_PSEUDO = 3.0
PRIOR_PAIRS = 5.0
# Rounds of the alternating fit of arms and kinds.
ITERATIONS = 30
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
    return min(max(0.0, 1 - verdicts / ENOUGH_VERDICTS), 1.0)


def verdict_sources(weights: Mapping[str, float]) -> set[str]:
    """The sources whose grades count as verdicts under these weights of sources."""
    return {source for source in GRADED if weights.get(source, 0.0) > 0}


def fit(pairs: Iterable[JudgedSession], sources: Sequence[str]) -> FallbackCalibration:
    """Fit a calibration of these fallback sources. Pairs in any order give the same bits."""
    ordered = sorted(pairs, key=lambda pair: (pair.kind, pair.arm, pair.day, pair.judge, pair.fallback))
    if not ordered:
        return FallbackCalibration(sources=tuple(sources))
    levels, effects = _fit_effects(ordered)
    by_arm: dict[str, list[JudgedSession]] = defaultdict(list)
    by_kind: dict[Kind, list[JudgedSession]] = defaultdict(list)
    for pair in ordered:
        by_arm[pair.arm].append(pair)
        by_kind[pair.kind].append(pair)
    # An arm's mean verdict includes the effects of the kinds that its own sessions are of.
    mixes = {arm: fmean(effects[pair.kind] for pair in own) for arm, own in by_arm.items()}
    overall = fmean(effects[pair.kind] for pair in ordered)
    return FallbackCalibration(
        sources=tuple(sources),
        kinds=tuple(
            _estimate(kind, own, levels=levels, effect=effects[kind], mixes=mixes, overall=overall)
            for kind, own in by_kind.items()
        ),
        latest=max(pair.day for pair in ordered),
    )


def _fit_effects(pairs: Sequence[JudgedSession]) -> tuple[dict[str, float], dict[Kind, float]]:
    """The level of each arm and the effect of each kind in verdict = level + effect + noise, effects shrunk towards 0.

    By alternating least squares, so that a kind is compared with other kinds of the same arms.
    """
    verdicts: dict[tuple[str, Kind], list[float]] = defaultdict(list)
    arm_pairs, kind_pairs = Counter[str](), Counter[Kind]()
    for pair in pairs:
        verdicts[pair.arm, pair.kind].append(pair.judge)
        arm_pairs[pair.arm] += 1
        kind_pairs[pair.kind] += 1
    sums = [(arm, kind, len(values), sum(values)) for (arm, kind), values in verdicts.items()]
    levels, effects = dict.fromkeys(arm_pairs, 0.0), dict.fromkeys(kind_pairs, 0.0)
    for _ in range(ITERATIONS):
        levels = dict.fromkeys(arm_pairs, 0.0)
        for arm, kind, n, total in sums:
            levels[arm] += (total - n * effects[kind]) / arm_pairs[arm]
        effects = dict.fromkeys(kind_pairs, 0.0)
        for arm, kind, n, total in sums:
            effects[kind] += (total - n * levels[arm]) / (kind_pairs[kind] + PRIOR_PAIRS)
    return levels, effects


def _estimate(
    kind: Kind,
    pairs: Sequence[JudgedSession],
    *,
    levels: Mapping[str, float],
    effect: float,
    mixes: Mapping[str, float],
    overall: float,
) -> KindEstimate:
    """The estimate of one kind. `mixes` has the mean effect of each arm's pairs, `overall` that of all pairs."""
    residuals: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        residuals[pair.arm].append(pair.judge - levels[pair.arm] - effect)
    shift = variance = 0.0
    if kind[0] != ABSTAINED:
        gaps = [pair.judge - pair.fallback for pair in pairs]
        shift = _shrunk(gaps)
        squares = sum((gap - shift) ** 2 for gap in gaps)
        variance = (squares + PRIOR_PAIRS * PRIOR_VARIANCE) / (len(gaps) + PRIOR_PAIRS)
    return KindEstimate(
        source=kind[0],
        reason=kind[1],
        shift=shift,
        deviation=variance**0.5,
        difference=effect - overall,
        by_arm={arm: effect + _shrunk(residuals.get(arm, [])) - mix for arm, mix in mixes.items()},
        pairs={arm: len(own) for arm, own in residuals.items()},
    )


def _shrunk(values: Sequence[float]) -> float:
    """The mean of the values, as if PRIOR_PAIRS zeros had been seen too."""
    return sum(values) / (len(values) + PRIOR_PAIRS)
