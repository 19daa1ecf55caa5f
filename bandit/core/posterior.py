"""From integer buckets to Beta posteriors, folded when read; nothing here is stored.

With λ = 2^(−1/H), H the half-life in days, and for arm a on day t:

    α = κ·m_a     + e·Σ_source w_source·Σ_day λ^(t−day)·S
    β = κ·(1−m_a) + e·Σ_source w_source·Σ_day λ^(t−day)·(N−S)

Decay is by time and at read, so that an idle arm is not eroded by the others' updates and a late correction is
exact. The prior's centre m_a is the arm's own long-run mean, so that a drought does not lift a weak arm:

    m_a = (κ·μ + e·S_long) / (κ + e·N_long)      the same sums with the long half-life
    μ   = (κ·½ + e·ΣS_long) / (κ + e·ΣN_long)    over all arms: the bandit's mean
    e   = μ(1−μ) / σ²                            σ² within arms, of judge and human grades; clipped to [1, 8]

μ and e are shared by the arms, and read from the days before t only: a reward of day t moves its own arm and leaves
every other bit-identical. A graded reward counts as α += r, β += 1 − r, never as a bit.

A policy may ask for more of the same, each of it nothing unless asked for: offsets for graders that are off and a
baseline for circumstances that are not the arm's doing (bandit.core.rectify), less weight for an arm that had little to
do with a session or for a grade that something speaks against, caps on how much evidence may amount to, and a price on
cost. Where change is followed (bandit.core.change) S and N begin anew at a break, and drift leaves less of the sums
with the short half-life. With a scale (bandit.core.calibration) fallbacks are read on the judge's scale, by weights
that they earned. With parts (bandit.core.pooling) μ and κ are an arm's own, by what other arms with its parts have
earned. Breaks, drift and parts, too, are read from the days before t: what parts share of a day, they share from the
next day on.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property

import numpy as np

from bandit.core.agents import AgentCaps
from bandit.core.change import ArmChanges
from bandit.core.evidence import EvidenceTable, Known
from bandit.core.policy import Policy
from bandit.core.pooling import PartsPrior, apart, pool
from bandit.core.propensity import p_best, propensities
from bandit.core.table import NO_LINE, Floats, RewardRow, Table, positions

TAIL = 0.05
# Sets of arms chosen among, whose P(best) a posterior remembers.
REMEMBERED = 16
# The parts of an arm that is not said to have any.
ALONE = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEvidence:
    """What one source adds to one arm: `n` rewards ever read, `pseudo` = e·w·Σλ^age·N, `mean` of the n in [0, 1].

    `counts` is what one of them counts, a verdict being 1, caps included. `mapped` is the mean on the judge's scale,
    None where the source is read as it stands.
    """

    source: str
    n: int
    pseudo: float
    mean: float
    counts: float = 0.0
    mapped: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPrior:
    """What an arm's two `parts` (empty for one that no other arm has) say of it: `mean`, worth `strength` pseudo-
    observations.
    """

    parts: tuple[str, str]
    mean: float
    strength: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPosterior:
    """Beta(`alpha`, `beta`) of one arm; `low` and `high` bound the central 90 %; evidence in order of source. `shared`
    where it has parts.
    """

    arm: str
    alpha: float
    beta: float
    mean: float
    low: float
    high: float
    long_run_mean: float
    evidence: tuple[SourceEvidence, ...]
    shared: SharedPrior | None = None

    @property
    def sessions(self) -> int:
        return sum(each.n for each in self.evidence)

    @property
    def observations(self) -> float:
        """What its sessions count as: pseudo-observations."""
        return sum(each.pseudo for each in self.evidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """The arms' posteriors of one bandit on one day, as columns in the order of `names` (sorted).

    `caps` says where those of agents act. Where the policy has parts, `pooled` is what they say of each arm, its
    `shared` the covariance of the posteriors.
    """

    names: tuple[str, ...]
    alpha: Floats
    beta: Floats
    long_run_mean: Floats
    mean: float
    evidence_scale: float
    day: date
    policy: Policy
    evidence: Mapping[str, tuple[SourceEvidence, ...]]
    changes: ArmChanges | None = None
    pooled: PartsPrior | None = None
    caps: AgentCaps = field(default_factory=AgentCaps)

    @cached_property
    def arms(self) -> Mapping[str, ArmPosterior]:
        from scipy.special import betaincinv

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
                shared=None
                if self.pooled is None or name not in self.policy.parts
                else SharedPrior(
                    parts=self.policy.parts[name],
                    mean=float(self.pooled.mean[i]),
                    strength=float(self.pooled.strength[i]),
                ),
            )
            for i, name in enumerate(self.names)
        }

    @cached_property
    def version(self) -> str:
        """A name for exactly these numbers: the same bits, day, arms and policy give the same version."""
        text = "\n".join((self.policy.version, repr(self.policy), self.day.isoformat(), *self.names))
        shared = b"" if self.pooled is None else self.pooled.shared.tobytes()
        return hashlib.sha256(text.encode() + self.alpha.tobytes() + self.beta.tobytes() + shared).hexdigest()[:16]

    def chance_of_best(self, names: Iterable[str]) -> dict[str, float]:
        """P(best) among `names`, by quadrature, in the order of the names; empty for none. Remembered for a while."""
        chosen = tuple(sorted(set(names)))
        found = self._best.get(chosen)
        if found is None:
            position = positions(self.names)
            at = [position[name] for name in chosen]
            alpha, beta = self.alpha[at], self.beta[at]
            best = p_best(alpha, beta) if at else alpha
            if self.pooled is not None and len(at) > 1:
                best = p_best(*apart(alpha, beta, self.pooled.shared[np.ix_(at, at)], best))
            if len(self._best) >= REMEMBERED:
                self._best.clear()
            found = self._best[chosen] = dict(zip(chosen, best.tolist(), strict=True))
        return dict(found)

    @cached_property
    def _best(self) -> dict[tuple[str, ...], dict[str, float]]:
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A bandit's posterior, and how often each arm that can be chosen at all would be chosen from it.

    `chances` leaves out paused, retired and merged arms; it knows nothing of supply, limits and feedback, which are a
    decision's own. `by_arm`: the mean of each arm, and its share of the next hundred decisions.
    """

    posterior: Posterior
    chances: Mapping[str, float]
    arms: Mapping[str, ArmPosterior]
    by_arm: Mapping[str, tuple[float, float]]

    def share_of_next_100(self, arm: str) -> float:
        """Expected number of the next hundred decisions that choose this arm."""
        return self.by_arm[arm][1] if arm in self.by_arm else 0.0


