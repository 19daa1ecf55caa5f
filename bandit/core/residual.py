"""What is left of a reward once the circumstances that an arm did not choose are taken out.

With m_c the long-run mean of circumstance c (a category) and μ that of all, an arm that ran in c is read as

    r' = r − m_c + μ

m_c is shrunk towards μ as an arm's is (`bandit.core.posterior`), and read from the days before, so that what happened
today to one arm moves no other. Nothing is stored but r: the baseline is a policy applied at read.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from bandit.core.policy import Policy
from bandit.core.posterior import fold
from bandit.core.table import ABSTAINED, RewardRow, RewardRows

# A circumstance with fewer rewards than this is taken for an average one.
LEAST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """`offsets` maps a context to μ − m_c, in [−1, 1]; `mean` is μ; `version` names exactly these numbers."""

    offsets: Mapping[str, float]
    mean: float

    @property
    def version(self) -> str:
        text = "\n".join(f"{name}\0{offset!r}" for name, offset in sorted(self.offsets.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def with_merged(self, merged: Mapping[str, str]) -> "Baseline":
        """`merged` maps a context that was merged into another to that one: it has the same offset, where that has one
        and it has none of its own.
        """
        offsets = {name: self.offsets[into] for name, into in merged.items() if into in self.offsets}
        return replace(self, offsets={**offsets, **self.offsets})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRewards:
    """The rewards that a baseline is taken from: rows whose arms are the contexts, and the policy of their bandit.

    `merged` maps a context that was merged into another to that one, whose offset it has.
    """

    rows: Iterable[RewardRow]
    policy: Policy
    merged: Mapping[str, str] = field(default_factory=dict)


def freed(policy: Policy, found: Baseline) -> Policy:
    """The policy, reading rewards freed of this baseline."""
    return replace(policy, baseline=found.offsets, version=f"{policy.version} baseline/{found.version}")


def baseline(past: ContextRewards, today: date, *, least: int = LEAST) -> Baseline:
    """The baseline of the day `today` from the rewards of the days before it.

    A context with fewer than `least` rewards has no offset. The policy's price on cost is left out.
    """
    held = RewardRows.of(past.rows)
    rows = held.where(held.day < today.toordinal())
    count: Counter[str] = Counter()
    for kind, (n, *_) in rows.totals():
        count[kind.arm] += n * (kind.source != ABSTAINED)
    posterior = fold(rows, arms=count.keys(), policy=replace(past.policy, cost_weight=0.0), today=today)
    means = zip(posterior.names, posterior.long_run_mean.tolist(), strict=True)
    offsets = {name: posterior.mean - mean for name, mean in means if count[name] >= least}
    return Baseline(offsets=offsets, mean=posterior.mean).with_merged(past.merged)
