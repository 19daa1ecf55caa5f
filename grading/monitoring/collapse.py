"""Rewards that say nothing any more (A9)."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce

from grading.models import Grade, Session
from grading.models.sessions import yours
from grading.monitoring.rule import Finding, RuleOfSessions
from grading.monitoring.sameness import (
    ALIKE,
    HAIR,
    LEAST_ARMS,
    LEAST_GRADES,
    SHARE,
    ZEROS,
    alike,
    levelled,
    stuck,
    zeros,
)
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Source

WINDOW = dt.timedelta(days=7)
# Categories are compared with what they were before.
NOW, BEFORE = dt.timedelta(days=5), dt.timedelta(days=28)
# The others grade in few steps, and so repeat themselves where all is well: a journal that names one pull request is
# always worth the same.
SOURCES = (Source.JUDGE, Source.TRAJECTORY)
# Views in which a trajectory's number is not a constant.
MEASURED = (EvidenceView.FULL, EvidenceView.PART)
MACHINES = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineReward:
    """What a machine gave to a session, by its key, of an arm of the category bandit, in [0, 1]."""

    key: int
    arm: str
    ended_at: dt.datetime
    value: float


class Collapse(RuleOfSessions):
    """Where every session gets the same, a bandit learns nothing; and nothing else fails."""

    id = "A9"
    title = "Rewards have collapsed"
    means = (
        f"Opens when, within seven days, the last {ALIKE} machine rewards across at least {LEAST_ARMS} categories "
        f"lie within {HAIR:.2f} of each other; when the last {ZEROS} or more, across several categories, are zero; "
        f"when a single number makes up {100 * SHARE:.0f} % or more of at least {LEAST_GRADES} grades from the "
        f"judge (before any cap) or the trajectory; or when categories that differed over the {BEFORE.days} days "
        f"before no longer do over the last {NOW.days}. Floors, abstentions and sessions that found nothing to do "
        "don’t count."
    )
    todo = "Open a few of these sessions: is the grader still reading what they did?"
    every = dt.timedelta(hours=1)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        return found(_rewards(now), _grades(now), now)


def found(
    rewards: Sequence[MachineReward], grades: Mapping[str, Sequence[float]], now: dt.datetime
) -> Iterable[Finding]:
    """What has collapsed, of the rewards in order of time and the grades of the last seven days, by source."""
    latest = [each for each in rewards if each.ended_at > now - WINDOW]
    week = [(each.arm, each.value) for each in latest]
    run, span = zeros(week), alike(week)
    if run:
        arms = len({arm for arm, _value in week[-run:]})
        detail = f"The last {run} rewards, of {arms} categories, are zero."
        yield Finding(about="zeros", detail=detail, sessions=_keys(latest[-run:]))
    elif span is not None:
        arms = len({arm for arm, _value in week[-ALIKE:]})
        yield Finding(
            about="all alike",
            detail=f"The last {ALIKE} rewards, of {arms} categories, are all between {span[0]:.2f} and {span[1]:.2f}: "
            "they can’t tell one category from another.",
            sessions=_keys(latest[-ALIKE:]),
        )
    recent = [(each.arm, each.value) for each in rewards if each.ended_at > now - NOW]
    before = [(each.arm, each.value) for each in rewards if each.ended_at <= now - NOW]
    flat = levelled(before, recent)
    if flat is not None:
        yield Finding(
            about="levelled",
            detail=f"{flat.arms} categories differed by {flat.before:.2f} (standard deviation of their means); of that "
            f"at most {100 * max(flat.most, 0):.0f} % is left in the rewards of the last {NOW.days} days.",
            sessions=_keys(each for each in latest if each.ended_at > now - NOW),
        )
    for source, values in sorted(grades.items()):
        common = stuck(values)
        if common is not None:
            yield Finding(
                about=source,
                detail=f"{common.count} of {common.total} grades of the {source} in seven days are "
                f"{common.value:.2f}, exactly: {100 * common.share:.0f} %.",
            )


def _keys(rewards: Iterable[MachineReward]) -> tuple[int, ...]:
    return tuple(each.key for each in rewards)


def _rewards(now: dt.datetime) -> list[MachineReward]:
    """The machines' rewards of both windows, each with its category, in order of time: one query."""
    grade = Grade.objects.filter(pk=OuterRef("settlement__grade"))
    rows = (
        Session.objects.yours()
        .filter(ended_at__gt=now - NOW - BEFORE, ended_at__lte=now)
        .exclude(category=None)
        .annotate(
            arm=Coalesce("category__merged_into__name", "category__name"),
            seen=Subquery(grade.values("view")),
        )
        .filter(reward_source__in=MACHINES, reward_value__isnull=False)
        .order_by("ended_at", "pk")
    )
    names = ("pk", "arm", "ended_at", "reward_value", "seen")
    return [
        MachineReward(key=key, arm=arm, ended_at=ended_at, value=value)
        for key, arm, ended_at, value, view in rows.values_list(*names)
        if view != EvidenceView.LOOKED
    ]


def _grades(now: dt.datetime) -> dict[str, list[float]]:
    """The grades that hold of the window's sessions, by source: one query. A judge's later failure hides no verdict."""
    rows = Grade.objects.chain().filter(
        yours(), session__ended_at__gt=now - WINDOW, session__ended_at__lte=now, source__in=SOURCES
    )
    held = {
        (source, session): (value, view, mean)
        for source, session, value, view, mean in rows.order_by("pk").values_list(
            "source", "session", "value", "view", "mean"
        )
        if value is not None or source != Source.JUDGE
    }
    found: dict[str, list[float]] = defaultdict(list)
    for (source, _session), (value, view, mean) in held.items():
        if value is not None and (source == Source.JUDGE or view in MEASURED):
            # What holds a score down (harm, or work that came only so far) does so at one number.
            found[source].append(value if mean is None else mean)
    return found
