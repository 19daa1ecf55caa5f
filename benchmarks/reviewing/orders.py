"""Who is asked about first: the product's order, and rivals that write other numbers where the product writes its own.

All share the queue, its three places of ten by chance, the answers and the recalibration. The product's order puts what
a rule flagged first; in the rivals' queues everything is of one kind, so that their numbers alone decide.
"""

import hashlib
import math
from collections.abc import Callable

import numpy as np
from django.db.models import Case, F, Value, When
from scipy.special import ndtr

from benchmarks.reviewing.cases import OURS, RIVALS
from benchmarks.reviewing.site import Site
from benchmarks.reviewing.world import at
from grading import review
from grading.models import Flag, ReviewItem
from grading.models.review import QueueEntry
from grading.models.sessions import reward_columns
from grading.review.impact import Stratum, corrections

Order = Callable[[Site, int], None]
# Of a normal size, by its mean.
SPREAD = math.sqrt(math.pi / 2)


def ours(_site: Site, day: int) -> None:
    """The product's."""
    review.prioritise(at(day))


def expected_correction(_site: Site, _day: int) -> None:
    """E|correction| of the stratum, and nothing else."""
    _write({pk: size for pk, _arm, size, _age in _expected()})


def knowledge_gradient(site: Site, day: int) -> None:
    """What the best arm's mean is expected to gain by knowing one correction (Frazier, Powell and Dayanik 2008): with
    s = the size of what the correction moves its arm's mean by, Δ = how far that is from the best of the others,
    s·(φ(Δ/s) − Δ/s·Φ(−Δ/s)).
    """
    posterior = site.posterior(day)
    mean, strength = posterior.alpha / (posterior.alpha + posterior.beta), posterior.alpha + posterior.beta
    by_arm = dict(zip(posterior.names, zip(mean.tolist(), strength.tolist(), strict=True), strict=True))
    others = {arm: max(m for other, (m, _) in by_arm.items() if other != arm) for arm in by_arm}
    names = {arm.pk: arm.name for arm in site.arms}
    found = {}
    for pk, arm, size, _age in _expected():
        own, n = by_arm[names[arm]]
        moved = SPREAD * size * posterior.evidence_scale / n
        gap = abs(own - others[names[arm]]) / moved
        found[pk] = moved * (math.exp(-(gap**2) / 2) / math.sqrt(2 * math.pi) - gap * float(ndtr(-gap)))
    _write(found)


def uncertainty(site: Site, day: int) -> None:
    """How little is known of the arm, the newest first: the standard deviation of its posterior."""
    posterior = site.posterior(day)
    strength = posterior.alpha + posterior.beta
    spread = np.sqrt(posterior.alpha * posterior.beta / strength**2 / (strength + 1))
    names = {arm.pk: arm.name for arm in site.arms}
    by_arm = dict(zip(posterior.names, spread.tolist(), strict=True))
    _write({pk: by_arm[names[arm]] - age / 1e6 for pk, arm, _size, age in _expected(day)})


def random(_site: Site, day: int) -> None:
    """By a hash."""
    hashed = {pk: hashlib.sha256(f"{day}/{pk}".encode()).digest() for pk, *_ in _expected()}
    _write({pk: int.from_bytes(number[:6], "big") / 2**48 for pk, number in hashed.items()})


ORDERS: dict[str, Order] = dict(
    zip((OURS, *RIVALS), (ours, expected_correction, knowledge_gradient, uncertainty, random), strict=True)
)


def _expected(day: int = 0) -> list[tuple[int, int, float, int]]:
    """Of each open item: its key, its arm's, the product's E|correction|, and its age in days."""
    flagged = set(Flag.objects.open().values_list("session", flat=True))
    items = ReviewItem.objects.open().annotate(source=reward_columns("session__")["reward_source"]).order_by("pk")
    rows = items.values_list("pk", "session", "session__category", "source", "session__ended_at")
    moved = corrections()
    return [
        (pk, arm, moved.expected(Stratum(arm, source, session in flagged)), (at(day) - ended_at).days)
        for pk, session, arm, source, ended_at in rows
    ]


def _write(impacts: dict[int, float]) -> None:
    """Their numbers in the place of the product's. Of alike ones the slice's come first, which teach more."""
    inside = set(ReviewItem.objects.open().in_slice().values_list("pk", flat=True))
    values = [When(pk=pk, then=Value(max(impact, 0.0) + (pk in inside) / 1e9)) for pk, impact in impacts.items()]
    if values:
        ReviewItem.objects.open().update(entered_as=QueueEntry.RULE, impact=Case(*values, default=F("impact")))
