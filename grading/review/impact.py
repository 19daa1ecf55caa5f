"""The order of the review queue: by how far a correction is expected to move what a bandit has learned, in reward.

The probability that the arm is chosen is not a factor. Otherwise, the sessions of an arm that is never chosen, because
of wrong rewards, would come last.
"""

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Case, F, Max, Value, When
from django.db.models.functions import Abs
from django.utils import timezone

from bandit.models import Bandit
from bandit.reading import site_day, version_of
from grading.models import ReviewAnswer, ReviewItem, Session
from grading.models.sessions import Whose, yours
from grading.review import priority
from grading.reward.rewards import FLAGGED
from grading.vocabulary import Source

# The number of answers at which a stratum's mean has the same weight as the mean that it is shrunk towards.
SHRINK = 5.0
# The expected correction, in reward, before there are any answers: of a flagged session, a fallback, a judge's grade.
PRIOR_FLAGGED, PRIOR_FALLBACK, PRIOR_JUDGE = 0.4, 0.2, 0.1
WRITTEN_AT_ONCE = 500
# The factor for sessions of the random slice, because their answers improve the calibration too. Of two similar
# sessions, the one in the slice goes first unless it is older by more than about half a half-life.
SLICE_FACTOR = 1.5


@dataclass(frozen=True, slots=True)
class Stratum:
    """Sessions with similar corrections: those of one arm (its id) and deciding source, flagged or not."""

    arm: int | None
    source: str
    flagged: bool


class Corrections:
    """How far people move rewards, by stratum: the mean of |human − shown reward| over answers that were not undone.

    Few answers say little. So the mean of a stratum's n answers is shrunk towards the mean of a wider stratum, with the
    weight of SHRINK answers:

        m = (Σ|human − shown| + SHRINK·wider) / (n + SHRINK)

    The mean of arm × source × flag is shrunk towards that of source × flag, this towards that of the source, and this
    towards a prior. The prior is
    - .4 for a flagged session or one at the floor: such a reward is likely to be wrong by as much as the floor lies
      under an ordinary session;
    - .2 for a fallback: journal and trajectory see outcomes, not their worth, so they are off by about one band of a
      rubric;
    - .1 for a judge's or a person's grade: about the difference between two readings of one session.
    """

    def __init__(self, totals: Mapping[Stratum, tuple[int, float]]) -> None:
        """`totals`: how many corrections each stratum had, and the sum of their sizes in reward."""
        self._totals = dict(totals)
        self._by_kind: dict[tuple[str, bool], tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        self._by_source: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for stratum, (n, total) in self._totals.items():
            kind = (stratum.source, stratum.flagged)
            kind_n, kind_total = self._by_kind[kind]
            self._by_kind[kind] = (kind_n + n, kind_total + total)
            source_n, source_total = self._by_source[stratum.source]
            self._by_source[stratum.source] = (source_n + n, source_total + total)

    def count(self, stratum: Stratum) -> int:
        """How many corrections a stratum has had."""
        n, _total = self._totals.get(stratum, (0, 0.0))
        return n

    def expected_size(self, stratum: Stratum) -> float:
        """The expected |correction| in a stratum, in [0, 1]."""
        of_source = _shrunk(self._by_source.get(stratum.source), prior(stratum.source, flagged=stratum.flagged))
        of_kind = _shrunk(self._by_kind.get((stratum.source, stratum.flagged)), of_source)
        return _shrunk(self._totals.get(stratum), of_kind)


def prior(source: str, *, flagged: bool) -> float:
    """The expected |correction| before there are any answers, in reward."""
    if flagged or source in (Source.FLOOR, ""):
        return PRIOR_FLAGGED
    return PRIOR_JUDGE if source in (Source.JUDGE, Source.HUMAN) else PRIOR_FALLBACK


def corrections() -> Corrections:
    """How far people moved rewards, from the answers that were not undone. One query."""
    answers = ReviewAnswer.objects.effective().with_values().filter(yours(), settlement__value__isnull=False)
    size = Abs(F("value") - F("settlement__value"))
    sizes: dict[Stratum, list[float]] = defaultdict(list)
    rows = answers.order_by().values_list("session__category", "settlement__source", "stratum", size)
    for arm, source, flag, correction in rows:
        sizes[Stratum(arm, source, flag == FLAGGED)].append(correction)
    # Sorted, so that the sums over wider strata are identical in any order of the answers.
    strata = sorted(sizes, key=lambda stratum: (stratum.arm or 0, stratum.source, stratum.flagged))
    return Corrections({stratum: (len(sizes[stratum]), math.fsum(sizes[stratum])) for stratum in strata})


def prioritise(now: dt.datetime | None = None) -> int:
    """Write the impact of every open item. Returns how many changed.

        impact = λ^age · E|correction| · (1.5 in the random slice)

    λ^age = 2^(−age/H) is what is left of the session's evidence today; age is in days, H is the half-life of the
    category bandit. E|correction| is that of the session's stratum. SLICE_FACTOR explains the 1.5.
    """
    now = now or timezone.now()
    items = ReviewItem.objects.open().order_by("pk")
    of_session = ("session__category", "session__ended_at", "session__reward_source", "session__open_flags")
    rows = list(items.values_list("pk", "impact", *of_session, "slice_probability"))
    if not rows:
        return 0
    past_corrections = corrections()
    half_life = version_of(Bandit.objects.named(priority.BANDIT)).half_life_days
    today = site_day(now)
    new_impacts: dict[int, float] = {}  # by key; only those that changed
    for pk, old_impact, arm, ended_at, source, flags, probability in rows:
        decay = 2.0 ** (-max(0, (today - site_day(ended_at)).days) / half_life)
        slice_factor = 1.0 if probability is None else SLICE_FACTOR
        correction = past_corrections.expected_size(Stratum(arm, source, flags > 0))
        impact = priority.rounded(decay * correction * slice_factor)
        if impact != old_impact:
            new_impacts[pk] = impact
    # WRITTEN_AT_ONCE items a statement. Items that are being answered now are left to the next sweep.
    by_impact = sorted(new_impacts.items(), key=lambda item: (item[1], item[0]))
    count = 0
    for start in range(0, len(by_impact), WRITTEN_AT_ONCE):
        chunk = by_impact[start : start + WRITTEN_AT_ONCE]
        keys: dict[float, list[int]] = defaultdict(list)  # by impact
        for pk, impact in chunk:
            keys[impact].append(pk)
        new_impact = Case(*[When(pk__in=pks, then=Value(impact)) for impact, pks in keys.items()], default=F("impact"))
        with transaction.atomic():
            open_items = ReviewItem.objects.open().filter(pk__in=[pk for pk, _impact in chunk])
            unlocked = open_items.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)
            count += ReviewItem.objects.filter(pk__in=list(unlocked)).update(impact=new_impact)
    return count


def first_guess(session: Session) -> float:
    """The impact of a new item until the next sweep: the highest among the open items of its arm, 0 without any."""
    whose = Whose.SAMPLES if session.is_sample else Whose.YOURS
    items_of_arm = ReviewItem.objects.open().filter(whose.rows(), session__category=session.category_id)
    return float(items_of_arm.aggregate(most=Max("impact"))["most"] or 0.0)


def _shrunk(sums: tuple[int, float] | None, towards: float) -> float:
    """The mean of `sums` (count and total; None for no values), shrunk towards the other mean as in `Corrections`."""
    n, total = sums or (0, 0.0)
    return (total + SHRINK * towards) / (n + SHRINK)
