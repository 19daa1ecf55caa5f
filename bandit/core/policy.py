"""How a bandit's evidence is read: the numbers of one policy."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bandit.core.calibration import Scale
from bandit.core.change import DecidedBreak
from bandit.core.rectify import Stratum, check_offsets

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
    still move the mean. `cost_weight` is reward lost per dollar of a session's cost. `standings` maps a standing
    to what it leaves of a weight, in [0, 1]; all, where it is not named. `scale` None: every source is read as it
    stands.

    `exploration` in [0, 1]: the chance that is shared by all arms there are to choose from, whatever is known of them;
    None: each of them has the `floor`. `sharpness` ≥ 1 is the power of P(best) that an arm is chosen by: with 2, as
    often as two draws from the posterior agree on it. `follows_change`: what an arm was before it broke does not
    count, and what drifts is forgotten sooner (`bandit.core.change`); `decisions` are people's on breaks. Where that is
    followed, `varies_by_day`: rewards of one arm and day count less the more its days differ, and rewards that the
    graded agent alone vouches for show change, too.
    `agent_cap`: so many sessions of one agent, arm and day count in full (`bandit.core.agents`); None for all.
    `parts` maps an arm to the two that it is made of, "" for one that no other arm has; empty, no arm's prior knows of
    another arm's parts (`bandit.core.pooling`).
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
    standings: Mapping[str, float] = field(default_factory=dict, repr=False)
    scale: Scale | None = field(default=None, repr=False)
    exploration: float | None = field(default=None, repr=False)
    sharpness: float = field(default=1.0, repr=False)
    follows_change: bool = field(default=False, repr=False)
    varies_by_day: bool = field(default=False, repr=False)
    decisions: Sequence[DecidedBreak] = field(default=(), repr=False)
    parts: Mapping[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    agent_cap: int | None = field(default=None, repr=False)

    # What the rows to be read are chosen by: how many days back, and whether abstentions are among them.
    days_read: int = field(init=False, repr=False, compare=False, default=0)
    reads_abstentions: bool = field(init=False, repr=False, compare=False, default=False)

    def least_chance(self, arms: int) -> float:
        """The least chance of each of so many arms, from 1 up."""
        return self.floor if self.exploration is None else self.exploration / arms

    def __post_init__(self) -> None:
        check_offsets(self.rectifier)
        object.__setattr__(self, "days_read", math.floor(HALF_LIVES_READ * self.long_run_half_life))
        object.__setattr__(self, "reads_abstentions", self.scale is not None and self.scale.reads_abstentions)
