"""One scale for all sources: what a fallback's grades are worth on the judge's scale, from sessions that have both.

A judged session has a fallback too: what the chain would have said without the verdict. For each line, a (source,
version, view), the arms are the units: with x and y an arm's mean fallback and mean verdict,

    r' = a + b·r + δ(arm)        y = a + b·x + δ,  δ ~ N(0, ω²)

b is a moment estimate between arms, Σu(x−x̄)(y−ȳ)/Σu(x−x̄)² less what sampling adds to either sum (Fuller 1987, 2.2),
shrunk as if PRIOR_ARMS arms had shown what single sessions suggest; a regression over sessions would shrink the arms
together. δ is the best linear prediction from the arm's own pairs (Henderson 1975): shrunk by ω²/(ω² + s²/n).

What a session's fallback weighs is R², the share of the verdicts' variance within arms that r' explains. However many
there are, those of an arm with n pairs amount to no more than n·R²/(1−R²) verdicts: what a control variate adds to n
verdicts (Cochran 1977, 7.3). With fewer than LEAST_OWN pairs they amount to σ²/V: V is the line's own variance there.

An abstention has no value. Its line says what judged abstentions of its reason were worth beside the arm's other
sessions: their mean verdict stands in for r.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Self, TypeVar

import numpy as np

from bandit.core.table import ABSTAINED, Floats

# The prior of a slope, and of ω, the scatter of arms about their line: as if so many arms had shown it.
PRIOR_ARMS = 4.0
PRIOR_SPREAD = 0.08
SLOPES = (0.0, 2.5)
# Arms whose means differ by less than this (standard deviation) say nothing of a slope.
LEAST_APART = 0.03
# How many arms have a slope to show; each counts by its trust.
LEAST_ARMS = 2.0
# R² starts from this, with so many sessions behind it.
START_WEIGHT, PRIOR_SESSIONS = 0.1, 20.0
# Verdicts within an arm scatter by this much (variance), with so many behind it.
VARIANCE, PRIOR_VERDICTS = 0.04, 10.0
# With fewer pairs of its own an arm's fallbacks are worth what the line is worth there.
LEAST_OWN = 10
# Judged abstentions of a reason that speak for the others, and how far arms' are apart before that is known.
LEAST_ABSTENTIONS = 5
ABSTENTION_SPREAD = 0.15
# So many say what leaving no trace is worth, below which no failure is read.
LEAST_FLOOR = 30
# Without new pairs for so long, what a fallback weighs is halved.
STALE_AFTER = timedelta(days=14)
STALE = 0.5
# What is added to the variance where a line stands in for another of its source.
STAND_IN = 0.04
# An arm's pairs count towards a slope by n/(n + HALF): a mean of few sessions says little of where the arm is.
HALF = 5.0
MOST_WEIGHT = 0.95
# The variance of a number in [0, 1] of which nothing is known.
UNIFORM = 1 / 12
NORMAL_90 = 1.6448536269514722
# The line that stands in for those of a source that have no pairs of their own.
ANY = "*"

Key = tuple[str, str, str]
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSession:
    """A session that has a verdict and a fallback, both in [0, 1], for one arm that ran in it.

    `source`, `version` and `view` say what the fallback is, as in the ledger; an abstention's `fallback` is 0, and is
    never read. Raises ValueError for other numbers.
    """

    arm: str
    source: str
    version: str
    view: str
    fallback: float
    judge: float
    day: date

    def __post_init__(self) -> None:
        if not (0 <= self.fallback <= 1 and 0 <= self.judge <= 1):
            raise ValueError(f"a judged session has two grades in [0, 1]; got {self}")

    @property
    def key(self) -> Key:
        return self.source, self.version, self.view


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationLine:
    """The map of one (source, version, view): r' = `intercept` + `slope`·r + `offsets`[arm].

    `pairs` by arm; `low` and `high` bound the slope's central 90 %. `centre` is the mean fallback x̄ of the arms;
    `doubt` and `slope_doubt` are the variances of the level there and of the slope, `spread` is ω², `residual` s² of
    single sessions about their arm. `widened` makes up for ω² being known from few arms (Student's quantile for the
    normal one, squared). `backwards`: the slope may be nothing or less, so that the line weighs nothing.
    """

    source: str
    version: str
    view: str
    slope: float
    intercept: float
    low: float
    high: float
    centre: float
    doubt: float
    slope_doubt: float
    spread: float
    residual: float
    widened: float = 1.0
    backwards: bool = False
    offsets: Mapping[str, float] = field(default_factory=dict)
    pairs: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.source, self.version, self.view

    @property
    def n(self) -> int:
        return sum(self.pairs.values())

    @property
    def stands_in(self) -> bool:
        """Whether it reads what has no line of its own."""
        return self.view == ANY

    def value(self, arm: str, fallback: float) -> float:
        """r', not clipped."""
        return self.intercept + self.offsets.get(arm, 0.0) + self.slope * fallback

    def clipped(self, arm: str, fallback: float) -> float:
        """The same of one session, in [0, 1]. What a bandit reads is clipped as a sum."""
        return min(max(self.value(arm, fallback), 0.0), 1.0)

    def doubt_at(self, arm: str, fallback: float) -> float:
        """The variance of the level at an arm of this mean fallback, from all but its own pairs; of an abstention, for
        which nothing else is counted, from its own as well.
        """
        doubt = self.doubt + (fallback - self.centre) ** 2 * self.slope_doubt
        n = self.pairs.get(arm, 0) if self.source == ABSTAINED else 0
        left = 1 - _shrinkage(self.spread, self.residual, n) if n else 1.0
        return min(self.widened * (left * self.spread + left**2 * doubt), UNIFORM)

    def error(self, arm: str, fallback: float) -> float:
        """The standard deviation of one session's verdict about r'."""
        return float(np.sqrt(self.residual + self.doubt_at(arm, fallback)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """All that a calibration says: its lines, and what each of the `sources` that it reads weighs (R²) in [0, 1].

    `variance` σ² of verdicts within arms. `latest` is the day of the newest pair. Of the views `floored` no arm's mean
    is below `least`. Without any line it is the start (`start`): nothing is known of any source yet.
    """

    sources: tuple[str, ...]
    floored: tuple[str, ...] = ()
    lines: tuple[CalibrationLine, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    variance: float = VARIANCE
    latest: date | None = None

    @property
    def is_start(self) -> bool:
        return not self.lines

    @property
    def reads_abstentions(self) -> bool:
        """Whether enough abstentions were judged to say what the others are worth."""
        return any(line.source == ABSTAINED for line in self.lines)

    @property
    def by_key(self) -> dict[Key, CalibrationLine]:
        return {line.key: line for line in self.lines}

    @property
    def own_lines(self) -> list[CalibrationLine]:
        """Those that stand in for no other."""
        return [line for line in self.lines if not line.stands_in]

    @property
    def n(self) -> int:
        """How many pairs it was fitted from."""
        return sum(line.n for line in self.own_lines)

    def is_stale(self, today: date) -> bool:
        """Whether no pair has come for STALE_AFTER."""
        return self.latest is not None and today - self.latest > STALE_AFTER

    def line(self, key: Key) -> CalibrationLine | None:
        """The line that reads a grade of `key`."""
        return reads(self.by_key, key)

    def weights_on(self, today: date) -> dict[str, float]:
        """What a session of each source weighs: START_WEIGHT at the start, half of what it was once no pair has come
        for STALE_AFTER.
        """
        if self.is_start:
            return dict.fromkeys(self.sources, START_WEIGHT)
        left = STALE if self.is_stale(today) else 1.0
        return {source: left * weight for source, weight in self.weights.items()}

    def weighed(self, weights: Mapping[str, float], today: date) -> dict[str, float]:
        """These weights, but for what the sources that it reads have earned; one that weighs nothing stays off."""
        earned = self.weights_on(today)
        return {source: earned.get(source, weight) if weight else 0.0 for source, weight in weights.items()}

    def pairs(self, arm: str, source: str) -> int:
        """How many judged sessions of an arm have this fallback, over all its lines."""
        return sum(line.pairs.get(arm, 0) for line in self.own_lines if line.source == source)

    def cap(self, arm: str, source: str, variance: float) -> float:
        """The most verdicts that a source's fallbacks amount to in an arm where the line has this variance."""
        n, weight = self.pairs(arm, source), self.weights.get(source, 0.0)
        return n * weight / (1 - weight) if n >= LEAST_OWN else self.variance / variance

    @property
    def least(self) -> float:
        """What judged abstentions were worth, below which no failure is read: else it would pay to leave no trace. 0
        while too few were judged.
        """
        line = self.by_key.get((ABSTAINED, ANY, ANY))
        return 0.0 if line is None or line.n < LEAST_FLOOR else line.value("", line.centre)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON, which `from_json` reads."""
        return {
            "lines": [asdict(line) for line in self.lines],
            "sources": list(self.sources),
            "floored": list(self.floored),
            "weights": dict(self.weights),
            "variance": self.variance,
            "latest": None if self.latest is None else self.latest.isoformat(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        latest = data["latest"]
        return cls(
            sources=tuple(data["sources"]),
            floored=tuple(data["floored"]),
            lines=tuple(CalibrationLine(**line) for line in data["lines"]),
            weights=data["weights"],
            variance=data["variance"],
            latest=None if latest is None else date.fromisoformat(latest),
        )


def reads(lines: Mapping[Key, Found], key: Key) -> Found | None:
    """What reads a grade of `key`: the line of its own, or the one that stands in for it."""
    own = lines.get(key)
    return lines.get((key[0], ANY, ANY)) if own is None else own


def fit(pairs: Iterable[JudgedSession], at_start: Scale) -> Scale:
    """The scale that these pairs show, which begins as `at_start` and is that where there are none. Pairs in any order
    give the same bits. Abstentions are read where enough were judged.
    """
    held = sorted(pairs, key=lambda pair: (pair.key, pair.arm, pair.day, pair.judge, pair.fallback))
    if not held:
        return at_start
    held = _beside_the_others(held)
    groups: dict[Key, list[JudgedSession]] = {}
    for pair in held:
        groups.setdefault(pair.key, []).append(pair)
        groups.setdefault((pair.source, ANY, ANY), []).append(pair)
    lines = [
        _line(key, own) for key, own in sorted(groups.items()) if key[0] != ABSTAINED or len(own) >= LEAST_ABSTENTIONS
    ]
    scale = replace(
        at_start,
        lines=tuple(lines),
        variance=_by_arm(held).yy,
        latest=max(pair.day for pair in held),
    )
    return replace(scale, weights={source: _explained(scale, held, source) for source in scale.sources})


def start(source: str, *, shift: float) -> CalibrationLine:
    """The line of a source before any pair: slope 1, moved by `shift`, which is what is between the means of all its
    grades and of all verdicts. Nobody knows how far that holds for one arm.
    """
    return CalibrationLine(
        source=source,
        version=ANY,
        view=ANY,
        slope=1.0,
        intercept=shift,
        low=SLOPES[0],
        high=SLOPES[1],
        centre=0.0,
        doubt=0.0,
        slope_doubt=0.0,
        spread=VARIANCE,
        residual=VARIANCE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arms:
    """The arms of a line: n pairs, mean fallback x, mean verdict y; and the moments within arms of (x, y) per pair."""

    names: tuple[str, ...]
    n: Floats
    x: Floats
    y: Floats
    xx: float
    xy: float
    yy: float


def _by_arm(pairs: Sequence[JudgedSession]) -> _Arms:
    names, at = np.unique([pair.arm for pair in pairs], return_inverse=True)
    x, y = (np.array([getattr(pair, name) for pair in pairs]) for name in ("fallback", "judge"))
    n = np.bincount(at).astype(np.float64)
    mean_x, mean_y = np.bincount(at, weights=x) / n, np.bincount(at, weights=y) / n
    off_x, off_y = x - mean_x[at], y - mean_y[at]
    freedom = max(len(pairs) - len(names), 0)
    # Verdicts scatter by at least something: three that happen to be alike are no proof of an exact line.
    yy = (float(off_y @ off_y) + PRIOR_VERDICTS * VARIANCE) / (freedom + PRIOR_VERDICTS)
    xx, xy = (float(off_x @ off) / (freedom + PRIOR_VERDICTS) for off in (off_x, off_y))
    return _Arms(names=tuple(names.tolist()), n=n, x=mean_x, y=mean_y, xx=xx, xy=xy, yy=yy)


def _beside_the_others(pairs: Sequence[JudgedSession]) -> list[JudgedSession]:
    """The pairs, an abstention's fallback being the mean verdict of its arm's other sessions, or of all arms'."""
    sums: dict[str, tuple[float, int]] = {}
    for pair in pairs:
        for name in ("", pair.arm) if pair.source != ABSTAINED else ():
            total, n = sums.get(name, (0.0, 0))
            sums[name] = (total + pair.judge, n + 1)
    means = {name: total / n for name, (total, n) in sums.items()}
    usual = means.get("", 0.5)
    return [replace(pair, fallback=means.get(pair.arm, usual)) if pair.source == ABSTAINED else pair for pair in pairs]


def _line(key: Key, pairs: Sequence[JudgedSession]) -> CalibrationLine:
    from scipy.special import stdtrit

    arms = _by_arm(pairs)
    trust = arms.n / (arms.n + HALF)
    silent = key[0] == ABSTAINED
    slope, apart, worth = _slope(arms, trust)
    residual = max(arms.yy - 2 * slope * arms.xy + slope**2 * arms.xx, VARIANCE / 4)
    spread = _spread(arms, trust, slope, residual, prior=ABSTENTION_SPREAD if silent else PRIOR_SPREAD)
    noise = spread + residual / arms.n
    precision = 1 / noise
    centre = float(precision @ arms.x / precision.sum())
    level = float(precision @ arms.y / precision.sum())
    slope_doubt = min(float(trust @ noise / trust.sum()) / worth, (SLOPES[1] - SLOPES[0]) ** 2 * UNIFORM)
    half = NORMAL_90 * float(np.sqrt(slope_doubt))
    left = arms.y - level - slope * (arms.x - centre)
    kept = _shrinkage(spread, residual, arms.n)
    # Whether the slope may be nothing or less is asked of enough arms only, and of such as are apart enough.
    tells = not silent and apart >= LEAST_APART**2 and trust.sum() >= LEAST_ARMS
    return CalibrationLine(
        source=key[0],
        version=key[1],
        view=key[2],
        slope=slope,
        intercept=level - slope * centre,
        low=slope - half,
        high=slope + half,
        centre=centre,
        doubt=float(1 / precision.sum()),
        slope_doubt=slope_doubt,
        spread=spread,
        residual=residual,
        widened=float(stdtrit(_freedom(trust) + PRIOR_ARMS, 0.95) / NORMAL_90) ** 2,
        backwards=bool(tells and slope - half <= 0),
        offsets=dict(zip(arms.names, (kept * left).tolist(), strict=True)),
        pairs=dict(zip(arms.names, arms.n.astype(int).tolist(), strict=True)),
    )


def _slope(arms: _Arms, trust: Floats) -> tuple[float, float, float]:
    """b, the variance of the arms' true mean fallbacks, and Σu(x − x̄)² with the prior's."""
    whole = float(trust.sum())
    x, y = arms.x - trust @ arms.x / whole, arms.y - trust @ arms.y / whole
    # What sampling alone puts into the weighted sums, E Σu(x̄_k − x̄)² where all arms are alike.
    sampled = float((trust * (1 - trust / whole)) @ (1 / arms.n))
    apart = max(float(trust @ x**2) - sampled * arms.xx, 0.0)
    together = float(trust @ (x * y)) - sampled * arms.xy
    each = apart / max(whole - 1, 1.0)
    prior = PRIOR_ARMS * max(each, LEAST_APART**2)
    slope = (together + _prior_slope(arms) * prior) / (apart + prior)
    return float(np.clip(slope, *SLOPES)), each, apart + prior


def _prior_slope(arms: _Arms) -> float:
    """What b is before any two arms were compared: 1, or as far as a fallback explains verdicts within arms (R²), the
    slope that makes up for its noise, var(y)/cov(x, y).
    """
    if arms.xy <= 0 or arms.xx <= 0:
        return 1.0
    explained = arms.xy**2 / (arms.xx * arms.yy)
    structural = float(np.clip(arms.yy / arms.xy, *SLOPES))
    return 1 + (structural - 1) * explained / (explained + START_WEIGHT)


def _spread(arms: _Arms, trust: Floats, slope: float, residual: float, *, prior: float) -> float:
    """ω², from how far the arms are off their line beyond what sampling does, starting from a prior ω."""
    whole = float(trust.sum())
    off = (arms.y - trust @ arms.y / whole) - slope * (arms.x - trust @ arms.x / whole)
    beyond = float(trust @ off**2) - residual * float((trust * (1 - trust / whole)) @ (1 / arms.n))
    freedom = _freedom(trust)
    return (max(beyond, 0.0) * (freedom > 0) + PRIOR_ARMS * prior**2) / (freedom + PRIOR_ARMS)


def _freedom(trust: Floats) -> float:
    return max(float(trust.sum()) - 2, 0.0)


def _shrinkage(spread: float, residual: float, n: Any) -> Any:
    return spread / (spread + residual / n)


def _explained(scale: Scale, pairs: Sequence[JudgedSession], source: str) -> float:
    """R² within arms of the verdicts on r', over all lines of the source, shrunk towards START_WEIGHT."""
    own = [pair for pair in pairs if pair.source == source]
    if not own:
        return 0.0
    lines = scale.by_key
    names, at = np.unique([pair.arm for pair in own], return_inverse=True)
    r, y = np.array([(lines[pair.key].clipped(pair.arm, pair.fallback), pair.judge) for pair in own]).T
    n = np.bincount(at)
    off_r, off_y = (each - (np.bincount(at, weights=each) / n)[at] for each in (r, y))
    freedom = len(own) - len(names)
    rr, ry, yy = off_r @ off_r, off_r @ off_y, off_y @ off_y
    explained = float(ry**2 / (rr * yy)) if rr > 0 and yy > 0 and ry > 0 else 0.0
    if freedom > 1:
        # Less what chance alone explains.
        explained = max(1 - (1 - explained) * freedom / (freedom - 1), 0.0)
    shrunk = (max(freedom, 0) * explained + PRIOR_SESSIONS * START_WEIGHT) / (max(freedom, 0) + PRIOR_SESSIONS)
    return min(shrunk, MOST_WEIGHT)
