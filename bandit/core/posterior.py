"""Folds integer buckets into Beta posteriors when they are read; no posterior is stored.

With λ = 2^(−1/H), H the half-life in days, and for arm a on day t:

    α = κ·m_a     + e·Σ_source w_source·Σ_day λ^(t−day)·S
    β = κ·(1−m_a) + e·Σ_source w_source·Σ_day λ^(t−day)·(N−S)

Decay depends on time and is applied on reading, so that other arms' updates don't erode an idle arm and a late
correction is exact. The prior's centre m_a is the arm's own long-run mean, so that decay doesn't lift a weak arm:

    m_a = (κ·μ + e·S_long) / (κ + e·N_long)      the same sums with the long half-life
    μ   = (κ·½ + e·ΣS_long) / (κ + e·ΣN_long)    over all arms: the bandit's mean
    e   = μ(1−μ) / σ²                            σ² within arms, of judge and human grades; from 1 to 8 (`SCALE_RANGE`)

μ and e are shared by the arms and computed from the days before t only: a reward of day t changes its own arm and
leaves the others bit-identical. A graded reward counts as α += r, β += 1 − r, never as a bit.

A policy may turn on more, all of it off by default: offsets for biased graders and a baseline for circumstances that
an arm didn't choose (bandit.core.offsets), less weight for an arm with a small part in a session or for a contested
grade, caps on the amount of evidence, and a price on cost. If the policy follows change (bandit.core.change), S and N
begin anew at a break, and drift reduces the sums with the short half-life. With a calibration
(bandit.core.calibration) fallbacks count for little, and are estimated in arms with enough verdicts. With parts
(bandit.core.pooling) μ and κ are the arm's own, from the rewards of other arms with its parts. Breaks, drift and parts
are also computed from the days before t: arms share a day's rewards through their parts from the next day on.
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
from bandit.core.evidence import EvidenceTable
from bandit.core.policy import Policy
from bandit.core.pooling import PartsPrior, as_independent, pool
from bandit.core.propensity import p_best, propensities
from bandit.core.table import Floats, RewardRow, Table, positions

TAIL = 0.05
# How many sets of arms a posterior caches P(best) for.
CACHED_CHOICES = 16
# The parts of an arm that the policy names no parts for.
NO_PARTS = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEvidence:
    """One source's evidence on one arm: `n` rewards in all, `pseudo` = e·w·Σλ^age·N, `mean` of the n in [0, 1], as they
    are read.

    `counts` is the weight of one of them including caps, where a verdict has 1. `is_estimated`: their grades, if any,
    are not read; they move the mean as judged sessions of their kind would, and are no evidence of their own.
    """

    source: str
    n: int
    pseudo: float
    mean: float
    counts: float = 0.0
    is_estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPrior:
    """The prior from an arm's two `parts` ("" for one that no other arm has): `mean`, worth `strength`
    pseudo-observations.
    """

    parts: tuple[str, str]
    mean: float
    strength: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPosterior:
    """Beta(`alpha`, `beta`) of one arm; `low` and `high` bound the central 90 %; evidence in order of source. `shared`
    is None if the arm has no parts.
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
        """Pseudo-observations of all its evidence."""
        return sum(each.pseudo for each in self.evidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """The arms' posteriors of one bandit on one day, as columns in the order of `names` (sorted).

    `mean` is μ, `evidence_scale` e. If the policy has parts, `pooled` is the prior from them, with the covariance of
    the posteriors as `shared`.
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
        """The posterior of each arm by name."""
        from scipy.special import betaincinv

        low = betaincinv(self.alpha, self.beta, TAIL)
        high = betaincinv(self.alpha, self.beta, 1 - TAIL)
        arms = {}
        for i, name in enumerate(self.names):
            shared = None
            if self.pooled is not None and name in self.policy.parts:
                mean, strength = float(self.pooled.mean[i]), float(self.pooled.strength[i])
                shared = SharedPrior(parts=self.policy.parts[name], mean=mean, strength=strength)
            arms[name] = ArmPosterior(
                arm=name,
                alpha=float(self.alpha[i]),
                beta=float(self.beta[i]),
                mean=float(self.alpha[i] / (self.alpha[i] + self.beta[i])),
                low=float(low[i]),
                high=float(high[i]),
                long_run_mean=float(self.long_run_mean[i]),
                evidence=self.evidence.get(name, ()),
                shared=shared,
            )
        return arms

    @cached_property
    def version(self) -> str:
        """A digest of the numbers, day, arms and policy: equal bits give an equal version."""
        text = "\n".join((self.policy.version, repr(self.policy), self.day.isoformat(), *self.names))
        shared = b"" if self.pooled is None else self.pooled.shared.tobytes()
        return hashlib.sha256(text.encode() + self.alpha.tobytes() + self.beta.tobytes() + shared).hexdigest()[:16]

    def chance_of_best(self, names: Iterable[str]) -> dict[str, float]:
        """P(best) among `names`, by quadrature, sorted by name; empty for none. Cached."""
        choice = tuple(sorted(set(names)))
        chances = self._best.get(choice)
        if chances is None:
            position = positions(self.names)
            at = [position[name] for name in choice]
            alpha, beta = self.alpha[at], self.beta[at]
            # `p_best` needs at least one arm; for none, `alpha` is the empty result.
            best = p_best(alpha, beta) if at else alpha
            # Arms with common parts aren't independent, as `p_best` assumes: correct for what they share.
            if self.pooled is not None and len(at) > 1:
                best = p_best(*as_independent(alpha, beta, self.pooled.shared[np.ix_(at, at)], best))
            if len(self._best) >= CACHED_CHOICES:
                self._best.clear()
            chances = self._best[choice] = dict(zip(choice, best.tolist(), strict=True))
        return dict(chances)

    @cached_property
    def _best(self) -> dict[tuple[str, ...], dict[str, float]]:
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A bandit's posterior, and the chance of each choosable arm.

    `chances` leaves out paused, retired and merged arms and ignores supply, limits and feedback, which differ from
    decision to decision.
    """

    posterior: Posterior
    chances: Mapping[str, float]

    @property
    def arms(self) -> Mapping[str, ArmPosterior]:
        """The posterior of each arm by name."""
        return self.posterior.arms

    def share_of_next_100(self, arm: str) -> float:
        """Expected number of the next hundred decisions that choose this arm."""
        return 100 * self.chances.get(arm, 0.0)

    def next_100(self, arm: str) -> float:
        """`share_of_next_100` as pages show it: a whole number, or a share below 1 as it is.

        The whole numbers have the sum of what they stand for: the shares with the largest remainders are rounded up.
        """
        shares = {name: 100 * chance for name, chance in self.chances.items() if 100 * chance >= 1}
        if arm not in shares:
            return self.share_of_next_100(arm)
        missing = round(sum(shares.values())) - sum(math.floor(share) for share in shares.values())
        by_remainder = sorted(shares, key=lambda name: math.floor(shares[name]) - shares[name])
        return math.floor(shares[arm]) + (arm in by_remainder[:missing])


def outlook(posterior: Posterior, choosable: Iterable[str]) -> Outlook:
    """The outlook of a posterior if these of its arms can be chosen."""
    return Outlook(posterior=posterior, chances=chances(posterior.chance_of_best(choosable), posterior.policy))


def chances(best: Mapping[str, float], policy: Policy, factors: Mapping[str, float] | None = None) -> dict[str, float]:
    """The chance π of each arm of `best`, which maps arms to P(best); they sum to 1. Empty for no arms.

    P(best) is raised to the policy's sharpness and multiplied by the arm's factor, 1 if it has none. Then
    `propensities` gives every arm the policy's least chance.
    """
    if not best:
        return {}
    sharpened = np.array(list(best.values())) ** policy.sharpness
    scaled = sharpened * np.array([(factors or {}).get(name, 1.0) for name in best])
    return dict(zip(best, propensities(scaled, floor=policy.least_chance(len(best))).tolist(), strict=True))


def fold(
    rows: Iterable[RewardRow],
    *,
    arms: Iterable[str],
    policy: Policy,
    today: date,
) -> Posterior:
    """The posterior of every arm in `arms` on the day `today`, from rows in any order; rows of later days, and of days
    too old to count, are ignored.

    The bits depend only on the sums of n, s and q by (arm, source, day), and by what else the policy reads: stratum if
    it has offsets; an abstention's view if it has a calibration; judge, witness and standing if it follows change;
    agent and witness if it caps agents. Rows of zeros, the order of rows and how they are split make no difference.
    Raises KeyError for a row of an arm not in `arms`.
    """
    names = tuple(sorted(set(arms)))
    evidence = EvidenceTable.read(rows, names, policy, today)
    scale = policy.evidence_scale or evidence.evidence_scale()
    charged = evidence.charged()
    # Weights of rows (n,) with the short half-life, for α and β, and with the long one, for the prior.
    long = charged.weights(policy.long_run_half_life, scale)
    drift_factors = charged.drift_factors(policy.half_life)
    decay = drift_factors * charged.decay(policy.half_life)
    graded = charged.grade_weights(policy.half_life, scale) * drift_factors
    if policy.evidence_cap is not None:
        graded = _cap_to_newest(evidence.table, graded, policy.evidence_cap / scale)
    short = charged.with_estimates(graded, decay)
    prior = policy.prior_strength
    # μ is from grades of the days before today, so that a reward of today leaves other arms as they are.
    past = charged.before_today()
    past_weight = past.grade_weights(policy.long_run_half_life, scale)
    n, s, _ = past.sums(past_weight)
    mean = float((prior / 2 + scale * s.sum()) / (prior + scale * n.sum()))
    n_long, s_long, _ = charged.sums(long)
    n_short, s_short, f_short = charged.sums(short)
    prior_mean: float | Floats = mean
    strength: float | Floats = prior
    pooled = None
    if policy.parts:
        # Each arm's own prior, from other arms' rewards, takes the place of the shared μ and κ.
        n_past, s_past, _ = past.sums(past_weight * charged.drift_factors(policy.long_run_half_life))
        parts = [policy.parts.get(name, NO_PARTS) for name in names]
        pooled = pool(parts, n_past, s_past, mean=mean, scale=scale, least=prior)
        prior_mean, strength = pooled.mean, pooled.strength
        pooled = _share_between_posteriors(pooled, scale * n_long, scale * n_short)
    centre = (strength * prior_mean + scale * s_long) / (strength + scale * n_long)
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
        evidence=_by_source(evidence, graded, scale, decay),
        changes=evidence.changes,
        caps=evidence.caps,
    )


