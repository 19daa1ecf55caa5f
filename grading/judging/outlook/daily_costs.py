"""What the judge cost on each day of the site's, by everything that a page narrows it to.

A process remembers it: ninety days have many calls, and of a past day hardly one ever changes. Every change of a call
says so on its row: it runs, it has an answer that nobody has applied yet, or it ended just now; and who deletes calls
leaves an erasure.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from django.db.models import Case, Count, F, Max, Q, Value, When
from django.db.models.functions import TruncDate
from django.utils import timezone

from bandit.models import Erasure
from grading import clock
from grading.days import midnight
from grading.judging.outlook import costs
from grading.judging.outlook.attempts import KINDS
from grading.judging.outlook.costs import Spend
from grading.models import JudgeAttempt
from grading.models.judging import AttemptOutcome
from grading.remembered import Memory

DAY = dt.timedelta(days=1)
# Clocks may be set back, and a transaction may be told late: a call counts as ended just now for so long.
LATE = DAY
REMEMBERED_DAYS = 100
ENDED = [outcome for outcome in AttemptOutcome if outcome is not AttemptOutcome.RUNNING]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remembered:
    """Days as they were at the moment `at`, after these erasures."""

    at: dt.datetime
    erasures: tuple[int, int | None]
    days: Mapping[dt.date, tuple[DaySpend, ...]] = field(default_factory=dict)


_memory: Memory[str, _Remembered] = Memory(1)


def spends(first: dt.date) -> list[DaySpend]:
    """What each day cost, from `first` up to today and, where clocks run ahead, beyond. Three queries."""
    now, today, zone = clock.now(), timezone.localdate(), timezone.get_current_timezone_name()
    counted = Erasure.objects.aggregate(n=Count("pk"), last=Max("pk"))
    erasures = counted["n"], counted["last"]
    held = _memory.get(zone)
    if held is None or held.erasures != erasures:
        held = _Remembered(at=now, erasures=erasures)
    days = [first + DAY * n for n in range((today - first).days + 1)]
    moved = {today, *(_moved_since(held.at - LATE) if held.days else ())}
    wanted = [day for day in days if day in moved or day not in held.days]
    fresh: dict[dt.date, list[DaySpend]] = {day: [] for day in wanted}
    for row in _read(wanted):
        fresh.setdefault(row.day, []).append(row)
    # A day that moved and was not asked for is not known any more.
    kept = {day: rows for day, rows in held.days.items() if day not in moved}
    kept |= {day: tuple(rows) for day, rows in fresh.items() if day < today}
    latest = dict(sorted(kept.items())[-REMEMBERED_DAYS:])
    _memory.put(zone, _Remembered(at=now, erasures=erasures, days=latest))
    found = {**{day: held.days[day] for day in days if day not in fresh}, **fresh}
    return list(chain.from_iterable(found[day] for day in sorted(found)))


def _moved_since(moment: dt.datetime) -> set[dt.date]:
    """The days of which a call may be another than it was then."""
    moved = Q(outcome__in=ENDED, finished_at__gt=moment) | Q(outcome=AttemptOutcome.RUNNING) | Q(answer__isnull=False)
    return set(JudgeAttempt.objects.filter(moved).order_by().values_list(TruncDate("started_at"), flat=True).distinct())


def _read(days: Iterable[dt.date]) -> list[DaySpend]:
    """What these days cost, the last of which is today; in their order, and what is later than today as well."""
    runs: list[list[dt.date]] = []
    for day in days:
        if runs and day - runs[-1][-1] == DAY:
            runs[-1].append(day)
        else:
            runs.append([day])
    began = Q(started_at__gte=midnight(runs[-1][0]))
    for run in runs[:-1]:
        began |= Q(started_at__gte=midnight(run[0]), started_at__lt=midnight(run[-1] + DAY))
    keys: dict[str, Any] = {
        "day": TruncDate("started_at"),
        "agent": F("job__session__agent"),
        "asked": F("model"),
        "purpose": F("job__purpose"),
        "batched": Q(batch__isnull=False),
        "kind": KIND,
    }
    found = costs.spend_by(JudgeAttempt.objects.filter(began), **keys)
    return [
        DaySpend(day=day, agent=agent, model=model, purpose=purpose, batched=batched, kind=kind, spend=spend)
        for (day, agent, model, purpose, batched, kind), spend in found
    ]
