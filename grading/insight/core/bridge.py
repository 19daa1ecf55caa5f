"""How much lower or higher one grader reads than another, from sessions that both have read."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from grading.insight.core.cells import Floats, GraderIdentity

# Fewer sessions that both have read don't connect two graders.
MIN_PAIRS = 30

# For (old, new): new minus old, for each session that both have read.
PairedReadings = Mapping[tuple[GraderIdentity, GraderIdentity], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderScale:
    """The offsets of graders. Graders of one component can be compared, those of different ones can't.

    `offsets[i]` is how much `graders[i]` reads above the reference of its component, `covariance` that of the offsets,
    and `components[i]` the number of its component.
    """

    graders: tuple[GraderIdentity, ...]
    offsets: Floats
    covariance: Floats
    components: tuple[int, ...]

    def component_of(self, grader: GraderIdentity) -> int:
        return self.components[self.graders.index(grader)]

    def offset_of(self, grader: GraderIdentity) -> float:
        """How much a grader reads above the reference of its component, 0 for one that is not on the scale."""
        return float(self.offsets[self.graders.index(grader)]) if grader in self.graders else 0.0

    def connects(self, graders: Collection[GraderIdentity]) -> bool:
        """Whether all of these can be compared with one another."""
        return len({self.component_of(grader) for grader in graders}) <= 1


def fit_scale(graders: Collection[GraderIdentity], pairs: PairedReadings) -> GraderScale:
    """Fit the offsets of `graders`, whose first of each component is its reference, by weighted least squares.

    Each pair of graders with at least MIN_PAIRS common sessions is an edge, with the mean of the differences and its
    variance. Edges may lead over a grader that is not among `graders`. For the estimator see Hedges and Olkin,
    "Statistical Methods for Meta-Analysis" (1985), or any text on network meta-analysis: it is that with fixed effects.
    """
    edges = [(old, new, values) for (old, new), values in pairs.items() if old != new and len(values) >= MIN_PAIRS]
    nodes = list(dict.fromkeys([*graders, *(node for old, new, _ in edges for node in (old, new))]))
    place = {node: number for number, node in enumerate(nodes)}
    component = list(range(len(nodes)))
    precision, moment = np.zeros((len(nodes), len(nodes))), np.zeros(len(nodes))
    for old, new, values in edges:
        i, j = place[old], place[new]
        low, high = sorted((component[i], component[j]))
        component = [low if number == high else number for number in component]
        # Identical differences would give an infinite weight: a reading has at least the error of its rounding.
        weight = len(values) / max(float(np.var(values, ddof=1)), 1e-4)
        precision[[i, j], [i, j]] += weight
        precision[[i, j], [j, i]] -= weight
        moment[j] += weight * float(np.mean(values))
        moment[i] -= weight * float(np.mean(values))
    offsets, covariance = np.zeros(len(nodes)), np.zeros((len(nodes), len(nodes)))
    # The smallest number of a component is its own first grader, the reference.
    free = [number for number, root in enumerate(component) if root != number]
    if free:
        covariance[np.ix_(free, free)] = np.linalg.inv(precision[np.ix_(free, free)])
        offsets[free] = covariance[np.ix_(free, free)] @ moment[free]
    count = len(dict.fromkeys(graders))
    return GraderScale(
        graders=tuple(nodes[:count]),
        offsets=offsets[:count],
        covariance=covariance[:count, :count],
        components=tuple(component[:count]),
    )


def needed_pairs(read_by_both: int) -> int:
    """How many more sessions both graders have to read."""
    return max(0, math.ceil(MIN_PAIRS - read_by_both))
