"""Lessons and the rewards of their sessions, out of the database into columns: in as many queries for one as for all.

Outcomes are residuals, reward − category mean + mean of all, of the rewards that are live in the ledger.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
from django.db.models import QuerySet, Sum
from django.utils import timezone
from numpy.typing import NDArray

from bandit.core.betting import Bets, Draws, evidence_threshold
from bandit.core.effect import verdicts
from bandit.core.residual import Baseline
from bandit.models import MICRO, Arm, Assignment, Bandit, Bucket, Erasure, LedgerEntry
from bandit.reading import arms_of, baseline_of, site_day, version_of
from grading.days import midnight
from grading.models import Session
from grading.models.sessions import OBSERVATION
from grading.remembered import Memory, remembered
from grading.reward.lessons.columns import WholeSeconds, columns_of
from grading.reward.lessons.lesson import Lesson, Sample
from grading.reward.lessons.live import CATEGORY, LiveRewards, live_rewards
from grading.reward.lessons.matched import Matched, matched

DAYS = 180
# A draw this old without a session has none coming.
OVERDUE = dt.timedelta(days=2)
QUARTER = 15 * 60
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# Of a draw: that no session came of it; that no session says whether it was given.
NO_SESSION, UNTOLD = -1, -1
# So many draws, or sessions, are asked about by one query.
CHUNK = 500
# In the place of an agent: that the session is a sample.
NOT_YOURS = -1
# Sessions in the order of their ids, and their agents.
_whose = Memory[str, tuple[NDArray[np.int64], NDArray[np.int64]]](1)
NO_ROWS = np.zeros((3, 0), dtype=np.int64)
NO_MATCH = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)

# The sessions of a lesson, and whether each had it.
Match = tuple[NDArray[np.int64], NDArray[np.bool_]]
# A draw's id, its arm's, whether it was taken, with which chance, when, and what came of it.
DrawRow = tuple[int, int, bool, float, dt.datetime, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawsMade:
    """Draws as columns (n,) by `key`: `created` in microseconds since 1970, its site `day` as an ordinal. In `order`
    they are as they were made. New ones have higher keys than the `last`: who draws holds the bandit's row.

    `session` is that which came of each, NO_SESSION until one has: what has a session keeps it. A name that is no
    session's has a number of its own, below all, among `names`.
    """

    key: NDArray[np.int64]
    arm: NDArray[np.int64]
    taken: NDArray[np.bool_]
    chance: NDArray[np.float64]
    created: NDArray[np.int64]
    day: NDArray[np.int64]
    order: NDArray[np.int64]
    session: NDArray[np.int64]
    names: Mapping[str, int]
    last: DrawRow | None

    @classmethod
    def of(cls, rows: Sequence[DrawRow], names: Mapping[str, int]) -> Self:
        keys, arms, taken, chances, moments, observations = zip(*rows, strict=True) if rows else ((),) * 6
        session, named = _numbers(observations, names)
        columns: dict[str, Any] = {
            "key": np.array(keys, dtype=np.int64),
            "arm": np.array(arms, dtype=np.int64),
            "taken": np.array(taken, dtype=bool),
            "chance": np.array(chances, dtype=np.float64),
            "created": np.array([_micros(moment) for moment in moments], dtype=np.int64),
            "day": _days(np.array([moment.timestamp() for moment in moments], dtype=np.float64), site_day),
            "session": session,
        }
        order = np.lexsort((columns["key"], columns["created"]))
        return cls(**columns, names=named, order=order, last=rows[-1] if rows else None)

    def plus(self, rows: Sequence[DrawRow]) -> Self:
        """With these, of higher keys."""
        if not rows:
            return self
        new = self.of(rows, self.names)
        names = ("key", "arm", "taken", "chance", "created", "day", "session")
        columns = {name: np.concatenate((getattr(self, name), getattr(new, name))) for name in names}
        order = np.lexsort((columns["key"], columns["created"]))
        return replace(self, **columns, names=new.names, order=order, last=new.last)

    @property
    def open(self) -> NDArray[np.int64]:
        """The keys of those of which no session came yet."""
        found: NDArray[np.int64] = self.key[self.session == NO_SESSION]
        return found

    def closed(self, observations: Mapping[int, str]) -> Self:
        """With what came of these, by their keys."""
        if not observations:
            return self
        session, names = _numbers(observations.values(), self.names)
        closed = self.session.copy()
        closed[_places(self.key, np.array([*observations], dtype=np.int64))[0]] = session
        return replace(self, session=closed, names=names)


_memory = Memory[tuple[int, int], DrawsMade](1)


@dataclass(frozen=True, kw_only=True, eq=False)
class LessonDraws:
    """The draws of a lesson as `columns` (k,), and the category of each one's session, "" for none."""

    columns: Draws
    context: NDArray[np.str_]

    @cached_property
    def bets(self) -> Bets:
        return Bets.from_draws(self.columns)


