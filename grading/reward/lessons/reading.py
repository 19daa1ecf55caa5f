"""Lessons and the rewards of their sessions, out of the database into columns: in as many queries for one as for all.

Outcomes are residuals, reward − category mean + mean of all, of the rewards that are live in the ledger.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from bandit.models import Assignment, Bandit, Bucket, Erasure
from bandit.reading import baseline_of, site_day, version_of
from grading.days import midnight
from grading.models import Session, SessionLesson
from grading.models.sessions import session_of, yours
from grading.remembered import Memory
from grading.reward.lessons.lesson import Lesson, Sample
from grading.reward.lessons.live import LiveRewards, live_rewards

DAYS = 180
# A draw this old without a session has none coming.
OVERDUE = dt.timedelta(days=2)
QUARTER = 15 * 60
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# Of a draw: that no session came of it; that no session says whether it was given.
NO_SESSION, UNTOLD = -1, -1

Match = dict[str, Any]
# A draw's id, its arm's, whether it was taken, with which chance, and when.
DrawRow = tuple[int, int, bool, float, dt.datetime]


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawsMade:
    """What never changes about draws, as columns (n,) by `key`: `created` in microseconds since 1970, its site `day` as
    an ordinal. In `order` they are as they were made. New ones have higher keys than the `last`: who draws holds the
    bandit's row.
    """

    key: NDArray[np.int64]
    arm: NDArray[np.int64]
    taken: NDArray[np.bool_]
    chance: NDArray[np.float64]
    created: NDArray[np.int64]
    day: NDArray[np.int64]
    order: NDArray[np.int64]
    last: DrawRow | None

    @classmethod
    def of(cls, rows: Sequence[DrawRow]) -> Self:
        keys, arms, taken, chances, moments = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        columns: dict[str, Any] = {
            "key": np.array(keys, dtype=np.int64),
            "arm": np.array(arms, dtype=np.int64),
            "taken": np.array(taken, dtype=bool),
            "chance": np.array(chances, dtype=np.float64),
            "created": np.array([_micros(moment) for moment in moments], dtype=np.int64),
            "day": _days(moments, site_day),
        }
        order = np.lexsort((columns["key"], columns["created"]))
        return cls(**columns, order=order, last=rows[-1] if rows else None)

    def plus(self, rows: Sequence[DrawRow]) -> Self:
        """With these, of higher keys."""
        if not rows:
            return self
        new = self.of(rows)
        names = ("key", "arm", "taken", "chance", "created", "day")
        columns = {name: np.concatenate((getattr(self, name), getattr(new, name))) for name in names}
        order = np.lexsort((columns["key"], columns["created"]))
        return replace(self, **columns, order=order, last=new.last)


_memory = Memory[tuple[int, int], DrawsMade](1)


@dataclass(frozen=True, kw_only=True, eq=False)
class LessonDraws:
    """The draws of a lesson as `columns` (k,), and the category of each one's session, "" for none."""

    columns: Draws
    context: NDArray[np.str_]


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
    live = live_rewards()
    sample, matches, credit = _sample(since, moved, live), _matches(since), _credit(bandit, floor)
    arms = bandit.arms.filter(merged_into=None).order_by("name")
    # A session may come in, or be erased, between two of these queries.
    known = {arm: [row for at, row in found.items() if at in sample.place] for arm, found in matches.items()}
    drawn = draws_of(bandit, moved, now, live)
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
    moved = baseline_of(asked.bandit, site_day(asked.now))
    drawn = draws_of(asked.bandit, moved, asked.now, live_rewards())
    said = verdicts({arm: each.columns for arm, each in drawn.items()})
    found = [arm for arm, verdict in said.items() if verdict.decides]
    return frozenset(asked.bandit.arms.filter(pk__in=found).values_list("name", flat=True))


