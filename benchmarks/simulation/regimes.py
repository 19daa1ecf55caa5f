"""Ways to deal with lost grades: the chain's weights, whether the judge comes back, and who reviews what."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from grading.vocabulary import Source

# The site's own, by its settings' defaults.
SITE: Mapping[str, float] = {
    Source.HUMAN: 1.0,
    Source.JUDGE: 1.0,
    Source.CONSUMPTION: 1.0,
    Source.TRAJECTORY: 0.3,
    Source.JOURNAL: 0.3,
    Source.FLOOR: 0.0,
}
# Whatever the chain ends at is learned as if it were a verdict, as the seed's script did.
AT_FACE_VALUE: Mapping[str, float] = dict.fromkeys(Source, 1.0)
NO_STAND_IN = {**SITE, Source.TRAJECTORY: 0.0, Source.JOURNAL: 0.0}

# What the site begins with, and what `bandit.core.recalibration` advises once many pairs say that the journal is off by
# b = .33: μ(1 − μ)/b² = .23/.11.
SITE_CAPS: Mapping[str, float] = {Source.JOURNAL: 12.0}
ADVISED: Mapping[str, float] = {Source.JOURNAL: 2.0}
NO_CAPS: Mapping[str, float] = {}

# Days until a lost verdict comes.
LATE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """`weights` and `caps` are the policies', by source. `truth`: grades are the sessions' qualities. `loses`: the
    faults happen. `journal`: sessions write one.

    `rejudged_after`: in so many days a lost verdict comes (None: never). `reviews` a week by people, `careful` or not,
    after which strata are recalibrated. `target` is the ratio to the oracle's regret that the design names, and
    `is_harm` says that it is a harm to be shown, not a goal.
    """

    name: str
    weights: Mapping[str, float] = field(default_factory=lambda: SITE)
    caps: Mapping[str, float] = field(default_factory=lambda: SITE_CAPS)
    truth: bool = False
    loses: bool = True
    journal: bool = True
    rejudged_after: int | None = None
    reviews: int = 0
    careful: bool = True
    target: float | None = None
    is_harm: bool = False


ORACLE = Regime(name="oracle: always sees the true grade", truth=True, loses=False)
NEVER_LOST = Regime(name="the judge's grade, never lost", loses=False)
FLOOR = Regime(
    name="floor learned as reward", weights=AT_FACE_VALUE, caps=NO_CAPS, journal=False, target=6.2, is_harm=True
)
JOURNAL = Regime(name="journal learned as reward", weights=AT_FACE_VALUE, caps=NO_CAPS, target=4.8, is_harm=True)
WEIGHTED = Regime(name="weighted fallback, replaced later", rejudged_after=LATE, target=1.10)
MISSING = Regime(name="missing, re-judged later", weights=NO_STAND_IN, rejudged_after=LATE, target=1.03)
REVIEWS = Regime(name="ten good reviews a week, recalibrated", reviews=10, target=1.8)
NOBODY = Regime(name="weighted fallback, nobody looks")
