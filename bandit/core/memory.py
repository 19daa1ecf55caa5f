"""How far back a policy remembers, in days of its traffic (a memory of one day forgets faster than it learns).

With λ = 2^(−1/H), H the half-life in days, all evidence ever amounts to that of

    Σ_age λ^age = 1/(1 − λ)

days. A cap of C pseudo-observations leaves no more of it than C/(e·w·r) days, where r rewards a day reach the busiest
arm, each worth e·w pseudo-observations.
"""

import math
from dataclasses import dataclass

# Fewer days than this and a policy is refused: the published incident's line.
LEAST_DAYS = 3.0
# The half-life that remembers LEAST_DAYS: λ = 1 − 1/LEAST_DAYS.
LEAST_HALF_LIFE = -1 / math.log2(1 - 1 / LEAST_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """`by_decay` and `by_cap` in days of traffic; the latter None without a cap, or where there is no traffic yet."""

    by_decay: float
    by_cap: float | None

    @property
    def days(self) -> float:
        return self.by_decay if self.by_cap is None else min(self.by_decay, self.by_cap)


def memory(half_life: float, *, cap: float | None = None, pseudo_a_day: float = 0.0) -> Memory:
    """What a `half_life` in days, above 0, and a `cap` remember, where the busiest arm gets `pseudo_a_day` = e·Σw·r."""
    return Memory(
        by_decay=-1 / math.expm1(-math.log(2) / half_life),
        by_cap=None if cap is None or not pseudo_a_day else cap / pseudo_a_day,
    )
