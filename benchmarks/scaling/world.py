"""Sessions as they come, and the rows and pairs that the site would keep of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from bandit.core.calibration import JudgedSession, Scale, fit
from bandit.core.policy import Policy
from bandit.core.posterior import Posterior, fold
from bandit.core.table import ABSTAINED, MICRO, RewardRow

Floats = NDArray[np.float64]

START = date(2026, 1, 1)
# A session's quality is Beta(6μ, 6(1−μ)): a spread of .18 to .2 within an arm.
CONCENTRATION = 6
JUDGE_NOISE = 0.07
# What a trajectory makes of quality: another level, a smaller slope, noise, and a level of its own for each arm. Within
# an arm it then explains some .3 of a verdict's variance.
SLOPE, NOISE, ARM_NOISE = 0.45, 0.12, 0.03
# True means are those of samples so large.
SAMPLE = 50_000
VIEW, VERSION = "full", "trajectory/2"
# The site's own numbers.
WEIGHTS = {"human": 1.0, "judge": 1.0, "consumption": 1.0, "trajectory": 0.3, "journal": 0.3}
AT_START = Scale(sources=("journal", "trajectory"), floored=("failed",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One finished session: its verdict and its trajectory, both in [0, 1]; the latter None where it abstains."""

    arm: str
    day: int
    verdict: float
    trajectory: float | None
    reason: str = "nothing_observable"

    @property
    def on(self) -> date:
        return START + timedelta(days=self.day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """Arms of these mean qualities; `levels` are what a trajectory reads of quality 0 in each."""

    means: Floats
    levels: Floats

    @classmethod
    def drawn(cls, means: Sequence[float], rng: np.random.Generator, *, level: float = 0.05) -> "Arms":
        return cls(means=np.array(means), levels=level + rng.normal(0, ARM_NOISE, len(means)))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"arm-{number}" for number in range(len(self.means)))

    def session(self, arm: int, day: int, rng: np.random.Generator) -> Session:
        """What this arm does on a day: verdict and trajectory see the same quality, each in its way."""
        mean = float(self.means[arm])
        quality = float(rng.beta(CONCENTRATION * mean, CONCENTRATION * (1 - mean)))
        verdict = float(np.clip(quality + rng.normal(0, JUDGE_NOISE), 0, 1))
        trajectory = float(np.clip(self.levels[arm] + SLOPE * quality + rng.normal(0, NOISE), 0, 1))
        return Session(arm=self.names[arm], day=day, verdict=verdict, trajectory=trajectory)

    def true_trajectory(self, arm: int) -> float:
        """The mean of an arm's trajectories."""
        rng = np.random.default_rng(7)
        quality = _qualities(float(self.means[arm]), rng)
        return float(np.clip(self.levels[arm] + SLOPE * quality + rng.normal(0, NOISE, SAMPLE), 0, 1).mean())


def _qualities(mean: float, rng: np.random.Generator) -> Floats:
    return rng.beta(CONCENTRATION * mean, CONCENTRATION * (1 - mean), SAMPLE)


def true_mean(mean: float) -> float:
    """The mean of verdicts where quality has this mean."""
    rng = np.random.default_rng(7)
    return float(np.clip(_qualities(mean, rng) + rng.normal(0, JUDGE_NOISE, SAMPLE), 0, 1).mean())


class Ledger:
    """The rows of what was settled, and the pairs of what was judged, as the site keeps them."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str, str, date], list[int]] = {}
        self.pairs: list[JudgedSession] = []

    def add(self, session: Session, *, judged: bool) -> None:
        """A session's reward: the verdict where there is one, else the trajectory, else that it abstained."""
        if judged:
            self._row(session, "judge", "", "", session.verdict)
            self.pairs.append(self._pair(session))
        elif session.trajectory is None:
            self._row(session, ABSTAINED, VERSION, session.reason, 0.0)
        else:
            self._row(session, "trajectory", VERSION, VIEW, session.trajectory)

    @property
    def rows(self) -> list[RewardRow]:
        return [
            RewardRow(arm=arm, source=source, version=version, view=view, day=day, n=n, s=s, q=q)
            for (arm, source, version, view, day), (n, s, q) in self._sums.items()
        ]

    def scale(self) -> Scale:
        """The calibration that the site would have fitted by now."""
        return fit(self.pairs, AT_START)

    def _row(self, session: Session, source: str, version: str, view: str, value: float) -> None:
        micro = round(value * MICRO)
        held = self._sums.setdefault((session.arm, source, version, view, session.on), [0, 0, 0])
        held[:] = held[0] + 1, held[1] + micro, held[2] + micro**2

    @staticmethod
    def _pair(session: Session) -> JudgedSession:
        abstained = session.trajectory is None
        return JudgedSession(
            arm=session.arm,
            source=ABSTAINED if abstained else "trajectory",
            version=VERSION,
            view=session.reason if abstained else VIEW,
            fallback=session.trajectory or 0.0,
            judge=session.verdict,
            day=session.on,
        )


def read(rows: Iterable[RewardRow], arms: Sequence[str], day: int, scale: Scale | None) -> Posterior:
    """The bandit's posterior on a day, with the site's policy; `scale` None reads as version 0.1.0 did."""
    policy = Policy(weights=WEIGHTS, caps={"journal": 12.0}, scale=scale)
    known = [row for row in rows if scale is not None or row.source != ABSTAINED]
    return fold(known, arms=arms, policy=policy, today=START + timedelta(days=day))
