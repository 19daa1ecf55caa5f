"""Loads verdicts with the trajectory grades of the same sessions, for the alarm rules about drift."""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Coalesce

from grading.models import Grade, Session
from grading.models.sessions import yours
from grading.reward import rewards
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Source

K = TypeVar("K", bound=Hashable)
# A series begins on the first day of the month this many months ago, so that it is the same from one run to the next.
MONTHS = 3
YEAR = dt.timedelta(days=365)
# How long an alarm about a change stays open. After that, the new level counts as the usual one.
HOLDS = dt.timedelta(days=28)
# The usual difference is computed from the pairs among this many latest verdicts. It needs at least this many pairs.
LATEST_VERDICTS, LEAST_PAIRS = 500, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionVerdict:
    """A session's verdict in [0, 1] and its judge (model and rubric).

    `trajectory` is the session's trajectory grade, on the trajectory's own scale, and `version` the version of the
    trajectory's rules. It is None if the trajectory did not see the whole log.
    """

    key: int
    ended_at: dt.datetime
    harness: str
    model: str
    category: str
    verdict: float
    judge: str
    trajectory: float | None
    version: str

    @property
    def slice(self) -> str:
        """The name of the session's harness and category, as alarms show it."""
        return f"{self.harness or 'unknown harness'} × {self.category or 'no category'}"

    @property
    def cell(self) -> str:
        """The name of the session's harness, model and category, as alarms show it."""
        return (
            f"{self.harness or 'unknown harness'} × {self.model or 'unknown model'} × {self.category or 'no category'}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualDifference:
    """The median of (verdict − fallback grade), in [-1, 1], over `n` pairs. `in_category`: they are of one category."""

    difference: float
    n: int
    in_category: bool


def first_day(now: dt.datetime) -> dt.datetime:
    """Midnight on the first day of the month MONTHS months ago."""
    moment = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _month in range(MONTHS):
        moment = (moment - dt.timedelta(days=1)).replace(day=1)
    return moment


def load_verdicts(now: dt.datetime) -> list[SessionVerdict]:
    """The judged sessions that ended since `first_day`, in order of time, each with its latest grades. Two queries."""
    rows = Grade.objects.chain().filter(yours(), session__ended_at__gte=first_day(now), session__ended_at__lte=now)
    rows = rows.order_by("pk")  # so that the latest grade of a session replaces the earlier ones in the dictionaries
    trajectories = rows.filter(source=Source.TRAJECTORY)
    trajectory_of: dict[int, tuple[float | None, str]] = {}
    for session, value, version, view in trajectories.values_list("session", "value", "version", "view"):
        trajectory_of[session] = (value, version) if view == EvidenceView.FULL else (None, "")
    verdicts = rows.verdicts().annotate(
        ended=F("session__ended_at"),
        harness=_name("harness"),
        category=_name("category"),
        arm=Coalesce(_name("model_arm"), "session__model"),
    )
    verdict_of: dict[int, SessionVerdict] = {}
    names = ("session", "ended", "harness", "arm", "category", "value", "model", "rubric")
    for session, ended, harness, model, category, value, judge, rubric in verdicts.values_list(*names):
        trajectory, version = trajectory_of.get(session, (None, ""))
        verdict_of[session] = SessionVerdict(
            key=session,
            ended_at=ended,
            harness=harness or "",
            model=model or "",
            category=category or "",
            verdict=value or 0.0,
            judge=f"{judge}, rubric {rubric[:4]}",
            trajectory=trajectory,
            version=version,
        )
    return sorted(verdict_of.values(), key=lambda each: (each.ended_at, each.key))


def usual_difference(session: Session, verdict: Grade, fallback: Grade) -> UsualDifference | None:
    """How far this judge's verdicts usually are above grades of the same source, version and view as `fallback`.

    If the session's category has too few pairs, pairs of all categories are used; None if those are too few as well.
    Pairs of agents newer than the session's are ignored, so that a new agent can't change what is usual for the others.
    One query.
    """
    same_judge = (
        Grade.objects.chain()
        .verdicts()
        .filter(
            yours(),
            model=verdict.model,
            rubric=verdict.rubric,
            session__agent__created_at__lte=session.agent.created_at,
        )
    )
    other = Grade.objects.chain().filter(session=OuterRef("session"), source=fallback.source).order_by("-pk")
    pairs = same_judge.exclude(session=session).annotate(
        fallback_value=Subquery(other.values("value")[:1]),
        fallback_version=Subquery(other.values("version")[:1]),
        fallback_view=Subquery(other.values("view")[:1]),
    )
    columns = ("session__category", "value", "fallback_value", "fallback_version", "fallback_view")
    same_instrument = (fallback.version, rewards.view_of(fallback))
    latest = pairs.order_by("-pk").values_list(*columns)[:LATEST_VERDICTS]
    differences = [
        (category, value - fallback_value)
        for category, value, fallback_value, version, view in latest
        if fallback_value is not None and (version, view or "") == same_instrument
    ]
    return typical_difference(differences, session.category_id)


def typical_difference(differences: Sequence[tuple[Hashable, float]], category: Hashable) -> UsualDifference | None:
    """The median of these (category, difference) pairs: of the category if it has enough, otherwise of all.

    None if there are too few in all.
    """
    in_category = [difference for other, difference in differences if other == category]
    if len(in_category) >= LEAST_PAIRS:
        return UsualDifference(difference=median(in_category), n=len(in_category), in_category=True)
    in_all = [difference for _category, difference in differences]
    if len(in_all) >= LEAST_PAIRS:
        return UsualDifference(difference=median(in_all), n=len(in_all), in_category=False)
    return None


def yearly_rate(count: int, now: dt.datetime) -> float:
    """The number per year of something that happened `count` times since `first_day`."""
    return count * (YEAR / (now - first_day(now)))


def group_by(rows: Iterable[SessionVerdict], key: Callable[[SessionVerdict], K]) -> Mapping[K, list[SessionVerdict]]:
    """The rows grouped by `key`, each group in the order of the rows."""
    groups: dict[K, list[SessionVerdict]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def _name(arm: str) -> Coalesce:
    """The name of the session's `arm` (a relation of Session), or of the arm that it was merged into."""
    return Coalesce(f"session__{arm}__merged_into__name", f"session__{arm}__name")
