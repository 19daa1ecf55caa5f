"""Lessons and the rewards of their sessions, out of the database into columns: in as many queries for one as for all.

Outcomes are residuals, reward − category mean + mean of all, of the rewards that are live in the ledger.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from bandit.core.residual import Baseline
from bandit.models import MICRO, Bandit, Bucket, LedgerEntry
from bandit.reading import baseline_of, site_day, version_of
from grading.days import midnight
from grading.models import Session, SessionLesson
from grading.models.sessions import observation_of
from grading.reward.lessons.lesson import Lesson, Sample

CATEGORY = "category"
DAYS = 180

Match = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Readings:
    """Every lesson, by name; `baseline` is what was taken out of their rewards, None for nothing."""

    lessons: tuple[Lesson, ...]
    baseline: Baseline | None
    salience_floor: float


def read(bandit: Bandit, now: dt.datetime) -> Readings:
    """Every lesson of this bandit with its sessions of the last 180 days. One that was merged is part of the other."""
    today = site_day(now)
    since = midnight(today - dt.timedelta(days=DAYS - 1))
    moved, floor = baseline_of(bandit, today), version_of(bandit).salience_floor
    sample, matches, credit = _sample(since, moved), _matches(since), _credit(bandit, floor)
    arms = bandit.arms.filter(merged_into=None).order_by("name")
    # A session may come in, or be erased, between two of these queries.
    known = {arm: [row for at, row in found.items() if at in sample.place] for arm, found in matches.items()}
    lessons = []
    for arm in arms:
        rows, (rewards, counted) = known.get(arm.pk, []), credit.get(arm.pk, (0, 0.0))
        heeded = np.array([row["assignment__taken"] in {None, row["taken"]} for row in rows], dtype=bool)
        chance = np.array([row["assignment__chance"] or np.nan for row in rows], dtype=np.float64)
        lessons.append(
            Lesson(
                arm=arm,
                sample=sample,
                at=np.array([sample.place[row["session_id"]] for row in rows], dtype=np.int64),
                taken=np.array([row["taken"] for row in rows], dtype=bool),
                chance=np.where(chance < 1, chance, np.nan),  # what was certain was not drawn
                spoilt=~heeded,
                rewards=rewards,
                credit=counted,
            )
        )
    return Readings(lessons=tuple(lessons), baseline=moved, salience_floor=floor)


def _matches(since: dt.datetime) -> Mapping[int, Mapping[int, Match]]:
    """The rows of each lesson by session. Where two that are one lesson by now matched one session, no draw decided."""
    columns = ("session_id", "taken", "assignment__taken", "assignment__chance")
    rows = SessionLesson.objects.filter(session__ended_at__gte=since).order_by("pk")
    found: dict[int, dict[int, Match]] = defaultdict(dict)
    for row in rows.values(*columns, lesson=Coalesce("arm__merged_into_id", "arm_id")):
        held = found[row["lesson"]].setdefault(row["session_id"], row)
        if held is not row:
            held |= {"taken": held["taken"] or row["taken"], "assignment__taken": None, "assignment__chance": None}
    return found


def _sample(since: dt.datetime, moved: Baseline | None) -> Sample:
    """The sessions since then of the agents that told lessons in that time, with what is left of their rewards."""
    telling = SessionLesson.objects.filter(session__ended_at__gte=since).values("session__agent")
    sessions = Session.objects.filter(ended_at__gte=since, agent__in=telling).order_by("pk")
    rows = list(sessions.values_list("pk", "agent_id", "ended_at"))
    # The category and the reward of each observation that has one.
    live = (
        LedgerEntry.objects.rewards().filter(bandit__name=CATEGORY, effective_day__gte=timezone.localdate(since)).live()
    )
    name = Coalesce("arm__merged_into__name", "arm__name")
    rewards = {
        observation: (context, micro / MICRO)
        for observation, context, micro in live.order_by().values_list("observation", name, "value_micro")
    }
    offsets = {} if moved is None else moved.offsets
    earned = [rewards.get(observation_of(pk), ("", np.nan)) for pk, _, _ in rows]
    return Sample(
        session=np.array([pk for pk, _, _ in rows], dtype=np.int64),
        agent=np.array([agent for _, agent, _ in rows], dtype=np.int64),
        day=np.array([timezone.localdate(ended_at).toordinal() for _, _, ended_at in rows], dtype=np.int64),
        context=np.array([context for context, _ in earned], dtype=np.str_),
        outcome=np.array([reward + offsets.get(context, 0.0) for context, reward in earned], dtype=np.float64),
    )


def _credit(bandit: Bandit, floor: float) -> dict[int, tuple[int, float]]:
    """The rewards of each lesson, and how many they count as: f + (1 − f)·salience each."""
    found: Counter[int] = Counter()
    credit: dict[int, float] = defaultdict(float)
    cells = Bucket.objects.rewards().filter(bandit=bandit, n__gt=0).order_by("arm", "grader__salience")
    arm = Coalesce("arm__merged_into_id", "arm_id")
    for lesson, salience, n in cells.values_list(arm, "grader__salience").annotate(total=Sum("n")):
        found[lesson] += n
        credit[lesson] += n * (floor + (1 - floor) * salience / 100)
    return {lesson: (found[lesson], credit[lesson]) for lesson in found}