def _share_between_posteriors(pooled: PartsPrior, n_long: Floats, n_short: Floats) -> PartsPrior:
    """The priors with the covariance of the posterior means as `shared`, in place of that of the priors' means.

    A prior makes up only a fraction of its arm's posterior mean, after the arm's own pseudo-observations (K,) were
    added to the long-run mean (`n_long`) and then to α and β (`n_short`). Only that fraction varies with other arms.
    """
    strength = pooled.strength
    fraction = strength / (strength + n_long) * strength / (strength + n_short)
    return replace(pooled, shared=fraction[:, None] * fraction * pooled.shared)


def plain_means(rows: Iterable[RewardRow], *, arms: Iterable[str], policy: Policy, today: date) -> dict[str, float]:
    """Each arm's weighted mean reward in [0, 1], by the weights of `fold` but without prior, decay and drift.

    Rewards are shifted by the policy's offsets and less its price on cost. Caps are in rewards, not in
    pseudo-observations. An arm without weight is left out.
    """
    names = tuple(sorted(set(arms)))
    evidence = EvidenceTable.read(rows, names, policy, today).charged()
    no_decay = math.inf
    n, s, _ = evidence.sums(evidence.weights(half_life=no_decay, scale=1.0))
    return {name: float(s[i] / n[i]) for i, name in enumerate(names) if n[i] > 0}


