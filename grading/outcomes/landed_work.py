"""How much of the work landed and stayed, and what a landed result cost, by any columns of its sessions."""

import datetime as dt
from dataclasses import asdict, dataclass

from django.db.models import Count, Q, Sum

from grading.insight.core.results import Span
from grading.insight.loading import CellFilter, name_arms, sessions_during
from grading.models.outcomes import LandingState
from grading.models.sessions import MICRODOLLARS, SessionQuerySet
from grading.outcomes.auc import FEWEST

# Work counts as landed if it did and was not reverted within this time.
SETTLED = dt.timedelta(days=14)
DECIDED = Q(landing__state__in=[state for state in LandingState if state != LandingState.UNKNOWN])
LANDED = Q(landing__landed__gt=0, landing__reverted=0)
# An unknown outcome is no failure, so the cost of such sessions is left out, too.
COUNTED = DECIDED | Q(landing=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedWork:
    """Counts of sessions that ended more than SETTLED ago. `tried` sessions claim commits. Of these, `unknown` have
    commits of which nothing is known, and `landed` have work that landed and was not reverted.

    `cost` is a sum in microdollars over all sessions, `tried_cost` over those that tried; both without sessions of
    unknown outcome. `priced` and `tried_priced` count the sessions in these sums whose cost is known.
    """

    sessions: int = 0
    tried: int = 0
    unknown: int = 0
    landed: int = 0
    cost: int = 0
    priced: int = 0
    tried_cost: int = 0
    tried_priced: int = 0

    @property
    def decided(self) -> int:
        """Sessions that tried and whose outcome is known."""
        return self.tried - self.unknown

    @property
    def counted(self) -> int:
        """All sessions except those of unknown outcome."""
        return self.sessions - self.unknown

    @property
    def share(self) -> float | None:
        """The share of the decided sessions whose work landed and stayed; None if fewer than FEWEST are decided."""
        return self.landed / self.decided if self.decided >= FEWEST else None

    @property
    def unknown_share(self) -> float | None:
        """The share of unknown outcomes among the sessions that tried."""
        return self.unknown / self.tried if self.tried else None

    @property
    def usd_of_tried(self) -> float | None:
        """Dollars per landed result, of the sessions that tried."""
        return self.tried_cost / MICRODOLLARS / self.landed if self.landed and self.tried_priced else None

    @property
    def usd_of_all(self) -> float | None:
        """Dollars per landed result, of all sessions."""
        return self.cost / MICRODOLLARS / self.landed if self.landed and self.priced else None

    @property
    def is_least(self) -> bool:
        """Whether the cost of some session is unknown, so that a result may have cost more."""
        return self.priced < self.counted

    def __add__(self, other: "LandedWork") -> "LandedWork":
        own_counts = asdict(self)
        other_counts = asdict(other)
        return LandedWork(**{name: own_counts[name] + other_counts[name] for name in own_counts})


SUMS = {
    "sessions": Count("pk"),
    "tried": Count("landing"),
    "unknown": Count("landing", filter=Q(landing__state=LandingState.UNKNOWN)),
    "landed": Count("landing", filter=LANDED),
    "cost": Sum("cost_micro", filter=COUNTED, default=0),
    "priced": Count("cost_micro", filter=COUNTED),
    "tried_cost": Sum("cost_micro", filter=DECIDED, default=0),
    "tried_priced": Count("cost_micro", filter=DECIDED),
}


def load_landed_work(sessions: SessionQuerySet, now: dt.datetime) -> LandedWork:
    """What became of the work of these sessions. One query."""
    return LandedWork(**sessions.filter(ended_at__lte=now - SETTLED).aggregate(**SUMS))


def load_by_agent(
    span: Span, now: dt.datetime, *, filters: CellFilter | None = None
) -> dict[tuple[str, str], LandedWork]:
    """What became of the work of the sessions in a span, by the names of harness and model. Two queries."""
    sessions = sessions_during(span, filters).filter(ended_at__lte=now - SETTLED)
    rows = list(sessions.values_list("harness", "model").annotate(**SUMS))
    names = name_arms(harness for harness, *_ in rows if harness is not None)
    by_agent: dict[tuple[str, str], LandedWork] = {}
    for harness, model, *sums in rows:
        key = (names.get(harness, ""), model)
        by_agent[key] = by_agent.get(key, LandedWork()) + LandedWork(**dict(zip(SUMS, sums, strict=True)))
    return by_agent