def outlook(posterior: Posterior, choosable: Iterable[str]) -> Outlook:
    """What follows from a posterior where these of its arms can be chosen."""
    arms, chosen = posterior.arms, chances(posterior.chance_of_best(choosable), posterior.policy)
    by_arm = {name: (arm.mean, 100 * chosen.get(name, 0.0)) for name, arm in arms.items()}
    return Outlook(posterior=posterior, chances=chosen, arms=arms, by_arm=by_arm)


def chances(best: Mapping[str, float], policy: Policy, factors: Mapping[str, float] | None = None) -> dict[str, float]:
    """π over the arms of `best`: P(best) to the power of the policy's sharpness, times an arm's factor if it has one,
    above the chance that every arm has. Empty for no arms.
    """
    if not best:
        return {}
    sharpened = np.array(list(best.values())) ** policy.sharpness
    scaled = sharpened * np.array([(factors or {}).get(name, 1.0) for name in best])
    return dict(zip(best, propensities(scaled, floor=policy.least_chance(len(best))).tolist(), strict=True))


def fold(
    rows: Iterable[RewardRow], *, arms: Iterable[str], policy: Policy, today: date, known: Known | None = None
) -> Posterior:
    """The posterior of every arm in `arms` on the day `today`, from rows in any order; later days, and days too old to
    count, are left out.

    The bits depend on the sums of n, s and q for each (arm, source, day) only (with a rectifier: and stratum; with a
    scale: and version and view; where change is followed: and judge, witness and standing; with a cap on agents: and
    agent and witness): rows of zeros, their order
    and how they are split make no difference. `known` as in `EvidenceTable.read`. Raises KeyError for a row of an arm
    not in `arms`.
    """
    names = tuple(sorted(set(arms)))
    read = EvidenceTable.read(rows, names, policy, today, known)
    scale = policy.evidence_scale or read.scale()
    charged = read.charged()
    short, long = (charged.weights(each, scale) for each in (policy.half_life, policy.long_run_half_life))
    undrifted = charged.kept(policy.half_life)
    short = short * undrifted
    if policy.evidence_cap is not None:
        short = _newest(read.table, short, policy.evidence_cap / scale)
    prior = policy.prior_strength
    # μ, from the days before today.
    past = np.where(charged.table.age > 0, long, 0.0)
    n, s = charged.sums(past)[:2] if charged.lines else (past * charged.table.n, past * charged.table.s)
    mean = float((prior / 2 + scale * s.sum()) / (prior + scale * n.sum()))
    n_long, s_long, _ = charged.sums(long)
    n_short, s_short, f_short = charged.sums(short)
    usual: float | Floats = mean
    strength: float | Floats = prior
    pooled = None
    if policy.parts:
        parts = [policy.parts.get(name, ALONE) for name in names]
        n_past, s_past, _ = charged.sums(past * charged.kept(policy.long_run_half_life))
        pooled = pool(parts, n_past, s_past, mean=mean, scale=scale, least=prior)
        usual, strength = pooled.mean, pooled.strength
        # How much of an arm's mean is still what its parts say, in both places where its own rewards come on top.
        kept = strength / (strength + scale * n_long) * strength / (strength + scale * n_short)
        pooled = replace(pooled, shared=kept[:, None] * kept * pooled.shared)
    centre = (strength * usual + scale * s_long) / (strength + scale * n_long)
    return Posterior(
        names=names,
        alpha=strength * centre + scale * s_short,
        beta=strength * (1 - centre) + scale * f_short,
        pooled=pooled,
        long_run_mean=centre,
        mean=mean,
        evidence_scale=scale,
        day=today,
        policy=policy,
        evidence=_by_source(read, short, scale, undrifted * read.decay(policy.half_life)),
        changes=read.changes,
        caps=read.caps,
    )


