"""Lessons and the rewards of their sessions, out of the database into columns: in as many queries for one as for all.

Outcomes are residuals, reward − category mean + mean of all, of the rewards that are live in the ledger.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self

import numpy as np
from django.db.models import Sum
from django.db.models.functions import Coalesce
from django.utils import timezone
from numpy.typing import NDArray

from bandit.core.betting import Bets, Draws, bar
from bandit.core.effect import verdicts
from bandit.core.residual import Baseline
from bandit.models import MICRO, Assignment, Bandit, Bucket, LedgerEntry, LedgerEntryQuerySet
from bandit.reading import baseline_of, site_day, version_of
from grading.days import midnight
from grading.models import Session, SessionLesson
from grading.models.sessions import observation_of
from grading.reward.lessons.lesson import Lesson, Sample

CATEGORY = "category"
DAYS = 180
# A draw this old without a session has none coming.
OVERDUE = dt.timedelta(days=2)

Match = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """A draw that counts; whether a session came of it, and had the lesson as it was drawn."""

    row: Any
    came: bool
    heeded: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class LessonDraws:
    """The draws of a lesson as `columns` (k,), and the category of each one's session, "" for none."""

    columns: Draws
    context: NDArray[np.str_]

    @classmethod
    def of(cls, drawn: Sequence[_Drawn], rewards: Mapping[str, tuple[str, float]], moved: Baseline | None) -> Self:
        """These draws in their order, with what is left of the rewards that came of them."""
        offsets = {} if moved is None else moved.offsets
        earned = [rewards.get(each.row.observation, ("", np.nan)) for each in drawn]
        least = np.array([offsets.get(context, 0.0) for context, _ in earned], dtype=np.float64)
        columns = Draws(
            taken=np.array([each.row.taken for each in drawn], dtype=bool),
            chance=np.array([each.row.chance for each in drawn], dtype=np.float64),
            came=np.array([each.came for each in drawn], dtype=bool),
            heeded=np.array([each.heeded for each in drawn], dtype=bool),
            outcome=least + np.array([reward for _, reward in earned], dtype=np.float64),
            least=least,
            day=np.array([site_day(each.row.created).toordinal() for each in drawn], dtype=np.int64),
        )
        return cls(columns=columns, context=np.array([context for context, _ in earned], dtype=np.str_))


@dataclass(frozen=True, kw_only=True, eq=False)
class Readings:
    """Every lesson, by name; `baseline` is what was taken out of their rewards, None for nothing.

    `bar` is the e-value from which one of them may be called something.
    """

    lessons: tuple[Lesson, ...]
    baseline: Baseline | None
    salience_floor: float
    bar: float


def read(bandit: Bandit, now: dt.datetime) -> Readings:
    """Every lesson of this bandit: its sessions of the last 180 days, and every draw there was.

    One that was merged is part of the other.
    """
    today, version = site_day(now), version_of(bandit)
    since = midnight(today - dt.timedelta(days=DAYS - 1))
    moved, floor = baseline_of(bandit, today), version.salience_floor
    sample, matches, credit = _sample(since, moved), _matches(since), _credit(bandit, floor)
    arms = bandit.arms.filter(merged_into=None).order_by("name")
    # A session may come in, or be erased, between two of these queries.
    known = {arm: [row for at, row in found.items() if at in sample.place] for arm, found in matches.items()}
    drawn = draws_of(bandit, moved, now)
    # The e-value from which one may be called something, among all that were ever drawn.
    least = bar(Bets.on(each.columns).evidence for each in drawn.values())
    none = LessonDraws(columns=Draws.none(), context=np.zeros(0, dtype=np.str_))
    lessons = []
    for arm in arms:
        rows, (rewards, counted), draws = known.get(arm.pk, []), credit.get(arm.pk, (0, 0.0)), drawn.get(arm.pk, none)
        lessons.append(
            Lesson(
                arm=arm,
                sample=sample,
                at=np.array([sample.place[row["session_id"]] for row in rows], dtype=np.int64),
                taken=np.array([row["taken"] for row in rows], dtype=bool),
                draws=draws.columns,
                context=draws.context,
                bar=least,
                next_chance=1 - version.holdout,
                rewards=rewards,
                credit=counted,
            )
        )
    return Readings(lessons=tuple(lessons), baseline=moved, salience_floor=floor, bar=least)


