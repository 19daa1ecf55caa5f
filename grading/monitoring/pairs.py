"""Verdicts and trajectory grades of the same sessions, in order of time: what the rules about drift read."""

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
# A series begins on the first of a month, so that it is the same from one run of a rule to the next.
MONTHS = 3
YEAR = dt.timedelta(days=365)
# How long an alarm about a change stays open. After that the new level is the usual one.
HOLDS = dt.timedelta(days=28)
# The usual difference is that of the pairs among this many latest verdicts; it takes at least this many pairs.
LATEST, LEAST_PAIRS = 500, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionVerdict:
    """A session's verdict in [0, 1] and its judge (model and rubric). `trajectory` is the grade on the trajectory's own
    scale, by that `version`, or None if the trajectory did not see the whole log.
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
        """Harness and category."""
        return f"{self.harness or 'unknown harness'} × {self.category or 'no category'}"

    @property
    def cell(self) -> str:
        """Harness, model and category."""
        return (
            f"{self.harness or 'unknown harness'} × {self.model or 'unknown model'} × {self.category or 'no category'}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """The median of verdict minus trajectory grade over `n` pairs, in [-1, 1]. `here`: all of one category."""

    difference: float
    n: int
    here: bool


def since(now: dt.datetime) -> dt.datetime:
    """The first of the month MONTHS months ago."""
    moment = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _month in range(MONTHS):
        moment = (moment - dt.timedelta(days=1)).replace(day=1)
    return moment


def judged(now: dt.datetime) -> list[SessionVerdict]:
    """The sessions judged since then, in order of time, each with its latest grades. Two queries."""
    rows = Grade.objects.chain().filter(yours(), session__ended_at__gte=since(now), session__ended_at__lte=now)
    rows = rows.order_by("pk")
    trajectories = rows.filter(source=Source.TRAJECTORY)
    trajectory_of = {
        session: (value, version) if view == EvidenceView.FULL else None
        for session, value, version, view in trajectories.values_list("session", "value", "version", "view")
    }
    verdicts = rows.verdicts().annotate(
        ended=F("session__ended_at"),
        harness=_name("harness"),
        category=_name("category"),
        arm=Coalesce(_name("model_arm"), "session__model"),
    )
    verdict_of: dict[int, SessionVerdict] = {}
    names = ("session", "ended", "harness", "arm", "category", "value", "model", "rubric")
    for session, ended, harness, model, category, value, judge, rubric in verdicts.values_list(*names):
        number, version = trajectory_of.get(session) or (None, "")
        verdict_of[session] = SessionVerdict(
            key=session,
            ended_at=ended,
            harness=harness or "",
            model=model or "",
            category=category or "",
            verdict=value or 0.0,
            judge=f"{judge}, rubric {rubric[:4]}",
            trajectory=number,
            version=version,
        )
    return sorted(verdict_of.values(), key=lambda each: (each.ended_at, each.key))


def usual(session: Session, verdict: Grade, fallback: Grade) -> Usual | None:
    """How far this judge usually is above that fallback: in the session's category, or else in all; None if there are
    too few pairs of the same judge, fallback, version and view. One query.

    Agents newer than the session's are left out: a newcomer can't change what is usual for those before it.
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
    differences = [
        (category, value - fallback_value)
        for category, value, fallback_value, version, view in pairs.order_by("-pk").values_list(*columns)[:LATEST]
        if fallback_value is not None and (version, view or "") == same_instrument
    ]
    return typical(differences, session.category_id)


def typical(differences: Sequence[tuple[Hashable, float]], category: Hashable) -> Usual | None:
    """The usual difference in the category or, with too few pairs there, in all (category, difference) pairs."""
    here = [difference for each, difference in differences if each == category]
    some = here if len(here) >= LEAST_PAIRS else [difference for _category, difference in differences]
    return Usual(difference=median(some), n=len(some), here=some is here) if len(some) >= LEAST_PAIRS else None


def a_year(count: int, now: dt.datetime) -> float:
    """The yearly rate of something that happened `count` times since the window began."""
    return count * (YEAR / (now - since(now)))


def by(rows: Iterable[SessionVerdict], key: Callable[[SessionVerdict], K]) -> Mapping[K, list[SessionVerdict]]:
    """The rows grouped by `key`."""
    groups: dict[K, list[SessionVerdict]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def _name(arm: str) -> Coalesce:
    return Coalesce(f"session__{arm}__merged_into__name", f"session__{arm}__name")
