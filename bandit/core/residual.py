"""Corrects rewards for circumstances that an arm didn't choose, such as the category of work.

With m_c the long-run mean of circumstance c and μ the overall one, the reward of an arm that ran in c is read as

    r' = r − m_c + μ

m_c is shrunk towards μ as an arm's is (`bandit.core.posterior`), and computed from the days before, so that today's
rewards of one arm move no other. Only r is stored: the baseline is applied when rewards are read.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date

from bandit.core.policy import Policy
from bandit.core.posterior import fold
from bandit.core.table import ABSTAINED, RewardRow, RewardRows

# A circumstance with fewer rewards than this is treated as an average one.
MIN_REWARDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """`offsets` maps a context to μ − m_c, in [−1, 1]; `mean` is μ; `version` is a digest of the offsets."""

    offsets: Mapping[str, float]
    mean: float

    @property
    def version(self) -> str:
        text = "\n".join(f"{name}\0{offset!r}" for name, offset in sorted(self.offsets.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def with_merged(self, merged: Mapping[str, str]) -> "Baseline":
        """A copy in which each context that was merged into another has that one's offset, unless it has its own.

        `merged` maps the former to the latter.
        """
        offsets = {name: self.offsets[into] for name, into in merged.items() if into in self.offsets}
        return replace(self, offsets={**offsets, **self.offsets})


def apply_baseline(policy: Policy, applied: Baseline) -> Policy:
    """A copy of the policy that corrects rewards by this baseline."""
    return replace(policy, baseline=applied.offsets, version=f"{policy.version} baseline/{applied.version}")


def baseline(rows: Iterable[RewardRow], policy: Policy, today: date) -> Baseline:
    """The baseline of the day `today`, from the rewards of the days before in the bandit whose arms are the contexts.

    A context with fewer than MIN_REWARDS rewards has no offset. The policy's price on cost is ignored.
    """
    table = RewardRows.from_rows(rows)
    past = table.select(table.day < today.toordinal())
    count: Counter[str] = Counter()  # of rewards by context, a row's arm; 0 for one with abstentions only
    for kind, (n, *_) in past.totals():
        count[kind.arm] += 0 if kind.source == ABSTAINED else n
    posterior = fold(past, arms=count.keys(), policy=replace(policy, cost_weight=0.0), today=today)
    means = zip(posterior.names, posterior.long_run_mean.tolist(), strict=True)
    offsets = {name: posterior.mean - mean for name, mean in means if count[name] >= MIN_REWARDS}
    return Baseline(offsets=offsets, mean=posterior.mean)
