"""The parameters by which a bandit's evidence is read, and how far back a bandit remembers under them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bandit.core.calibration import FallbackCalibration
from bandit.core.change import DecidedBreak
from bandit.core.offsets import Stratum, check_offsets

# Evidence older than this many long half-lives is ignored: a thousandth of its mass.
HALF_LIVES_READ = 10
# A policy with a shorter memory, in days, is refused: it forgets faster than it learns. From a published incident.
MIN_DAYS = 3.0
# The half-life with a memory of MIN_DAYS: λ = 1 − 1/MIN_DAYS.
MIN_HALF_LIFE = -1 / math.log2(1 - 1 / MIN_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How evidence is read. Half-lives in days, `prior_strength` κ in pseudo-observations, `floor` a probability.

    `evidence_scale` e is in [1, 8], or None to estimate it. `weights` maps a source to [0, 1]; a missing source has
    weight 0. `offsets` maps (arm, source, stratum) to an offset in [−1, 1] to add to its rewards; if empty, the
    ledger's sums are used bit for bit. `baseline` does the same for contexts. `version` is the caller's name for the
    policy.

    `salience_floor` f in [0, 1]: a reward of salience x weighs f + (1 − f)·x. `caps` maps a source to the most
    pseudo-observations it may have in one arm, to which all of it is scaled down. `evidence_cap` is the most that an
    arm may have in all, newest first: older evidence is ignored, so that a new reward can still move the mean.
    `cost_weight` is the reward subtracted per dollar of a session's cost. `standings` maps a standing to a factor on
    the weight in [0, 1], 1 if missing. `calibration` None: fallbacks are read like any other grade.

    `exploration` in [0, 1] is the chance that the eligible arms share equally; None: each of them has the `floor`.
    `sharpness` ≥ 1 is the exponent of P(best): with 2, an arm is chosen as often as two draws from the posterior agree
    on it. `follows_change`: rewards before an arm's break are ignored, and drifting arms forget faster
    (`bandit.core.change`); `decisions` are people's on breaks. With `varies_by_day` as well, rewards of one arm and day
    count less the more its days differ, and self-reported rewards are used to detect change, too.
    `agent_cap`: this many sessions of one agent, arm and day count in full (`bandit.core.agents`); None for all.
    `agent_cap_alone`: this many where no other agent works; None for as many as elsewhere.
    `parts` maps an arm to its two parts, "" for one that no other arm has; if empty, arms don't share priors
    (`bandit.core.pooling`).
    Raises ValueError for an offset that is out of range or is for human grades, which are never shifted.
    """

    half_life: float = 21.0
    long_run_half_life: float = 180.0
    prior_strength: float = 12.0
    evidence_scale: float | None = None
    floor: float = 0.01
    weights: Mapping[str, float]
    version: str = ""
    # Fields added later aren't in the repr, so that the versions of existing posteriors (a digest of it) don't change.
    offsets: Mapping[Stratum, float] = field(default_factory=dict, repr=False)
    baseline: Mapping[str, float] = field(default_factory=dict, repr=False)
    salience_floor: float = field(default=0.3, repr=False)
    caps: Mapping[str, float] = field(default_factory=dict, repr=False)
    evidence_cap: float | None = field(default=None, repr=False)
    cost_weight: float = field(default=0.0, repr=False)
    standings: Mapping[str, float] = field(default_factory=dict, repr=False)
    calibration: FallbackCalibration | None = field(default=None, repr=False)
    exploration: float | None = field(default=None, repr=False)
    sharpness: float = field(default=1.0, repr=False)
    follows_change: bool = field(default=False, repr=False)
    varies_by_day: bool = field(default=False, repr=False)
    decisions: Sequence[DecidedBreak] = field(default=(), repr=False)
    parts: Mapping[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    agent_cap: int | None = field(default=None, repr=False)
    agent_cap_alone: int | None = field(default=None, repr=False)

    def __hash__(self) -> int:
        return hash(self.version)  # many of the other fields are mappings, which have no hash

    def least_chance(self, arms: int) -> float:
        """The least chance of each arm, given the number of eligible ones, at least 1."""
        return self.floor if self.exploration is None else self.exploration / arms

    def __post_init__(self) -> None:
        check_offsets(self.offsets)

    @property
    def days_read(self) -> int:
        """How many days back rows are read."""
        return math.floor(HALF_LIVES_READ * self.long_run_half_life)

    @property
    def reads_abstentions(self) -> bool:
        """Whether abstentions make a difference, and are to be read."""
        return self.calibration is not None and self.calibration.reads_abstentions


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The effective memory of a policy, in days of traffic; `by_cap` is None without a cap or without traffic."""

    by_decay: float
    by_cap: float | None

    @property
    def days(self) -> float:
        return self.by_decay if self.by_cap is None else min(self.by_decay, self.by_cap)


def memory(half_life: float, *, cap: float | None = None, pseudo_a_day: float = 0.0) -> Memory:
    """The memory of a `half_life` > 0 in days and a `cap` C, given the busiest arm's `pseudo_a_day` = e·Σw·r.

    With λ = 2^(−1/H), all past evidence is worth that of Σ_age λ^age = 1/(1 − λ) days. The cap limits it to C/(e·w·r)
    days, if the busiest arm gets r rewards a day, each worth e·w pseudo-observations.
    """
    return Memory(
        by_decay=-1 / math.expm1(-math.log(2) / half_life),
        by_cap=None if cap is None or not pseudo_a_day else cap / pseudo_a_day,
    )