@dataclass(frozen=True, kw_only=True, eq=False)
class Readings:
    """Every lesson, by name; `baseline` is what was taken out of their rewards, None for nothing.

    `bar` is the e-value from which one of them may be called something.
    """

    lessons: tuple[Lesson, ...]
    baseline: Baseline | None
    bar: float


def read(bandit: Bandit, now: dt.datetime) -> Readings:
    """Every lesson of this bandit: its sessions of the last 180 days, and every draw there was.

    One that was merged is part of the other.
    """
    today, version, since = site_day(now), version_of(bandit), _since(now)
    moved, floor = baseline_of(bandit, today), version.salience_floor
    live = live_rewards()
    found, arms = matched(), arms_of(bandit)
    (sample, matches), credit = _sample(arms, since, found, moved, live), _credit(bandit, arms, floor)
    drawn = draws_of(bandit, moved, now, arms=arms, live=live, found=found)
    # The e-value from which one may be called something, among all that were ever drawn.
    least = evidence_threshold(each.bets.evidence for each in drawn.values())
    none = LessonDraws(columns=Draws.none(), context=np.zeros(0, dtype=np.str_))
    lessons = []
    for arm in (arm for arm in arms if arm.merged_into_id is None):
        (rewards, counted), draws = credit.get(arm.pk, (0, 0.0)), drawn.get(arm.pk, none)
        session, taken = matches.get(arm.pk, NO_MATCH)
        # A session may come in, or be erased, between two of these queries.
        at, is_known = _places(sample.session, session)
        lessons.append(
            Lesson(
                arm=arm,
                sample=sample,
                at=at[is_known],
                taken=taken[is_known],
                draws=draws.columns,
                bets=draws.bets,
                context=draws.context,
                bar=least,
                next_chance=1 - version.holdout,
                rewards=rewards,
                credit=counted,
            )
        )
    return Readings(lessons=tuple(lessons), baseline=moved, bar=least)


def _since(now: dt.datetime) -> dt.datetime:
    return midnight(site_day(now) - dt.timedelta(days=DAYS - 1))


def decided(bandit: Bandit, now: dt.datetime) -> frozenset[str]:
    """The lessons with a verdict at `now`, by name.

    Remembered for the day, until something is learnt. `bandit` is to be fresh from the database, its baseline included.
    """
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
    arms = arms_of(asked.bandit)
    drawn = draws_of(asked.bandit, moved, asked.now, arms=arms, live=live_rewards(), found=matched())
    said = verdicts({arm: each.columns for arm, each in drawn.items()})
    return frozenset(arm.name for arm in arms if arm.pk in said and said[arm.pk].decides)


def residuals(sessions: Iterable[Session], moved: Baseline | None, now: dt.datetime) -> dict[int, float]:
    """What is left of the reward of each of these sessions, by its key; those of before the last 180 days have none.
    One query.
    """
    since = _since(now)
    recent = {each.observation: each.pk for each in sessions if each.ended_at >= since}
    offsets = {} if moved is None else moved.offsets
    entries = LedgerEntry.objects.rewards().live().filter(bandit__name=CATEGORY, observation__in=recent)
    entries = entries.filter(effective_day__gte=timezone.localdate(since)).select_related("arm__merged_into")
    return {
        recent[each.observation]: offsets.get(each.arm.current.name, 0.0) + each.value_micro / MICRO for each in entries
    }


