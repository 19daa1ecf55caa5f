"""The judge's costs by day and by all filters of the costs page."""

import datetime as dt
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import Case, Count, F, Max, Q, QuerySet, Value, When
from django.db.models.functions import TruncDate
from django.utils import timezone

from bandit.models import Erasure
from grading.days import midnight
from grading.judging.outlook import costs
from grading.judging.outlook.attempts import KINDS
from grading.judging.outlook.costs import Spend
from grading.models import JudgeAttempt, StoredReading
from grading.models.judging import AttemptOutcome

# Older days are not shown.
MOST_DAYS = 90
# The name of the stored reading.
SPENDS = "judge costs by day"
KIND = Case(*(When(kind.condition, then=Value(kind.name)) for kind in KINDS), default=Value(""))


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySpend:
    """The cost of the calls of one day, for one combination of the page's filters.

    `agent` is a primary key, `kind` the name of an `AttemptKind`.
    """

    day: dt.date
    agent: int
    model: str
    purpose: str
    batched: bool
    kind: str
    spend: Spend


def spends(first: dt.date) -> list[DaySpend]:
    """The costs of the days from `first` on, future ones of wrong clocks included. One query."""
    return _spends(JudgeAttempt.objects.filter(started_at__gte=midnight(first)))


def store_spends(now: dt.datetime) -> None:
    """Store the costs of the days before today for the costs page, if attempts began or ended since the last time."""
    today = timezone.localdate(now)
    first = today - dt.timedelta(days=MOST_DAYS)
    attempts = JudgeAttempt.objects.filter(started_at__gte=midnight(first)).order_by()
    running = Count("pk", filter=Q(outcome=AttemptOutcome.RUNNING))
    changes = attempts.aggregate(last=Max("pk"), ended=Max("finished_at"), running=running)
    inputs = repr((today.isoformat(), changes, Erasure.objects.count(), settings.TIME_ZONE))
    StoredReading.objects.renew(SPENDS, inputs, partial(_spends_as_json, first, today), now)


def _spends_as_json(first: dt.date, end: dt.date) -> dict[str, Any]:
    attempts = JudgeAttempt.objects.filter(started_at__gte=midnight(first), started_at__lt=midnight(end))
    return {
        "end": end.isoformat(),
        "days": [
            (row.day.isoformat(), row.agent, row.model, row.purpose, row.batched, row.kind, asdict(row.spend))
            for row in _spends(attempts)
        ],
    }


def latest_spends(first: dt.date) -> tuple[list[DaySpend], dt.datetime | None]:
    """The costs of the days from `first` on, and when the stored ones were stored (None if none are stored).

    The costs are those of `spends(first)`, but only days that are not stored are computed. `first` is at most MOST_DAYS
    ago.
    """
    stored = StoredReading.objects.filter(name=SPENDS).first()
    if stored is None:
        return spends(first), None
    rows = [
        DaySpend(
            day=dt.date.fromisoformat(day),
            agent=agent,
            model=model,
            purpose=purpose,
            batched=batched,
            kind=kind,
            spend=Spend(**spend),
        )
        for day, agent, model, purpose, batched, kind, spend in stored.value["days"]
    ]
    end = dt.date.fromisoformat(stored.value["end"])
    return [*(row for row in rows if row.day >= first), *spends(max(first, end))], stored.read_at


def _spends(attempts: QuerySet[JudgeAttempt]) -> list[DaySpend]:
    keys: dict[str, Any] = {
        "day": TruncDate("started_at"),
        "agent": F("job__session__agent"),
        "asked": F("model"),  # "model" would clash with the field
        "purpose": F("job__purpose"),
        "batched": Q(batch__isnull=False),
        "kind": KIND,
    }
    return [
        DaySpend(day=day, agent=agent, model=model, purpose=purpose, batched=batched, kind=kind, spend=spend)
        for (day, agent, model, purpose, batched, kind), spend in costs.spend_by(attempts, **keys)
    ]