def plain_means(rows: Iterable[RewardRow], *, arms: Iterable[str], policy: Policy, today: date) -> dict[str, float]:
    """What `fold` reads of each arm, without prior and decay: the mean of its rewards, moved and charged as the policy
    says, each by its weight; in [0, 1]. An arm without rewards that count has none.
    """
    names = tuple(sorted(set(arms)))
    read = EvidenceTable.read(rows, names, policy, today).charged()
    n, s, _ = read.sums(read.weights(math.inf, 1.0))
    return {name: float(s[i] / n[i]) for i, name in enumerate(names) if n[i] > 0}


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


def _by_source(
    read: EvidenceTable, weight: Floats, scale: float, decay: Floats
) -> dict[str, tuple[SourceEvidence, ...]]:
    """`decay` (n,) is what age and drift leave of each row."""
    table = read.table
    width = max(len(table.sources), 1)
    mapped = table.line != NO_LINE
    columns = (table.n, table.raw, scale * weight * table.n, weight * table.n, decay * table.n)
    n, raw, pseudo, counted, decayed = (np.bincount(table.slot, weights=values) for values in columns)
    n_mapped, s_mapped = (np.bincount(table.slot, weights=np.where(mapped, each, 0.0)) for each in (table.n, table.s))
    found: dict[str, list[SourceEvidence]] = {}
    for at in np.flatnonzero(n):
        record = SourceEvidence(
            source=table.sources[at % width],
            n=int(n[at]),
            pseudo=float(pseudo[at]),
            mean=float(raw[at] / n[at]),
            counts=float(counted[at] / decayed[at]) if decayed[at] else 0.0,
            mapped=float(np.clip(s_mapped[at] / n_mapped[at], 0, 1)) if n_mapped[at] else None,
        )
        found.setdefault(table.names[at // width], []).append(record)
    return {arm: tuple(records) for arm, records in found.items()}
