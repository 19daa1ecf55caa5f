"""Six weeks of choices and reviews, for one order in one seed's world; and many of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import transaction

from bandit.core.propensity import propensities
from benchmarks.reviewing.cases import ReviewCase
from benchmarks.reviewing.orders import ORDERS
from benchmarks.reviewing.site import Site, drawn_pairs
from benchmarks.reviewing.world import A_DAY, BEST, World, outcome, world
from benchmarks.simulation.world import MEANS

WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedRun:
    """A run's regret Σ(μ of the best arm − μ of the arm chosen), and how many pairs count over all at its end."""

    regret: float
    drawn: int = 0


def in_world(seed: int, wanted: Sequence[ReviewCase], days: int) -> list[ReviewedRun]:
    """What becomes of each case in this seed's world: the same outcomes and draws for all. Leaves no row behind."""
    made, found = world(seed, days), []
    for case in wanted:
        with transaction.atomic():
            found.append(six_weeks(made, case, days))
            transaction.set_rollback(True)
    return found


def six_weeks(made: World, case: ReviewCase, days: int) -> ReviewedRun:
    """One case in one world: reviews once a week, the choices of a day from what is known in its morning."""
    site, regret, fresh = Site(), 0.0, []
    for day in range(days):
        if day and day % WEEK == 0 and case.reviews:
            site.put_up(fresh)
            fresh = []
            ORDERS[case.order](site, day)
            site.review(case.reviews)
        posterior = site.posterior(day)
        best = posterior.chance_of_best(site.names)
        shares = np.cumsum(propensities(np.array([best[name] for name in site.names]), floor=site.policy.floor))
        for slot in range(A_DAY):
            arm = min(int(np.searchsorted(shares, made.draws[day, slot] * shares[-1], side="right")), len(MEANS) - 1)
            session = outcome(made, case.fault, day, slot, arm)
            site.finish(session)
            fresh.append(session)
            regret += MEANS[BEST] - MEANS[arm]
    return ReviewedRun(regret=regret, drawn=drawn_pairs() if case.reviews else 0)
