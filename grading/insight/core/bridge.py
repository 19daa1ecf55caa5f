"""How much lower or higher one grader reads than another, from sessions that both have read."""

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
    """The offsets of graders. Two graders can be compared if they are in the same component.

    `components[i]` is the number of the component of `graders[i]`, and `offsets[i]` how much that grader reads above
    the reference of its component. `covariance` is the covariance of the offsets.
    """

    graders: tuple[GraderIdentity, ...]
    offsets: Floats
    covariance: Floats
    components: tuple[int, ...]

    def offset_of(self, grader: GraderIdentity) -> float:
        """How much a grader reads above the reference of its component. 0 for a grader that is not on the scale."""
        return float(self.offsets[self.graders.index(grader)]) if grader in self.graders else 0.0


def fit_scale(graders: Collection[GraderIdentity], pairs: PairedReadings) -> GraderScale:
    """Fit the offsets of `graders` by weighted least squares; the first grader of each component is its reference.

    Each pair of graders with at least MIN_PAIRS common sessions is an edge of a graph, with the mean of the differences
    and its variance. Edges may lead over graders that are not among `graders`. This is a network meta-analysis with
    fixed effects: see Hedges and Olkin, "Statistical Methods for Meta-Analysis" (1985).
    """
    edges = [(old, new, values) for (old, new), values in pairs.items() if old != new and len(values) >= MIN_PAIRS]
    nodes = list(dict.fromkeys([*graders, *(node for old, new, _ in edges for node in (old, new))]))
    index = {node: number for number, node in enumerate(nodes)}
    # The component of each node, by the smallest index in it. Each edge joins two.
    component = list(range(len(nodes)))
    # The normal equations: precision · offsets = moment.
    precision, moment = np.zeros((len(nodes), len(nodes))), np.zeros(len(nodes))
    for old, new, values in edges:
        i, j = index[old], index[new]
        smaller, larger = sorted((component[i], component[j]))
        component = [smaller if number == larger else number for number in component]
        # Identical differences would give an infinite weight: a reading has at least the error of its rounding.
        weight = len(values) / max(float(np.var(values, ddof=1)), 1e-4)
        precision[[i, j], [i, j]] += weight
        precision[[i, j], [j, i]] -= weight
        moment[j] += weight * float(np.mean(values))
        moment[i] -= weight * float(np.mean(values))
    # The offset of a component's reference is fixed at 0. The other offsets are solved for.
    offsets, covariance = np.zeros(len(nodes)), np.zeros((len(nodes), len(nodes)))
    free = [number for number, reference in enumerate(component) if reference != number]
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