def draws_of(
    bandit: Bandit,
    moved: Baseline | None,
    now: dt.datetime,
    *,
    arms: Iterable[Arm],
    live: LiveRewards,
    found: Matched,
) -> dict[int, LessonDraws]:
    """Every draw of each lesson, in the order in which they were made, with these rewards: three queries.

    Left out are those of which a session may yet come, those from after their session, and those where two that are
    one lesson by now were drawn for one session.
    """
    made = _made(bandit)
    if not len(made.key):
        return {}
    session, lesson = made.session[made.order], _lessons(arms, made.arm)[made.order]
    given = np.full(len(made.key), UNTOLD)
    at, is_known = _places(made.key, found.draw)
    given[at[is_known]] = found.taken[is_known]
    given = given[made.order]
    drawn = made.taken[made.order]
    pairs = lesson * (1 + session.max() - session.min()) + session - session.min()
    came = (given != UNTOLD) & ~_repeated(pairs)
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
    drawn_of = {}
    for each in dict.fromkeys(lesson[kept].tolist()):
        own = kept & (lesson == each)
        drawn_of[each] = LessonDraws(columns=whole.select(own), context=context[own])
    return drawn_of


def _made(bandit: Bandit) -> DrawsMade:
    """Every draw that was one: three queries, and one for each CHUNK of those of which sessions came since."""
    drawn = Assignment.objects.filter(bandit=bandit, chance__lt=1).order_by("pk")  # what was certain was not drawn
    key = bandit.pk, Erasure.objects.count()
    columns = drawn.values_list("pk", "arm_id", "taken", "chance", "created", "observation")
    held = _memory.get(key)
    if held is not None and held.last is not None:
        found = list(columns.filter(pk__gte=held.last[0]))
        # Another is in its place, or none, where that one was rolled back.
        is_same = bool(found) and found[0][:-1] == held.last[:-1]
        held = _closed(held, drawn).plus(found[1:]) if is_same else None
    if held is None or held.last is None:
        held = DrawsMade.of(list(columns), {})
    _memory.put(key, held)
    return held


def _closed(held: DrawsMade, drawn: QuerySet[Assignment]) -> DrawsMade:
    """With the sessions that came since of draws that had none: one that has a session keeps it until it is erased."""
    still = drawn.filter(observation="").order_by().values_list("pk", flat=True)
    closed = sorted(set(held.open.tolist()) - set(still))
    came: dict[int, str] = {}
    for some in (closed[at : at + CHUNK] for at in range(0, len(closed), CHUNK)):
        came |= dict(drawn.filter(pk__in=some).values_list("pk", "observation"))
    return held.closed(came)


def _micros(moment: dt.datetime) -> int:
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def _numbers(observations: Iterable[str], names: Mapping[str, int]) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The session of each; a name that is no session's has a number of its own, below all, as `names` already have."""
    start, numbers = len(OBSERVATION), {"": NO_SESSION, **names}
    found = [
        int(key)
        if (key := name[start:]).isdecimal() and name.startswith(OBSERVATION)
        else numbers.setdefault(name, NO_SESSION - len(numbers))
        for name in observations
    ]
    return np.array(found, dtype=np.int64), numbers


