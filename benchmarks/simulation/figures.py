"""What is printed of the runs: regret beside the oracle's, with its interval, and how far the victim's mean is off."""

from collections.abc import Sequence

import numpy as np

from benchmarks.simulation.regimes import ORACLE, Regime
from benchmarks.simulation.run import Found
from benchmarks.simulation.world import MEANS, VICTIM, Floats

RESAMPLED = 2000
CENTRAL = (0.05, 0.95)


def ratio(found: Found, regime: Regime) -> float:
    """The mean regret ÷ the oracle's."""
    return ratio_of(_regrets(found, regime), _regrets(found, ORACLE))


def interval(found: Found, regime: Regime) -> tuple[float, float]:
    """The central 90 % of the ratio over resampled seeds; each seed's regret stays with its oracle's."""
    return interval_of(_regrets(found, regime), _regrets(found, ORACLE))


def ratio_of(mine: Floats, others: Floats) -> float:
    """The mean regret ÷ another's, (runs,) each."""
    return float(mine.sum() / others.sum())


def interval_of(mine: Floats, others: Floats) -> tuple[float, float]:
    """The central 90 % of that ratio over resampled runs, which are paired."""
    picks = np.random.default_rng(0).integers(0, len(mine), (RESAMPLED, len(mine)))
    low, high = np.quantile(mine[picks].sum(axis=1) / others[picks].sum(axis=1), CENTRAL)
    return float(low), float(high)


def mean_regret(found: Found, regime: Regime) -> float:
    return float(_regrets(found, regime).mean())


def bias(found: Found, regime: Regime) -> float:
    """How far the victim's posterior mean is off at the end, on average over the runs."""
    return float(np.mean([run.mean for run in found[regime.name]])) - MEANS[VICTIM]


def share(found: Found, regime: Regime) -> float:
    """The victim's share of all choices."""
    return float(np.mean([run.share for run in found[regime.name]]))


def table(found: Found, regimes: Sequence[Regime]) -> str:
    """A line for each regime: regret, its ratio to the oracle's, what the design names, what became of the victim."""
    head = f"{'':58} {'':>7} {'':>6}  {'':13}  {'':12}  best arm's"
    names = f"{'policy':58} {'regret':>7} {'ratio':>6}  90 % interval  {'design':12}  share  mean off by"
    return "\n".join([head, names, *(_line(found, regime) for regime in regimes)])


def _line(found: Found, regime: Regime) -> str:
    low, high = interval(found, regime)
    figures = f"{mean_regret(found, regime):7.1f} {ratio(found, regime):6.3f}  {low:5.3f} – {high:5.3f}"
    return f"{regime.name:58} {figures}  {_aim(regime):12}  {share(found, regime):5.2f}  {bias(found, regime):+.4f}"


def _aim(regime: Regime) -> str:
    if regime.target is None:
        return ""
    return f"harm of {regime.target:.1f}" if regime.is_harm else f"≤ {regime.target:.2f}"


def _regrets(found: Found, regime: Regime) -> Floats:
    return np.array([run.regret for run in found[regime.name]])
