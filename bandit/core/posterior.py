"""From integer buckets to Beta posteriors, folded when read; nothing here is stored.

With λ = 2^(−1/H), H the half-life in days, and for arm a on day t:

    α = κ·m_a     + e·Σ_source w_source·Σ_day λ^(t−day)·S
    β = κ·(1−m_a) + e·Σ_source w_source·Σ_day λ^(t−day)·(N−S)

Decay is by time and at read, so that an idle arm is not eroded by the others' updates (I73) and a late correction is
exact. The prior's centre m_a is the arm's own long-run mean, so that a drought does not lift a weak arm (I74):

    m_a = (κ·μ + e·S_long) / (κ + e·N_long)      the same sums with the long half-life
    μ   = (κ·½ + e·ΣS_long) / (κ + e·ΣN_long)    over all arms: the bandit's mean
    e   = μ(1−μ) / σ²                            σ² within arms, of judge and human grades; clipped to [1, 8]

μ and e are shared by the arms, and read from the days before t only: a reward of day t moves its own arm and leaves
every other bit-identical. A graded reward counts as α += r, β += 1 − r, never as a bit (I69).

A policy may ask for more of the same, each of it nothing unless asked for: offsets for graders that are off and a
baseline for circumstances that are not the arm's doing (bandit.core.rectify), less weight for an arm that had little to
do with a session, caps on how much evidence may amount to, and a price on cost.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property

import numpy as np
from scipy.special import betaincinv

from bandit.core.propensity import p_best
from bandit.core.rectify import Stratum, check_offsets, rectified
from bandit.core.table import Floats, Row, Table, positions, tabulate

# Sources whose spread says how much a grade is worth: they look at the work, each in its own words.
GRADED = ("human", "judge")
SCALE_RANGE = (1.0, 8.0)
# The scale starts from "no better than a coin" with this many pseudo-grades behind it, so that it moves smoothly.
SCALE_PRIOR = 10.0
TAIL = 0.05
# Evidence older than this many long half-lives is left out: a thousandth of its mass.
HALF_LIVES_READ = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How evidence is read. Half-lives in days, `prior_strength` κ in pseudo-observations, `floor` a probability.

    `evidence_scale` e is in [1, 8], or None to estimate it. `weights` maps a source to [0, 1]; a source that is not
    named weighs nothing. `rectifier` maps (arm, source, stratum) to what its rewards are moved by, in [−1, 1]; empty,
    every bit is that of the ledger's sums. `baseline` does the same for contexts. `version` is the caller's name for
    all of this.

    `salience_floor` f in [0, 1]: a reward of salience x weighs f + (1 − f)·x. `caps` maps a source to the most
    pseudo-observations it may amount to in one arm: what is beyond scales all of it down. `evidence_cap` is the most
    that all of an arm's may amount to, the newest first: older days than that are left out, so that a new reward can
    still move the mean (I76). `cost_weight` is reward lost per dollar of a session's cost.
    Raises ValueError for an offset out of range, or of human grades: those are never moved.
    """

    half_life: float = 21.0
    long_run_half_life: float = 180.0
    prior_strength: float = 12.0
    evidence_scale: float | None = None
    floor: float = 0.01
    weights: Mapping[str, float]
    version: str = ""
    # Not in the repr, which a posterior is named by: that of a policy without it stays as it was.
    rectifier: Mapping[Stratum, float] = field(default_factory=dict, repr=False)
    baseline: Mapping[str, float] = field(default_factory=dict, repr=False)
    salience_floor: float = field(default=0.3, repr=False)
    caps: Mapping[str, float] = field(default_factory=dict, repr=False)
    evidence_cap: float | None = field(default=None, repr=False)
    cost_weight: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        check_offsets(self.rectifier)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEvidence:
    """What one source adds to one arm: `n` rewards ever read, `pseudo` = e·w·Σλ^age·N, `mean` of the n in [0, 1]."""

    source: str
    n: int
    pseudo: float
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPosterior:
    """Beta(`alpha`, `beta`) of one arm; `low` and `high` bound the central 90 %; evidence in order of source."""

    arm: str
    alpha: float
    beta: float
    mean: float
    low: float
    high: float
    long_run_mean: float
    evidence: tuple[SourceEvidence, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """The arms' posteriors of one bandit on one day, as columns in the order of `names` (sorted)."""

    names: tuple[str, ...]
    alpha: Floats
    beta: Floats
    long_run_mean: Floats
    mean: float
    evidence_scale: float
    day: date
    policy: Policy
    evidence: Mapping[str, tuple[SourceEvidence, ...]]

    @cached_property
    def arms(self) -> Mapping[str, ArmPosterior]:
        low, high = (betaincinv(self.alpha, self.beta, tail) for tail in (TAIL, 1 - TAIL))
        return {
            name: ArmPosterior(
                arm=name,
                alpha=float(self.alpha[i]),
                beta=float(self.beta[i]),
                mean=float(self.alpha[i] / (self.alpha[i] + self.beta[i])),
                low=float(low[i]),
                high=float(high[i]),
                long_run_mean=float(self.long_run_mean[i]),
                evidence=self.evidence.get(name, ()),
            )
            for i, name in enumerate(self.names)
        }

    @cached_property
    def version(self) -> str:
        """A name for exactly these numbers: the same bits, day, arms and policy give the same version."""
        text = "\n".join((self.policy.version, repr(self.policy), self.day.isoformat(), *self.names))
        return hashlib.sha256(text.encode() + self.alpha.tobytes() + self.beta.tobytes()).hexdigest()[:16]

    def chance_of_best(self, names: Iterable[str]) -> dict[str, float]:
        """P(best) among `names`, by quadrature, in the order of the names. Empty for none."""
        chosen, position = sorted(set(names)), positions(self.names)
        if not chosen:
            return {}
        at = [position[name] for name in chosen]
        return dict(zip(chosen, p_best(self.alpha[at], self.beta[at]).tolist(), strict=True))


def oldest_day(long_run_half_life: float, today: date) -> date:
    """The first day whose rewards still count on the day `today`; the half-life is in days."""
    return date.fromordinal(max(1, today.toordinal() - math.floor(HALF_LIVES_READ * long_run_half_life)))


def fold(rows: Iterable[Row], *, arms: Iterable[str], policy: Policy, today: date) -> Posterior:
    """The posterior of every arm in `arms` on the day `today`, from rows in any order; later days, and days too old to
    count, are left out.

    The bits depend on the sums of n, s and q for each (arm, source, day) only (with a rectifier: and stratum): rows of
    zeros, their order and how they are split make no difference. Raises KeyError for a row of an arm not in `arms`.
    """
    names = tuple(sorted(set(arms)))
    table = _read(rows, names, policy, today)
    scale = policy.evidence_scale or _scale(table)
    evidence, table = table, _charged(table, policy.cost_weight)
    short, long = (
        _capped(table, _weight(table, policy) * np.exp2(-table.age / half_life), scale, policy.caps)
        for half_life in (policy.half_life, policy.long_run_half_life)
    )
    if policy.evidence_cap is not None:
        short = _newest(table, short, policy.evidence_cap / scale)
    mean = _mean(table, long, scale, policy.prior_strength)
    n_long, s_long = table.by_arm(long * table.n), table.by_arm(long * table.s)
    prior = policy.prior_strength
    centre = (prior * mean + scale * s_long) / (prior + scale * n_long)
    return Posterior(
        names=names,
        alpha=prior * centre + scale * table.by_arm(short * table.s),
        beta=prior * (1 - centre) + scale * table.by_arm(short * table.f),
        long_run_mean=centre,
        mean=mean,
        evidence_scale=scale,
        day=today,
        policy=policy,
        evidence=_evidence(evidence, scale * short),
    )


def plain_means(rows: Iterable[Row], *, arms: Iterable[str], policy: Policy, today: date) -> dict[str, float]:
    """What `fold` reads of each arm, without prior and decay: the mean of its rewards, moved and charged as the policy
    says, each by its weight; in [0, 1]. An arm without rewards that count has none.
    """
    names = tuple(sorted(set(arms)))
    table = _charged(_read(rows, names, policy, today), policy.cost_weight)
    weight = _weight(table, policy)
    n, s = table.by_arm(weight * table.n), table.by_arm(weight * table.s)
    return {name: float(s[i] / n[i]) for i, name in enumerate(names) if n[i] > 0}


def _read(rows: Iterable[Row], names: tuple[str, ...], policy: Policy, today: date) -> Table:
    """The rows that still count, moved by the rectifier and the baseline."""
    oldest = oldest_day(policy.long_run_half_life, today)
    read = [row for row in rows if oldest <= row.day <= today]
    moved = rectified(read, policy.rectifier, policy.baseline) if policy.rectifier or policy.baseline else read
    return tabulate(moved, names, today)


def _weight(table: Table, policy: Policy) -> Floats:
    """What a reward of each row counts, in [0, 1], before decay."""
    source: Floats = np.array([policy.weights.get(source, 0.0) for source in table.sources])[table.source]
    return source * (1 - (1 - policy.salience_floor) * (1 - table.salience))


def _capped(table: Table, weight: Floats, scale: float, caps: Mapping[str, float]) -> Floats:
    """The weights, scaled down where what a source amounts to in an arm is over its cap."""
    if not caps or not len(weight):
        return weight
    most = np.array([caps.get(source, math.inf) for source in table.sources])[table.source]
    slot = table.arm * len(table.sources) + table.source
    total = np.bincount(slot, weights=scale * weight * table.n)[slot]
    over = total > most
    kept: Floats = weight * np.where(over, most / np.where(over, total, 1.0), 1.0)
    return kept


def _newest(table: Table, weight: Floats, most: float) -> Floats:
    """The weights of each arm's newest rewards that come to `most` rewards in all; 0 for older ones."""
    kept = weight.copy()
    for arm in np.flatnonzero(table.by_arm(weight * table.n) > most):
        at = np.flatnonzero(table.arm == arm)
        at = at[np.argsort(table.age[at], kind="stable")]
        amount = weight[at] * table.n[at]
        before = np.cumsum(amount) - amount
        kept[at] *= np.clip(most - before, 0, amount) / np.where(amount > 0, amount, 1.0)
    return kept


def _charged(table: Table, per_dollar: float) -> Table:
    """The rewards less their cost: S' = clip(S − k·C, 0, N). An unknown cost is taken for the arm's mean known one, or
    where it has none for the mean of all; it is never nothing.
    """
    if not per_dollar or not table.costed.sum():
        return table
    overall = table.cost.sum() / table.costed.sum()
    known = table.by_arm(table.costed)
    usual = np.where(known > 0, table.by_arm(table.cost) / np.maximum(known, 1), overall)
    cost = table.cost + (table.n - table.costed) * usual[table.arm]
    s = np.clip(table.s - per_dollar * cost, 0, table.n)
    return replace(table, s=s, f=table.n - s)


def _mean(table: Table, long: Floats, scale: float, prior: float) -> float:
    """μ, from the days before today."""
    past = np.where(table.age > 0, long, 0.0)
    n, s = float((past * table.n).sum()), float((past * table.s).sum())
    return (prior / 2 + scale * s) / (prior + scale * n)


def _scale(table: Table) -> float:
    """The scale e = μ(1−μ)/σ² of past judge and human grades, σ² = Σ(Q − S²/N) / Σ(N − 1) within arms."""
    graded = np.isin(table.source, [i for i, source in enumerate(table.sources) if source in GRADED])
    past = np.where((table.age > 0) & graded, 1.0, 0.0)
    n, s, q = (table.by_arm(past * column) for column in (table.n, table.s, table.q))
    if not n.sum():
        return SCALE_RANGE[0]
    mean = s.sum() / n.sum()
    coin = mean * (1 - mean)
    within = np.maximum(q - s**2 / np.maximum(n, 1), 0).sum() + SCALE_PRIOR * coin
    variance = within / (np.maximum(n - 1, 0).sum() + SCALE_PRIOR)
    return float(np.clip(coin / variance, *SCALE_RANGE)) if variance > 0 else SCALE_RANGE[0]


def _evidence(table: Table, scaled: Floats) -> dict[str, tuple[SourceEvidence, ...]]:
    width = max(len(table.sources), 1)
    slot = table.arm * width + table.source
    n, s, pseudo = (np.bincount(slot, weights=values) for values in (table.n, table.s, scaled * table.n))
    found: dict[str, list[SourceEvidence]] = {}
    for at in np.flatnonzero(n):
        record = SourceEvidence(
            source=table.sources[at % width], n=int(n[at]), pseudo=float(pseudo[at]), mean=float(s[at] / n[at])
        )
        found.setdefault(table.names[at // width], []).append(record)
    return {arm: tuple(records) for arm, records in found.items()}