def _days(seconds: NDArray[Any], day_of: Callable[[dt.datetime], dt.date]) -> NDArray[np.int64]:
    """The day of each moment, in seconds since 1970, as an ordinal: one answer for a quarter of an hour, by which all
    time zones are apart.
    """
    quarters, which = np.unique(seconds // QUARTER, return_inverse=True)
    zone, own = timezone.get_current_timezone_name(), quarters.astype(np.int64).tolist()
    return np.array([_day(each, day_of, zone) for each in own], dtype=np.int64)[which]


@remembered(size=200_000)
def _day(quarter: int, day_of: Callable[[dt.datetime], dt.date], _zone: str) -> int:
    """The ordinal of the day of a quarter of an hour, counted since 1970; `_zone` is the reader's."""
    return day_of(dt.datetime.fromtimestamp(quarter * QUARTER, tz=dt.UTC)).toordinal()


def _places(held: NDArray[np.int64], keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each of the keys is among those `held`, which are in their order; and whether it is."""
    at = np.searchsorted(held, keys)
    at = np.minimum(at, max(len(held) - 1, 0))
    return at, held[at] == keys if len(held) else np.zeros(len(keys), dtype=bool)


def _sample(
    arms: Iterable[Arm], since: dt.datetime, found: Matched, moved: Baseline | None, live: LiveRewards
) -> tuple[Sample, dict[int, Match]]:
    """The sessions since then of the agents that told lessons in that time, with what is left of their rewards; and
    those of each lesson. Where two that are one lesson by now matched one session, that is one.
    """
    rows = _sessions(since) if len(found.key) else NO_ROWS
    at, is_known = _places(rows[0], found.session)
    telling = np.unique(rows[1][at[is_known]])
    matches = _matches(_lessons(arms, found.arm[is_known]), found.session[is_known], found.taken[is_known])
    session, agent, ended = rows[:, np.isin(rows[1], telling)]
    offsets = {} if moved is None else moved.offsets
    context, least, reward = live.of(session, offsets, timezone.localdate(since))
    sample = Sample(
        session=session,
        agent=agent,
        day=_days(ended, timezone.localdate),
        context=context,
        outcome=reward + least,
    )
    return sample, matches


def _sessions(since: dt.datetime) -> NDArray[np.int64]:
    """Your sessions since then: their ids, in order, their agents and the seconds when they ended, (3, n). When they
    ended an index says; whose they are is remembered, as that never changes.
    """
    recent = Session.objects.filter(ended_at__gte=since).order_by()
    key, ended = columns_of(recent.values_list("pk", WholeSeconds("ended_at")), 2)
    order = np.argsort(key)
    key, ended = key[order], ended[order]
    held, agents = _whose.get("") or (key[:0], key[:0])
    unknown = key[~_places(held, key)[1]]
    if len(unknown):
        asked = recent if len(unknown) > CHUNK else Session.objects.filter(pk__in=unknown.tolist()).order_by()
        new, agent, is_sample = columns_of(asked.values_list("pk", "agent_id", "is_sample"), 3)
        held, first = np.unique(np.concatenate((held, new)), return_index=True)
        agents = np.concatenate((agents, np.where(is_sample, NOT_YOURS, agent)))[first]
    at, is_known = _places(held, key)
    if not len(held):
        return NO_ROWS
    key, ended, agents = key[is_known], ended[is_known], agents[at[is_known]]
    _whose.put("", (key, agents))
    own = agents != NOT_YOURS
    return np.array([key[own], agents[own], ended[own]])


def _matches(lesson: NDArray[np.int64], session: NDArray[np.int64], taken: NDArray[np.bool_]) -> dict[int, Match]:
    """The sessions of each lesson, and whether each had it, in the order in which they came first."""
    if not len(lesson):
        return {}
    pairs = lesson * (1 + session.max()) + session
    _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    had = np.zeros(len(first), dtype=bool)
    np.logical_or.at(had, which, taken)
    order = np.argsort(first)
    lesson, session, had = lesson[first][order], session[first][order], had[order]
    return {each: (session[lesson == each], had[lesson == each]) for each in np.unique(lesson).tolist()}


def _lessons(arms: Iterable[Arm], arm: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each of these arms is by now: itself, or the one that it was merged into."""
    if not len(arm):
        return arm
    current = np.arange(1 + arm.max())
    for one in arms:
        if one.merged_into_id is not None and one.pk < len(current):
            current[one.pk] = one.merged_into_id
    return current[arm]


def _repeated(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these there are several of."""
    ordered = np.sort(keys)
    is_again = ordered[1:] == ordered[:-1]
    return np.isin(keys, ordered[1:][is_again]) if is_again.any() else np.zeros(len(keys), dtype=bool)


def _credit(bandit: Bandit, arms: Iterable[Arm], floor: float) -> dict[int, tuple[int, float]]:
    """The rewards of each lesson, and how many they count as: f + (1 − f)·salience each."""
    own = {arm.pk: arm for arm in arms}
    buckets = Bucket.objects.rewards().filter(bandit=bandit, n__gt=0).order_by()
    totals = buckets.values_list("arm__name", "arm_id", "grader__salience").annotate(total=Sum("n"))
    found: Counter[int] = Counter()
    credit: dict[int, float] = defaultdict(float)
    for _name, pk, salience, total in sorted(totals):
        n = int(total)
        lesson = (own[pk].merged_into_id if pk in own else None) or pk
        found[lesson] += n
        credit[lesson] += n * (floor + (1 - floor) * salience / 100)
    return {lesson: (found[lesson], credit[lesson]) for lesson in found}