def decided(bandit: Bandit, now: dt.datetime) -> frozenset[str]:
    """The lessons with a verdict at `now`, by name; none where the policy holds out all alike, decided or not.

    Remembered for the day, until something is learnt. `bandit` is to be fresh from the database, its baseline included.
    """
    version = version_of(bandit)
    if version.holdout_decided is None:
        return frozenset()
    learnt = None if bandit.baseline is None else bandit.baseline.revision
    return _decided(_Asked(bandit=bandit, now=now, key=(bandit.pk, bandit.revision, learnt, site_day(now))))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Whether lessons are decided; of equal ones the first answer holds."""

    bandit: Bandit = field(compare=False)
    now: dt.datetime = field(compare=False)
    key: tuple[object, ...]


@lru_cache(maxsize=4)
def _decided(asked: _Asked) -> frozenset[str]:
    drawn = draws_of(asked.bandit, baseline_of(asked.bandit, site_day(asked.now)), asked.now)
    said = verdicts({arm: each.columns for arm, each in drawn.items()})
    found = [arm for arm, verdict in said.items() if verdict.decides]
    return frozenset(asked.bandit.arms.filter(pk__in=found).values_list("name", flat=True))


def draws_of(bandit: Bandit, moved: Baseline | None, now: dt.datetime) -> dict[int, LessonDraws]:
    """Every draw of each lesson, in the order in which they were made: three queries.

    Left out are those of which a session may yet come, those from after their session, and those where two that are
    one lesson by now were drawn for one session.
    """
    made = Assignment.objects.filter(bandit=bandit, chance__lt=1)  # what was certain was not drawn
    columns = ("pk", "taken", "chance", "created", "observation", "lesson")
    rows = list(
        made.annotate(lesson=Coalesce("arm__merged_into_id", "arm_id"))
        .order_by("created", "pk")
        .values_list(*columns, named=True)
    )
    attached = SessionLesson.objects.filter(assignment__bandit=bandit).order_by("pk")
    was_given = dict(attached.values_list("assignment_id", "taken"))
    rewards = _rewards(LedgerEntry.objects.filter(observation__in=made.exclude(observation="").values("observation")))
    times = Counter((row.lesson, row.observation) for row in rows)
    found: dict[int, list[_Drawn]] = defaultdict(list)
    for row in rows:
        if row.pk in was_given and times[row.lesson, row.observation] == 1:
            found[row.lesson].append(_Drawn(row=row, came=True, heeded=was_given[row.pk] == row.taken))
        elif not row.observation and row.created < now - OVERDUE:
            found[row.lesson].append(_Drawn(row=row, came=False, heeded=True))
    return {lesson: LessonDraws.of(each, rewards, moved) for lesson, each in found.items()}


def _matches(since: dt.datetime) -> Mapping[int, Mapping[int, Match]]:
    """The rows of each lesson by session; where two that are one lesson by now matched one session, one of both."""
    rows = SessionLesson.objects.filter(session__ended_at__gte=since).order_by("pk")
    found: dict[int, dict[int, Match]] = defaultdict(dict)
    for row in rows.values("session_id", "taken", lesson=Coalesce("arm__merged_into_id", "arm_id")):
        held = found[row["lesson"]].setdefault(row["session_id"], dict(row))
        held["taken"] = held["taken"] or row["taken"]
    return found


def _rewards(entries: LedgerEntryQuerySet) -> dict[str, tuple[str, float]]:
    """The category and the live reward of each observation among these that has one."""
    live = entries.rewards().filter(bandit__name=CATEGORY).live().order_by()
    columns = ("observation", Coalesce("arm__merged_into__name", "arm__name"), "value_micro")
    return {observation: (context, micro / MICRO) for observation, context, micro in live.values_list(*columns)}


def _sample(since: dt.datetime, moved: Baseline | None) -> Sample:
    """The sessions since then of the agents that told lessons in that time, with what is left of their rewards."""
    telling = SessionLesson.objects.filter(session__ended_at__gte=since).values("session__agent")
    sessions = Session.objects.filter(ended_at__gte=since, agent__in=telling).order_by("pk")
    rows = list(sessions.values_list("pk", "agent_id", "ended_at"))
    rewards = _rewards(LedgerEntry.objects.filter(effective_day__gte=timezone.localdate(since)))
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
