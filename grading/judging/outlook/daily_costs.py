"""What the judge cost on each day of the site's, by everything that a page narrows it to."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import TruncDate

from grading.days import midnight
from grading.judging.outlook import costs
from grading.judging.outlook.attempts import KINDS
from grading.judging.outlook.costs import Spend
from grading.models import JudgeAttempt

KIND = Case(*(When(kind.rows, then=Value(kind.name)) for kind in KINDS), default=Value(""))


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySpend:
    """What the calls cost that began on `day` and are alike in everything that a page narrows costs to. `agent` is its
    key; `kind` names an `AttemptKind`.
    """

    day: dt.date
    agent: int
    model: str
    purpose: str
    batched: bool
    kind: str
    spend: Spend


def spends(first: dt.date) -> list[DaySpend]:
    """What each day cost, from `first` up to today and, where clocks run ahead, beyond. One query."""
    keys: dict[str, Any] = {
        "day": TruncDate("started_at"),
        "agent": F("job__session__agent"),
        "asked": F("model"),
        "purpose": F("job__purpose"),
        "batched": Q(batch__isnull=False),
        "kind": KIND,
    }
    rows = costs.spend_by(JudgeAttempt.objects.filter(started_at__gte=midnight(first)), **keys)
    return [
        DaySpend(day=day, agent=agent, model=model, purpose=purpose, batched=batched, kind=kind, spend=spend)
        for (day, agent, model, purpose, batched, kind), spend in rows
    ]
