"""The effective memory of a policy, in days of traffic (a memory of one day forgets faster than it learns).

With λ = 2^(−1/H), H the half-life in days, all past evidence is worth that of

    Σ_age λ^age = 1/(1 − λ)

days. A cap of C pseudo-observations limits it to C/(e·w·r) days, where the busiest arm gets r rewards a day, each worth
e·w pseudo-observations.
"""

import math
from dataclasses import dataclass

# A policy with a shorter memory is refused; the threshold of a published incident.
MIN_DAYS = 3.0
# The half-life with a memory of MIN_DAYS: λ = 1 − 1/MIN_DAYS.
MIN_HALF_LIFE = -1 / math.log2(1 - 1 / MIN_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The limits of memory in days of traffic; `by_cap` is None without a cap or without traffic."""

    by_decay: float
    by_cap: float | None

    @property
    def days(self) -> float:
        return self.by_decay if self.by_cap is None else min(self.by_decay, self.by_cap)


def memory(half_life: float, *, cap: float | None = None, pseudo_a_day: float = 0.0) -> Memory:
    """The memory of a `half_life` > 0 in days and a `cap`, given the busiest arm's `pseudo_a_day` = e·Σw·r."""
    return Memory(
        by_decay=-1 / math.expm1(-math.log(2) / half_life),
        by_cap=None if cap is None or not pseudo_a_day else cap / pseudo_a_day,
    )