def _cap_to_newest(table: Table, weight: Floats, most: float) -> Floats:
    """The weights, reduced so that each arm's rewards count up to a weighted total of `most`, the newest ones first."""
    capped = weight.copy()
    for arm in np.flatnonzero(table.by_arm(weight * table.n) > most):
        at = np.flatnonzero(table.arm == arm)
        at = at[np.argsort(table.age[at], kind="stable")]
        amount = weight[at] * table.n[at]
        newer = np.cumsum(amount) - amount  # the total of the rows before, which are newer
        capped[at] *= np.clip(most - newer, 0, amount) / np.where(amount > 0, amount, 1.0)
    return capped


def _by_source(
    evidence: EvidenceTable, weight: Floats, scale: float, decay: Floats
) -> dict[str, tuple[SourceEvidence, ...]]:
    """The evidence of each arm that has rewards, in order of source.

    `scale` is e, `weight` (n,) that of each row's grades, 0 for estimates, and `decay` (n,) its factor for age and
    drift.
    """
    table = evidence.table
    width = max(len(table.sources), 1)  # as in `Table.slot`
    columns = (table.n, table.s, scale * weight * table.n, weight * table.n, decay * table.n, evidence.is_estimated)
    n, s, pseudo, weighted, decayed, estimated = (np.bincount(table.slot, weights=values) for values in columns)
    by_arm: dict[str, list[SourceEvidence]] = {}
    for slot in np.flatnonzero(n):
        record = SourceEvidence(
            source=table.sources[slot % width],
            n=int(n[slot]),
            pseudo=float(pseudo[slot]),
            mean=float(s[slot] / n[slot]),
            counts=float(weighted[slot] / decayed[slot]) if decayed[slot] else 0.0,
            is_estimated=bool(estimated[slot]),
        )
        by_arm.setdefault(table.names[slot // width], []).append(record)
    return {arm: tuple(records) for arm, records in by_arm.items()}
