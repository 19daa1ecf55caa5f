"""Times in which nobody could be judged, with their blast radius, and spells of trouble at the provider."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.db.models import Count, Max, Min, Q
from django.db.models.functions import TruncHour

from grading.models import JudgeAttempt, JudgeJob, Quota, QuotaTransition
from grading.models.judging import OPEN_STATES, Purpose
from grading.models.quota import CLOSED_STATES, QuotaState, state_label
from grading.models.sessions import yours
from grading.vocabulary import Reason

LISTED = 10
HOUR = dt.timedelta(hours=1)
TROUBLE = (Reason.OVERLOADED, Reason.CONNECTION, Reason.TIMEOUT)
# The least number of failed calls, without an hour's pause between them, that make a spell.
SPELL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """How long a state held: until `until`, or still (None). `row` is the transition that began it."""

    row: QuotaTransition
    since: dt.datetime
    until: dt.datetime | None

    @property
    def is_outage(self) -> bool:
        return self.row.state in CLOSED_STATES

    @property
    def words(self) -> str:
        """The state, and its reason if that says more."""
        state, reason = state_label(self.row.state, self.row.reason).capitalize(), Reason(self.row.reason)
        if not reason.words or reason in (Reason.BUDGET_SPENT, Reason.PAUSED):
            return state
        return f"{state}: {reason.words[0].lower()}{reason.words[1:]}"


def periods(quota: Quota, start: dt.datetime) -> list[Period]:
    """The quota's states from `start` on, oldest first: two queries. It was open before anything was written."""
    if quota.pk is None:
        return []
    transitions = quota.transitions.select_related("by")
    before = transitions.filter(at__lte=start).order_by("-at", "-pk")[:1]
    rows = [*before, *transitions.filter(at__gt=start).order_by("at", "pk")]
    return [
        Period(row=row, since=max(row.at, start), until=None if after is None else after.at)
        for row, after in pairwise([*rows, None])
        if row is not None and row.state != QuotaState.OPEN
    ]


def known_since(quota: Quota) -> dt.datetime:
    """Since when anything is known of a judge: this one's first state, or the first call of any. Two queries."""
    states = quota.transitions.order_by("at").values_list("at", flat=True)[:1] if quota.pk else []
    calls = JudgeAttempt.objects.order_by("started_at").values_list("started_at", flat=True)[:1]
    return min([quota.changed_at, *states, *calls])


@dataclass(frozen=True, slots=True, kw_only=True)
class Radius:
    """Sessions that waited for their verdict during an outage, and those of them that wait still."""

    waited: int
    waiting: int


def radii(outages: Sequence[Period]) -> list[Radius]:
    """The blast radius of each outage, in one query."""
    if not outages:
        return []
    counts: dict[str, Any] = {}
    for index, outage in enumerate(outages):
        during = waited_during(outage.row.at, outage.until)
        counts[f"waited_{index}"] = Count("session", filter=during, distinct=True)
        counts[f"waiting_{index}"] = Count("session", filter=during & Q(state__in=OPEN_STATES), distinct=True)
    found = JudgeJob.objects.filter(yours(), purpose=Purpose.VERDICT).aggregate(**counts)
    return [Radius(waited=found[f"waited_{index}"], waiting=found[f"waiting_{index}"]) for index in range(len(outages))]


def waited_during(since: dt.datetime, until: dt.datetime | None) -> Q:
    """Of jobs: those that were open at some time of that interval."""
    came = Q() if until is None else Q(created_at__lt=until)
    return came & (Q(finished_at=None) | Q(finished_at__gt=since))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """A time in which calls failed for trouble of the provider's own."""

    since: dt.datetime
    until: dt.datetime
    calls: int


def spells(model: str, start: dt.datetime) -> list[Spell]:
    """Spells of trouble of one judge since `start`: one query of a row an hour."""
    rows = (
        JudgeAttempt.objects.filter(model=model, started_at__gte=start)
        .filter(reason__gt="", reason__in=TROUBLE)  # the first is that of an index
        .order_by()
        .values(hour=TruncHour("started_at"))
        .annotate(first=Min("started_at"), last=Max("started_at"), n=Count("pk"))
        .order_by("hour")
    )
    return joined(Spell(since=row["first"], until=row["last"], calls=row["n"]) for row in rows)


def joined(hours: Iterable[Spell]) -> list[Spell]:
    """Hours of trouble (in order) as spells: joined where they are less than an hour apart, without the odd call."""
    found: list[Spell] = []
    for hour in hours:
        if found and hour.since - found[-1].until < HOUR:
            last = found.pop()
            found.append(Spell(since=last.since, until=hour.until, calls=last.calls + hour.calls))
        else:
            found.append(hour)
    return [spell for spell in found if spell.calls >= SPELL]
