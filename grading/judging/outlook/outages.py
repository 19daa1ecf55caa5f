"""Outages of a judge's quota, with the sessions they affected, and times of failing calls at the provider."""

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
# The least number of failed calls in a spell. An hour without a failed call ends the spell.
LEAST_SPELL_CALLS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A time in one state of a quota; `until` is None if it goes on. `row` is the transition that began it."""

    row: QuotaTransition
    since: dt.datetime
    until: dt.datetime | None

    @property
    def is_outage(self) -> bool:
        return self.row.state in CLOSED_STATES

    @property
    def label(self) -> str:
        """The state, and its reason if that says more."""
        state = state_label(self.row.state, self.row.reason).capitalize()
        reason = Reason(self.row.reason)
        if not reason.words or reason in (Reason.BUDGET_SPENT, Reason.PAUSED):
            return state
        return f"{state}: {reason.words[0].lower()}{reason.words[1:]}"


def periods(quota: Quota, start: dt.datetime) -> list[Period]:
    """The quota's states from `start` on, except open, oldest first. Two queries."""
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
    """The time since when the quota's state is known: its first state or the first call to any judge. Two queries."""
    states = quota.transitions.order_by("at").values_list("at", flat=True)[:1] if quota.pk else []
    calls = JudgeAttempt.objects.order_by("started_at").values_list("started_at", flat=True)[:1]
    return min([quota.changed_at, *states, *calls])


@dataclass(frozen=True, slots=True, kw_only=True)
class AffectedSessions:
    """How many sessions waited for their verdict during an outage, and how many of these still wait."""

    waited: int
    waiting: int


def count_affected(outages: Sequence[Period]) -> list[AffectedSessions]:
    """The sessions affected by each outage, in one query."""
    if not outages:
        return []
    counts: dict[str, Any] = {}
    for index, outage in enumerate(outages):
        during = waited_during(outage.row.at, outage.until)
        counts[f"waited_{index}"] = Count("session", filter=during, distinct=True)
        counts[f"waiting_{index}"] = Count("session", filter=during & Q(state__in=OPEN_STATES), distinct=True)
    counted = JudgeJob.objects.filter(yours(), purpose=Purpose.VERDICT).aggregate(**counts)
    return [
        AffectedSessions(waited=counted[f"waited_{index}"], waiting=counted[f"waiting_{index}"])
        for index in range(len(outages))
    ]


def waited_during(since: dt.datetime, until: dt.datetime | None) -> Q:
    """A condition on jobs: open at some time from `since` to `until`. None as `until` means now."""
    created = Q() if until is None else Q(created_at__lt=until)
    return created & (Q(finished_at=None) | Q(finished_at__gt=since))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """A time in which calls failed because of the provider."""

    since: dt.datetime
    until: dt.datetime
    calls: int


def spells(model: str, start: dt.datetime) -> list[Spell]:
    """The spells of one judge since `start`. One query, with a row per hour."""
    rows = (
        JudgeAttempt.objects.filter(model=model, started_at__gte=start)
        .filter(reason__gt="", reason__in=TROUBLE)  # the first is the condition of an index
        .order_by()
        .values(hour=TruncHour("started_at"))
        .annotate(first=Min("started_at"), last=Max("started_at"), n=Count("pk"))
        .order_by("hour")
    )
    return join_hours(Spell(since=row["first"], until=row["last"], calls=row["n"]) for row in rows)


def join_hours(hours: Iterable[Spell]) -> list[Spell]:
    """Join hours (in order) that are less than an hour apart into spells. Spells with too few calls are dropped."""
    spells: list[Spell] = []
    for hour in hours:
        if spells and hour.since - spells[-1].until < HOUR:
            last = spells.pop()
            spells.append(Spell(since=last.since, until=hour.until, calls=last.calls + hour.calls))
        else:
            spells.append(hour)
    return [spell for spell in spells if spell.calls >= LEAST_SPELL_CALLS]
