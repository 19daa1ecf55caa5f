"""One scale for all sources: maps fallback grades to the judge's scale, using sessions that have both.

A judged session also has a fallback: the grade that the chain of sources gives without the verdict. For each
calibration line, a (source, version, view), the arms are the units. With x and y an arm's mean fallback and verdict,

    r' = a + b·r + δ(arm)        y = a + b·x + δ,  δ ~ N(0, ω²)

b is a moment estimate between arms, Σu(x−x̄)(y−ȳ)/Σu(x−x̄)² less what sampling adds to either sum (Fuller 1987, 2.2),
with the trust u = n/(n + HALF_TRUST) in an arm with n pairs, and shrunk as if PRIOR_ARMS arms had shown what single
sessions suggest; a regression over sessions would shrink the arms together. s² is the variance of a session's verdict
about r' within its arm. δ is the best linear prediction from the arm's own pairs (Henderson 1975): shrunk by
ω²/(ω² + s²/n).

A fallback's weight is R², the share of the verdicts' variance within arms that r' explains. In an arm with n pairs all
fallbacks together count for at most n·R²/(1−R²) verdicts: what a control variate adds to n verdicts (Cochran 1977,
7.3). With fewer than MIN_OWN_PAIRS pairs they count for at most σ²/V, V the variance of the line at that arm.

An abstention has no value. For its line, r is the mean verdict of the arm's other sessions, so that the line says what
judged abstentions with its reason were worth in comparison.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, timedelta
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from bandit.core.table import ABSTAINED, Floats

# The priors of the slope and of ω, the scatter of arms about their line, are worth this many arms.
PRIOR_ARMS = 4.0
PRIOR_SPREAD = 0.08
SLOPE_RANGE = (0.0, 2.5)
# Arms whose true mean fallbacks differ by less than this (standard deviation) don't determine a slope.
MIN_ARM_DEVIATION = 0.03
# The least total trust of arms for their slope to count as backwards.
MIN_TRUST = 2.0
# The prior of R², and the sessions it is worth.
START_WEIGHT, PRIOR_SESSIONS = 0.1, 20.0
# The prior of the variance of verdicts within an arm, and the verdicts it is worth.
PRIOR_VARIANCE, PRIOR_VERDICTS = 0.04, 10.0
# The least pairs in an arm for its fallbacks to be capped by R² rather than by the line's variance.
MIN_OWN_PAIRS = 10
# The least judged abstentions of a reason for a line, and its prior ω.
MIN_ABSTENTIONS = 5
ABSTENTION_SPREAD = 0.15
# The least judged abstentions for their worth to be the floor of failures.
MIN_FLOOR_ABSTENTIONS = 30
# Without new pairs for this long, the weights of fallbacks are multiplied by STALE_FACTOR.
STALE_AFTER = timedelta(days=14)
STALE_FACTOR = 0.5
# The variance that is added if a line stands in for another one of its source.
STAND_IN_VARIANCE = 0.04
# An arm with n pairs has the trust n/(n + HALF_TRUST) in a slope: a mean of few sessions is imprecise.
HALF_TRUST = 5.0
MAX_WEIGHT = 0.95
# The variance of a uniform number in [0, 1].
UNIFORM_VARIANCE = 1 / 12
NORMAL_90 = 1.6448536269514722
# The version and view of the line that stands in for lines of its source without pairs of their own.
ANY = "*"

Key = tuple[str, str, str]
LineOrIndex = TypeVar("LineOrIndex")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSession:
    """A session's verdict and fallback, both in [0, 1], for one arm that ran in it.

    `source`, `version` and `view` identify the fallback, as in the ledger; an abstention's `fallback` is 0 and ignored.
    Raises ValueError for grades out of range.
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

    `pairs` has the number of pairs by arm. `low` and `high` bound the slope's central 90 %. `centre` is the mean
    fallback x̄ of the arms, `doubt` the variance of the line's value there, `slope_doubt` the variance of the slope,
    `spread` is ω² and `residual` s². `widened` is the factor by which variances grow because ω² is estimated from few
    arms (the squared ratio of Student's quantile to the normal one). `backwards`: the slope may be 0 or less, so that
    the line has no weight.
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
        """Whether it maps those grades of its source whose version and view have no line."""
        return self.view == ANY

    def value(self, arm: str, fallback: float) -> float:
        """The r' of one session or of an arm's mean, not clipped."""
        return self.intercept + self.offsets.get(arm, 0.0) + self.slope * fallback

    def clipped(self, arm: str, fallback: float) -> float:
        """The r' of one session, in [0, 1]. A bandit clips sums instead."""
        return min(max(self.value(arm, fallback), 0.0), 1.0)

    def level_variance_at(self, arm: str, fallback: float) -> float:
        """Variance of the mean verdict that the line predicts for an arm with this mean fallback; at most 1/12.

        The arm's own pairs don't reduce it, except for abstentions, which have no other evidence.
        """
        line_variance = self.doubt + (fallback - self.centre) ** 2 * self.slope_doubt
        n = self.pairs.get(arm, 0) if self.source == ABSTAINED else 0
        # The prediction moves from the line to the mean of the arm's n pairs by the fraction 1 − remaining. That leaves
        # the variance remaining·ω² of δ, and remaining times the line's error.
        remaining = 1 - _shrinkage(self.spread, self.residual, n) if n else 1.0
        return min(self.widened * (remaining * self.spread + remaining**2 * line_variance), UNIFORM_VARIANCE)

    def error(self, arm: str, fallback: float) -> float:
        """Standard deviation of one session's verdict about r'."""
        return float(np.sqrt(self.residual + self.level_variance_at(arm, fallback)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A calibration: its lines, and the weight R² in [0, 1] of each of the `sources` that it maps.

    `variance` is σ² of verdicts within arms, `latest` the day of the newest pair. In the views `floored` no arm's mean
    is below `failure_floor`. A scale without lines is the start, before any pair (`starting_line`).
    """

    sources: tuple[str, ...]
    floored: tuple[str, ...] = ()
    lines: tuple[CalibrationLine, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    variance: float = PRIOR_VARIANCE
    latest: date | None = None

    @property
    def is_start(self) -> bool:
        return not self.lines

    @property
    def reads_abstentions(self) -> bool:
        """Whether enough abstentions were judged to map the others."""
        return any(line.source == ABSTAINED for line in self.lines)

    @property
    def by_key(self) -> dict[Key, CalibrationLine]:
        return {line.key: line for line in self.lines}

    @property
    def own_lines(self) -> list[CalibrationLine]:
        """The lines of one version and view, without those that stand in for missing ones."""
        return [line for line in self.lines if not line.stands_in]

    @property
    def n(self) -> int:
        """Number of pairs it was fitted to."""
        return sum(line.n for line in self.own_lines)

    def is_stale(self, today: date) -> bool:
        """Whether the newest pair is older than STALE_AFTER."""
        return self.latest is not None and today - self.latest > STALE_AFTER

    def line(self, key: Key) -> CalibrationLine | None:
        """The line that maps a grade of `key`."""
        return find_line(self.by_key, key)

    def weights_on(self, today: date) -> dict[str, float]:
        """Weight of a session by source: START_WEIGHT at the start, halved if the scale is stale."""
        if self.is_start:
            return dict.fromkeys(self.sources, START_WEIGHT)
        factor = STALE_FACTOR if self.is_stale(today) else 1.0
        return {source: factor * weight for source, weight in self.weights.items()}

    def replace_weights(self, weights: Mapping[str, float], today: date) -> dict[str, float]:
        """The policy's `weights` by source, but the scale's for its sources; 0 stays 0: the policy turned it off."""
        own = self.weights_on(today)
        return {source: own.get(source, weight) if weight else 0.0 for source, weight in weights.items()}

    def count_pairs(self, arm: str, source: str) -> int:
        """Number of an arm's judged sessions with a fallback of this source."""
        return sum(line.pairs.get(arm, 0) for line in self.own_lines if line.source == source)

    def cap(self, arm: str, source: str, variance: float) -> float:
        """The most verdicts that all fallbacks of a source may count for in an arm.

        n·R²/(1 − R²), with R² the source's weight, if the arm has n ≥ MIN_OWN_PAIRS pairs. Otherwise σ²/V, with σ² the
        scale's variance and V the parameter, the `variance` of the line at this arm.
        """
        n, weight = self.count_pairs(arm, source), self.weights.get(source, 0.0)
        return n * weight / (1 - weight) if n >= MIN_OWN_PAIRS else self.variance / variance

    @property
    def failure_floor(self) -> float:
        """The least mean that an arm's failures are read as: the mean verdict of judged abstentions, 0 if too few were
        judged. Without such a floor, leaving no trace would pay more than failing.
        """
        line = self.by_key.get((ABSTAINED, ANY, ANY))
        return 0.0 if line is None or line.n < MIN_FLOOR_ABSTENTIONS else line.value("", line.centre)

    def as_json(self) -> dict[str, Any]:
        """As JSON for `from_json`."""
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


def find_line(lines: Mapping[Key, LineOrIndex], key: Key) -> LineOrIndex | None:
    """The value in `lines` for grades of `key`: its own, or that of the line that stands in; None if there is neither.

    A `key` is a (source, version, view).
    """
    own = lines.get(key)
    return lines.get((key[0], ANY, ANY)) if own is None else own


def fit(pairs: Iterable[JudgedSession], at_start: Scale) -> Scale:
    """Fit a scale to these pairs, with the sources and floored views of `at_start`; without pairs it is `at_start`.

    Pairs in any order give the same bits. Abstentions of a reason get a line from MIN_ABSTENTIONS pairs on.
    """
    ordered = sorted(pairs, key=lambda pair: (pair.key, pair.arm, pair.day, pair.judge, pair.fallback))
    if not ordered:
        return at_start
    ordered = _with_abstention_fallbacks(ordered)
    # Each pair counts for its own line, and for the line of all its source's pairs, which stands in for missing lines.
    groups: dict[Key, list[JudgedSession]] = {}
    for pair in ordered:
        groups.setdefault(pair.key, []).append(pair)
        groups.setdefault((pair.source, ANY, ANY), []).append(pair)
    lines = [
        _fit_line(key, own) for key, own in sorted(groups.items()) if key[0] != ABSTAINED or len(own) >= MIN_ABSTENTIONS
    ]
    variance, latest = _arm_moments(ordered).yy, max(pair.day for pair in ordered)
    scale = replace(at_start, lines=tuple(lines), variance=variance, latest=latest)
    return replace(scale, weights={source: _source_weight(scale, ordered, source) for source in scale.sources})


def starting_line(source: str, *, shift: float) -> CalibrationLine:
    """The line of a source before any pair: slope 1, shifted by `shift`, the mean verdict less the mean of its grades.
    Its spread is wide, as single arms may differ.
    """
    return CalibrationLine(
        source=source,
        version=ANY,
        view=ANY,
        slope=1.0,
        intercept=shift,
        low=SLOPE_RANGE[0],
        high=SLOPE_RANGE[1],
        centre=0.0,
        doubt=0.0,
        slope_doubt=0.0,
        spread=PRIOR_VARIANCE,
        residual=PRIOR_VARIANCE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ArmMoments:
    """Per arm, in the order of `names`: `n` pairs, mean fallback `x`, mean verdict `y`.

    Over all arms: the variance `xx` of fallbacks, `yy` of verdicts, and their covariance `xy`, of single pairs within
    arms. `yy` is pooled with a prior.
    """

    names: tuple[str, ...]
    n: Floats
    x: Floats
    y: Floats
    xx: float
    xy: float
    yy: float


def _arm_moments(pairs: Sequence[JudgedSession]) -> _ArmMoments:
    names, at = np.unique([pair.arm for pair in pairs], return_inverse=True)
    x = np.array([pair.fallback for pair in pairs])
    y = np.array([pair.judge for pair in pairs])
    n = np.bincount(at).astype(np.float64)
    mean_x, mean_y = np.bincount(at, weights=x) / n, np.bincount(at, weights=y) / n
    off_x, off_y = x - mean_x[at], y - mean_y[at]
    freedom = max(len(pairs) - len(names), 0)
    # Only the verdicts' variance has a prior above 0: three equal verdicts don't prove an exact line.
    yy = (float(off_y @ off_y) + PRIOR_VERDICTS * PRIOR_VARIANCE) / (freedom + PRIOR_VERDICTS)
    xx = float(off_x @ off_x) / (freedom + PRIOR_VERDICTS)
    xy = float(off_x @ off_y) / (freedom + PRIOR_VERDICTS)
    return _ArmMoments(names=tuple(names.tolist()), n=n, x=mean_x, y=mean_y, xx=xx, xy=xy, yy=yy)


def _with_abstention_fallbacks(pairs: Sequence[JudgedSession]) -> list[JudgedSession]:
    """The pairs, with each abstention's fallback set to the mean verdict of its arm's other sessions, or of all."""
    sums: dict[str, tuple[float, int]] = {}  # of verdicts, and their number, by arm; "" for all arms together
    for pair in pairs:
        if pair.source == ABSTAINED:
            continue
        for name in ("", pair.arm):
            total, n = sums.get(name, (0.0, 0))
            sums[name] = (total + pair.judge, n + 1)
    means = {name: total / n for name, (total, n) in sums.items()}
    overall = means.get("", 0.5)
    return [
        replace(pair, fallback=means.get(pair.arm, overall)) if pair.source == ABSTAINED else pair for pair in pairs
    ]


def _fit_line(key: Key, pairs: Sequence[JudgedSession]) -> CalibrationLine:
    """The line of these pairs, at least one: first b, s² and ω² from all arms, then each arm's offset δ.

    The formulas are in the module's docstring and at `CalibrationLine`.
    """
    from scipy.special import stdtrit

    arms = _arm_moments(pairs)
    trust = arms.n / (arms.n + HALF_TRUST)
    is_abstention = key[0] == ABSTAINED
    slope, arm_variance, sum_xx = _fit_slope(arms, trust)
    residual = max(arms.yy - 2 * slope * arms.xy + slope**2 * arms.xx, PRIOR_VARIANCE / 4)
    spread = _spread(arms, trust, slope, residual, prior=ABSTENTION_SPREAD if is_abstention else PRIOR_SPREAD)
    noise = spread + residual / arms.n  # variance of each arm's mean verdict about the line
    precision = 1 / noise
    # The line goes through the precision-weighted means of the arms: the fallback `centre` and the verdict `level`.
    centre = float(precision @ arms.x / precision.sum())
    level = float(precision @ arms.y / precision.sum())
    prior_slope_variance = (SLOPE_RANGE[1] - SLOPE_RANGE[0]) ** 2 * UNIFORM_VARIANCE
    slope_doubt = min(float(trust @ noise / trust.sum()) / sum_xx, prior_slope_variance)
    half_width = NORMAL_90 * float(np.sqrt(slope_doubt))
    deviation = arms.y - level - slope * (arms.x - centre)
    shrinkage = _shrinkage(spread, residual, arms.n)
    # Only enough arms that differ enough can show that the slope may be 0 or less.
    shows_slope = not is_abstention and arm_variance >= MIN_ARM_DEVIATION**2 and trust.sum() >= MIN_TRUST
    return CalibrationLine(
        source=key[0],
        version=key[1],
        view=key[2],
        slope=slope,
        intercept=level - slope * centre,
        low=slope - half_width,
        high=slope + half_width,
        centre=centre,
        doubt=float(1 / precision.sum()),
        slope_doubt=slope_doubt,
        spread=spread,
        residual=residual,
        widened=float(stdtrit(_arm_freedom(trust) + PRIOR_ARMS, 0.95) / NORMAL_90) ** 2,
        backwards=bool(shows_slope and slope - half_width <= 0),
        offsets=dict(zip(arms.names, (shrinkage * deviation).tolist(), strict=True)),
        pairs=dict(zip(arms.names, arms.n.astype(int).tolist(), strict=True)),
    )


class _SlopeFit(NamedTuple):
    """The `slope` b, the variance between the arms' true mean fallbacks, and Σu(x − x̄)² including the prior's."""

    slope: float
    arm_variance: float
    sum_xx: float


def _fit_slope(arms: _ArmMoments, trust: Floats) -> _SlopeFit:
    """The slope b between the arms' mean fallbacks x and mean verdicts y, shrunk towards `_prior_slope`.

    b = Σu(x − x̄)(y − ȳ) / Σu(x − x̄)², with the weights u = `trust`, and each sum less what sampling adds to it.
    """
    total_trust = float(trust.sum())
    x = arms.x - trust @ arms.x / total_trust
    y = arms.y - trust @ arms.y / total_trust
    sampling = _sampling_share(arms, trust)
    sum_xx = max(float(trust @ x**2) - sampling * arms.xx, 0.0)
    sum_xy = float(trust @ (x * y)) - sampling * arms.xy
    variance = sum_xx / max(total_trust - 1, 1.0)
    # The prior is worth PRIOR_ARMS arms, whose mean fallbacks differ as much as these arms' do.
    prior_xx = PRIOR_ARMS * max(variance, MIN_ARM_DEVIATION**2)
    slope = (sum_xy + _prior_slope(arms) * prior_xx) / (sum_xx + prior_xx)
    return _SlopeFit(slope=float(np.clip(slope, *SLOPE_RANGE)), arm_variance=variance, sum_xx=sum_xx + prior_xx)


def _sampling_share(arms: _ArmMoments, trust: Floats) -> float:
    """What sampling alone adds to Σu(x − x̄)² over the arms' means, per unit of the variance of single sessions."""
    return float((trust * (1 - trust / float(trust.sum()))) @ (1 / arms.n))


def _prior_slope(arms: _ArmMoments) -> float:
    """The prior of b, from single sessions within arms, with x the fallback and y the verdict.

    It is 1 if fallbacks and verdicts don't go together. Otherwise it lies between 1 and the reverse regression's slope
    var(y)/cov(x, y), which is right if all scatter about the line is noise of the fallback. The share of that slope is
    R²/(R² + START_WEIGHT). START_WEIGHT is the R² that any fallback is assumed to have; with it the share is a half.
    """
    if arms.xy <= 0 or arms.xx <= 0:
        return 1.0
    r_squared = arms.xy**2 / (arms.xx * arms.yy)
    reverse_slope = float(np.clip(arms.yy / arms.xy, *SLOPE_RANGE))
    return 1 + (reverse_slope - 1) * r_squared / (r_squared + START_WEIGHT)


def _spread(arms: _ArmMoments, trust: Floats, slope: float, residual: float, *, prior: float) -> float:
    """ω²: the arms' squared deviations from their line less what sampling adds, pooled with the `prior` of ω.

    `residual` is s². Without degrees of freedom only the prior counts.
    """
    total_trust = float(trust.sum())
    deviation = (arms.y - trust @ arms.y / total_trust) - slope * (arms.x - trust @ arms.x / total_trust)
    excess = float(trust @ deviation**2) - residual * _sampling_share(arms, trust)
    freedom = _arm_freedom(trust)
    return (max(excess, 0.0) * (freedom > 0) + PRIOR_ARMS * prior**2) / (freedom + PRIOR_ARMS)


def _arm_freedom(trust: Floats) -> float:
    """Degrees of freedom of the arms about a line with two parameters."""
    return max(float(trust.sum()) - 2, 0.0)


def _shrinkage(spread: float, residual: float, n: Any) -> Any:
    """The share of δ in an arm's deviation from the line, ω²/(ω² + s²/n); ω² is `spread`, s² `residual`.

    The number of pairs `n` may be a number or an array.
    """
    return spread / (spread + residual / n)


def _source_weight(scale: Scale, pairs: Sequence[JudgedSession], source: str) -> float:
    """R² of verdicts y on the lines' values r' within arms, over all lines of the source, shrunk towards START_WEIGHT.

    It is 0 without pairs. An r' that goes against the verdicts explains nothing.
    """
    own = [pair for pair in pairs if pair.source == source]
    if not own:
        return 0.0
    lines = scale.by_key
    names, at = np.unique([pair.arm for pair in own], return_inverse=True)
    r, y = np.array([(lines[pair.key].clipped(pair.arm, pair.fallback), pair.judge) for pair in own]).T
    n = np.bincount(at)
    off_r = r - (np.bincount(at, weights=r) / n)[at]
    off_y = y - (np.bincount(at, weights=y) / n)[at]
    freedom = len(own) - len(names)
    rr, ry, yy = off_r @ off_r, off_r @ off_y, off_y @ off_y
    explained = float(ry**2 / (rr * yy)) if rr > 0 and yy > 0 and ry > 0 else 0.0
    if freedom > 1:
        # Adjusted for what chance alone explains.
        explained = max(1 - (1 - explained) * freedom / (freedom - 1), 0.0)
    shrunk = (max(freedom, 0) * explained + PRIOR_SESSIONS * START_WEIGHT) / (max(freedom, 0) + PRIOR_SESSIONS)
    return min(shrunk, MAX_WEIGHT)
