"""One regime in one world, day by day, on the bandit's own cores; and many of them, on as many cores as there are."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from bandit.core.policy import Policy
from bandit.core.posterior import chances
from bandit.core.recalibration import MachineHumanPair
from bandit.core.thompson import draw, uniform
from benchmarks.simulation import people
from benchmarks.simulation.regimes import Regime
from benchmarks.simulation.site import PLAIN, Site
from benchmarks.simulation.world import A_DAY, ARMS, DAYS, MEANS, VICTIM, World, world

WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run's regret Σ(μ of the best arm − μ of the arm chosen); of the victim: its share of all choices, and its
    posterior mean at the end, once the late verdicts that were to come are in.
    """

    regret: float
    share: float
    mean: float


Found = Mapping[str, Sequence[Outcome]]


def runs(
    seeds: Iterable[int], regimes: Sequence[Regime], *, days: int = DAYS, reads: int = 1, workers: int | None = None
) -> Found:
    """The outcome of each regime, by name, in each seed's world: the same worlds, chances and draws for all.

    The posterior is read so many times a day, a divisor of 50: the choices in between share its odds. A run depends on
    its seed alone, so the number of workers changes nothing.
    """
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(partial(in_world, regimes=regimes, days=days, reads=reads), seeds))
    return {regime.name: [outcomes[i] for outcomes in found] for i, regime in enumerate(regimes)}


def in_world(seed: int, regimes: Sequence[Regime], days: int, reads: int) -> list[Outcome]:
    """The outcomes of the regimes in this seed's world, in their order."""
    made, draws = world(seed, days), draws_of(seed, days)
    return [outcome(made, draws, regime, reads) for regime in regimes]


def draws_of(seed: int, days: int) -> list[list[float]]:
    """The draws of a run, by day and slot: the same for whatever is compared."""
    return [[uniform(f"simulation-{seed}", f"{day}/{slot}") for slot in range(A_DAY)] for day in range(days)]


def outcome(
    world: World, draws: Sequence[Sequence[float]], regime: Regime, reads: int = 1, policy: Policy = PLAIN
) -> Outcome:
    """What becomes of a regime in a world, `reads` a day; `draws` are by day and slot."""
    site, pairs = Site(regime, policy), list[MachineHumanPair]()
    for day in range(world.days):
        if regime.rejudged_after is not None:
            site.rejudge(day - regime.rejudged_after)
        if regime.reviews and day and day % WEEK == 0:
            pairs += people.review(site)
            site.rectify(people.offsets(pairs))
        _live(site, world, day, draws[day], reads)
    site.rejudge(world.days)
    arms = [session.facts.arm for session in site.sessions]
    return Outcome(
        regret=sum(MEANS[VICTIM] - MEANS[arm] for arm in arms),
        share=arms.count(VICTIM) / len(arms),
        mean=site.posterior(world.days).arms[ARMS[VICTIM]].mean,
    )


def _live(site: Site, world: World, day: int, draws: Sequence[float], reads: int) -> None:
    """The day's choices, each from the odds that were read last."""
    odds: Mapping[str, float] = {}
    for slot, chance in enumerate(draws):
        if slot % (A_DAY // reads) == 0:
            odds = _odds(site, day)
        site.finish(world.facts(day, slot, ARMS.index(draw(odds, chance))))


def _odds(site: Site, day: int) -> Mapping[str, float]:
    return chances(site.posterior(day).chance_of_best(ARMS), site.policy)