def draws_of(bandit: Bandit, moved: Baseline | None, now: dt.datetime, live: LiveRewards) -> dict[int, LessonDraws]:
    """Every draw of each lesson, in the order in which they were made, with these rewards: five queries.

    Left out are those of which a session may yet come, those from after their session, and those where two that are
    one lesson by now were drawn for one session.
    """
    made, observations = _made(bandit)
    if not len(made.key):
        return {}
    attached = SessionLesson.objects.filter(assignment__bandit=bandit).order_by("pk")
    was_given = dict(attached.values_list("assignment_id", "taken"))
    merged = dict(bandit.arms.exclude(merged_into=None).values_list("pk", "merged_into"))
    numbers: dict[str, int] = {"": NO_SESSION}
    # A name that is no session's has a number of its own, below all.
    session = np.array([_number(name, numbers) for name in observations], dtype=np.int64)[made.order]
    arms, arm = np.unique(made.arm, return_inverse=True)
    lesson = np.array([merged.get(each, each) for each in arms.tolist()], dtype=np.int64)[arm][made.order]
    given = np.array([was_given.get(key, UNTOLD) for key in made.key.tolist()], dtype=np.int64)[made.order]
    drawn = made.taken[made.order]
    pairs = lesson * (1 + session.max() - session.min()) + session - session.min()
    _, which, times = np.unique(pairs, return_inverse=True, return_counts=True)
    came = (given != UNTOLD) & (times[which] == 1)
    lost = ~came & (session == NO_SESSION) & (made.created[made.order] < _micros(now - OVERDUE))
    context, least, reward = live.of(session, {} if moved is None else moved.offsets)
    whole = Draws(
        taken=drawn,
        chance=made.chance[made.order],
        came=came,
        heeded=~came | (given == drawn),
        outcome=least + reward,
        least=least,
        day=made.day[made.order],
    )
    kept = came | lost
    found = {}
    for each in dict.fromkeys(lesson[kept].tolist()):
        own = kept & (lesson == each)
        found[each] = LessonDraws(columns=whole.only(own), context=context[own])
    return found


def _made(bandit: Bandit) -> tuple[DrawsMade, list[str]]:
    """Every draw that was one, and the name of the session that came of each: three queries."""
    drawn = Assignment.objects.filter(bandit=bandit, chance__lt=1).order_by("pk")  # what was certain was not drawn
    key = bandit.pk, Erasure.objects.count()
    columns = drawn.values_list("pk", "arm_id", "taken", "chance", "created")
    held = _memory.get(key)
    if held is not None and held.last is not None:
        found = list(columns.filter(pk__gte=held.last[0]))
        # Another is in its place, or none, where that one was rolled back.
        held = held.plus(found[1:]) if found[:1] == [held.last] else None
    if held is None or held.last is None:
        held = DrawsMade.of(list(columns))
    last = 0 if held.last is None else held.last[0]
    observations = list(drawn.filter(pk__lte=last).values_list("observation", flat=True))
    if len(observations) != len(held.key):  # some were erased meanwhile
        _memory.forget()
        return _made(bandit)
    _memory.put(key, held)
    return held, observations


def _micros(moment: dt.datetime) -> int:
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def _number(observation: str, numbers: dict[str, int]) -> int:
    key = session_of(observation)
    return numbers.setdefault(observation, NO_SESSION - len(numbers)) if key is None else key


def _days(moments: Sequence[dt.datetime], day_of: Callable[[dt.datetime], dt.date]) -> NDArray[np.int64]:
    """Each moment's day as an ordinal: one answer for a quarter of an hour, by which all time zones are apart."""
    quarters = np.array([moment.timestamp() for moment in moments], dtype=np.float64) // QUARTER
    _, first, which = np.unique(quarters, return_index=True, return_inverse=True)
    days = np.array([day_of(moments[at]).toordinal() for at in first], dtype=np.int64)
    return days[which]


def _matches(since: dt.datetime) -> Mapping[int, Mapping[int, Match]]:
    """The rows of each lesson by session; where two that are one lesson by now matched one session, one of both."""
    rows = SessionLesson.objects.filter(yours(), session__ended_at__gte=since).order_by("pk")
    found: dict[int, dict[int, Match]] = defaultdict(dict)
    for row in rows.values("session_id", "taken", lesson=Coalesce("arm__merged_into_id", "arm_id")):
        held = found[row["lesson"]].setdefault(row["session_id"], dict(row))
        held["taken"] = held["taken"] or row["taken"]
    return found


def _sample(since: dt.datetime, moved: Baseline | None, live: LiveRewards) -> Sample:
    """The sessions since then of the agents that told lessons in that time, with what is left of their rewards."""
    telling = SessionLesson.objects.filter(yours(), session__ended_at__gte=since).values("session__agent")
    sessions = Session.objects.yours().filter(ended_at__gte=since, agent__in=telling).order_by("pk")
    rows = list(sessions.values_list("pk", "agent_id", "ended_at"))
    keys, agents, ended = zip(*rows, strict=True) if rows else ((), (), ())
    session = np.array(keys, dtype=np.int64)
    offsets = {} if moved is None else moved.offsets
    context, least, reward = live.of(session, offsets, timezone.localdate(since))
    return Sample(
        session=session,
        agent=np.array(agents, dtype=np.int64),
        day=_days(ended, timezone.localdate),
        context=context,
        outcome=reward + least,
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
