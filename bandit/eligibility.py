"""What may be chosen at all, decided before any draw (N11), and what reading has led to lately."""

from datetime import date, datetime, time, timedelta

from django.db.models import Exists, OuterRef, Q, Sum
from django.utils import timezone

from bandit.core.feedback import Feedback, Sizes, feedback
from bandit.core.table import MICRO, Row
from bandit.models import Arm, Bandit, Bucket, LedgerEntry, PolicyVersion, Selection
from bandit.reading import weights_of


def reason_against(arm: Arm, supply: dict[str, int] | None, used: int, limit: int) -> str:
    """Why the arm may not be chosen now; empty if it may. `used` of `limit` consumption sessions are spent today."""
    if arm.retired_at:
        return f"retired on {arm.retired_at:%Y-%m-%d}"
    if arm.paused:
        return "paused"
    if supply is not None and not supply.get(arm.name):
        return "no work available" if arm.name in supply else "not in the supply given"
    if arm.is_consumption and used >= limit:
        return f"{used} of {limit} consumption sessions used today"
    return ""


def consumption_today(bandit: Bandit, today: date) -> int:
    """Consumption sessions of this site-local day: rewarded ones, and decisions for one that have no reward yet.

    An abandoned decision counts: what it started is unknown until the day is over.
    """
    rewarded = Bucket.objects.filter(bandit=bandit, arm__is_consumption=True, effective_day=today)
    start = timezone.make_aware(datetime.combine(today, time()), timezone.get_default_timezone())
    decided = Selection.objects.filter(bandit=bandit, created__gte=start, created__lt=start + timedelta(days=1))
    reading = Q(executed_arm__is_consumption=True) | Q(executed_arm=None, arm__is_consumption=True)
    live = LedgerEntry.objects.filter(bandit=bandit, observation=OuterRef("observation")).live()
    unrewarded = decided.filter(reading).exclude(Exists(live)).count()
    return unrewarded + int(rewarded.aggregate(total=Sum("n"))["total"] or 0)


def consumption_feedback(rows: list[Row], names: list[str], version: PolicyVersion, today: date) -> dict[str, Feedback]:
    """Seed 000's boost or penalty of each consumption arm, from the rewards that carry weight."""
    sizes = Sizes(
        boost=version.consumption_boost,
        penalty=version.consumption_penalty,
        window=version.consumption_window_days,
        least=version.consumption_min_samples,
    )
    since, weights = today - timedelta(days=sizes.window), weights_of(version)
    moved = {}
    for name in names:
        recent = [row for row in rows if row.arm == name and row.day > since and weights.get(row.source)]
        n, s = sum(row.n for row in recent), sum(row.s for row in recent)
        found = feedback(n, s / n / MICRO if n else 0.0, sizes)
        if found:
            moved[name] = found
    return moved
