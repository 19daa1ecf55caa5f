"""Ways to deal with lost grades: the chain's weights, whether the judge comes back, and who reviews what."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from grading.vocabulary import Source

# The site's defaults.
SITE_WEIGHTS: Mapping[str, float] = {
    Source.HUMAN: 1.0,
    Source.JUDGE: 1.0,
    Source.CONSUMPTION: 1.0,
    Source.TRAJECTORY: 0.3,
    Source.JOURNAL: 0.3,
    Source.FLOOR: 0.0,
}
SITE_CAPS: Mapping[str, float] = {Source.JOURNAL: 12.0}
# Whatever the chain ends at is learned as if it were a verdict.
EQUAL_WEIGHTS: Mapping[str, float] = dict.fromkeys(Source, 1.0)
NO_STAND_IN: Mapping[str, float] = {**SITE_WEIGHTS, Source.TRAJECTORY: 0.0, Source.JOURNAL: 0.0}
# Days until a lost verdict comes.
LATE_DAYS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """`weights` and `caps` are the policy's, by source. `truth`: grades are the sessions' qualities. `loses`: the
    faults happen. `journal`: sessions write one. `rejudged_after`: days until a lost verdict comes; None for never.
    `reviews`: how many people do in a week, `careful` or not; then the strata's offsets are fitted.
    """

    name: str
    weights: Mapping[str, float] = field(default_factory=lambda: SITE_WEIGHTS)
    caps: Mapping[str, float] = field(default_factory=lambda: SITE_CAPS)
    truth: bool = False
    loses: bool = True
    journal: bool = True
    rejudged_after: int | None = None
    reviews: int = 0
    careful: bool = True


ORACLE = Regime(name="oracle: every grade true and at once", truth=True, loses=False)
FLOOR = Regime(name="floor learned as reward", weights=EQUAL_WEIGHTS, caps={}, journal=False)
JOURNAL = Regime(name="journal learned as reward", weights=EQUAL_WEIGHTS, caps={})
WEIGHTED = Regime(name="weighted fallback, replaced later", rejudged_after=LATE_DAYS)
MISSING = Regime(name="missing, judged again later", weights=NO_STAND_IN, rejudged_after=LATE_DAYS)
REVIEWS = Regime(name="ten good reviews a week", reviews=10)
NOBODY = Regime(name="weighted fallback, no verdict, no review")
# By the names of their figures.
NAMED = {
    "floor": FLOOR,
    "journal": JOURNAL,
    "weighted_replaced": WEIGHTED,
    "missing_rejudged": MISSING,
    "reviews10": REVIEWS,
}
BESIDE = {
    "never_lost": Regime(name="the judge's grade, never lost", loses=False),
    "weighted_uncapped": replace(WEIGHTED, name="weighted fallback, no cap, replaced later", caps={}),
    "weighted_for_good": NOBODY,
    "weighted_uncapped_for_good": replace(NOBODY, name="weighted fallback, no cap, no verdict, no review", caps={}),
    "reviews10_uncapped": replace(REVIEWS, name="ten good reviews a week, no cap", caps={}),
    "careless20_uncapped": Regime(name="twenty careless reviews a week, no cap", caps={}, reviews=20, careful=False),
}
