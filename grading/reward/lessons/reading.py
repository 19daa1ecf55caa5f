"""Lessons and the rewards of their sessions, out of the database into columns: in as many queries for one as for all.

Outcomes are residuals, reward − category mean + mean of all, of the rewards that are live in the ledger.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import Sum, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from numpy.typing import NDArray

from bandit.core.betting import Bets, Draws, evidence_threshold
from bandit.core.effect import verdicts
from bandit.core.residual import Baseline
from bandit.core.table import Flags, Ints
from bandit.models import MICRO, Arm, Assignment, Bandit, Bucket, LedgerEntry
from bandit.reading import arms_of, baseline_of, site_day, version_of
from grading.days import midnight
from grading.models import Session, SessionLesson
from grading.models.sessions import session_of
from grading.reward.lessons.lesson import Lesson, Sample
from grading.reward.lessons.live import CATEGORY, LiveRewards, live_rewards

DAYS = 180
# A draw this old without a session has none coming.
OVERDUE = dt.timedelta(days=2)
# Of a draw: that no session came of it; that no session says whether it was given.
NO_SESSION, UNTOLD = -1, -1
# Of a session's lesson: that nothing was drawn.
NO_DRAW = -1
NO_MATCH = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)

# The sessions of a lesson, and whether each had it.
Match = tuple[Ints, Flags]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchedLessons:
    """Lessons that matched sessions, in the order of their rows, all (n,): ids of the `session`, the `arm` and the
    `draw` (NO_DRAW for none), and whether the lesson was `taken`.
    """

    session: Ints
    arm: Ints
    taken: Flags
    draw: Ints


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
    matched, arms = matched_lessons(), arms_of(bandit)
    (sample, matches), credit = _sample(arms, since, matched, moved, live), _credit(bandit, arms, floor)
    drawn = draws_of(bandit, moved, now, arms=arms, live=live, matched=matched)
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

    `bandit` is to be fresh from the database, its baseline included.
    """
    moved, arms = baseline_of(bandit, site_day(now)), arms_of(bandit)
    drawn = draws_of(bandit, moved, now, arms=arms, live=live_rewards(), matched=matched_lessons())
    verdict_of = verdicts({arm: each.columns for arm, each in drawn.items()})
    return frozenset(arm.name for arm in arms if arm.pk in verdict_of and verdict_of[arm.pk].decides)


def matched_lessons() -> MatchedLessons:
    """Every lesson of every session. One query."""
    rows = SessionLesson.objects.order_by("pk").values_list(
        "session_id", "arm_id", "taken", Coalesce("assignment_id", Value(NO_DRAW))
    )
    session, arm, taken, draw = _columns(rows, 4)
    return MatchedLessons(session=session, arm=arm, taken=taken.astype(bool), draw=draw)


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
    matched: MatchedLessons,
) -> dict[int, LessonDraws]:
    """Every draw of each lesson, in the order in which they were made, with these rewards. One query.

    Left out are those of which a session may yet come, those from after their session, and those where two that are
    one lesson by now were drawn for one session.
    """
    made = Assignment.objects.filter(bandit=bandit, chance__lt=1)  # what was certain was not drawn
    rows = list(made.order_by("created", "pk").values_list("pk", "arm_id", "taken", "chance", "created", "observation"))
    if not rows:
        return {}
    keys, arm_ids, takens, chances, moments, observations = zip(*rows, strict=True)
    key, drawn, created = np.array(keys), np.array(takens, dtype=bool), _seconds(moments)
    session, lesson = _sessions_of(observations), _lessons(arms, np.array(arm_ids))
    # Whether each was given, as its session says.
    order = np.argsort(key)
    given = np.full(len(key), UNTOLD)
    at, is_known = _places(key[order], matched.draw)
    given[order[at[is_known]]] = matched.taken[is_known]
    pairs = lesson * (1 + session.max() - session.min()) + session - session.min()
    came = (given != UNTOLD) & ~_repeated(pairs)
    lost = ~came & (session == NO_SESSION) & (created < (now - OVERDUE).timestamp())
    context, least, reward = live.of(session, {} if moved is None else moved.offsets)
    whole = Draws(
        taken=drawn,
        chance=np.array(chances),
        came=came,
        heeded=~came | (given == drawn),
        outcome=least + reward,
        least=least,
        day=_days(created),
    )
    counted = came | lost
    drawn_of = {}
    for each in dict.fromkeys(lesson[counted].tolist()):
        own = counted & (lesson == each)
        drawn_of[each] = LessonDraws(columns=whole.select(own), context=context[own])
    return drawn_of


def _sessions_of(observations: Iterable[str]) -> Ints:
    """The session of each; a name that is no session's has a number of its own, below NO_SESSION."""
    others = {"": NO_SESSION}
    sessions = []
    for observation in observations:
        session = session_of(observation)
        if session is None:
            session = others.setdefault(observation, NO_SESSION - len(others))
        sessions.append(session)
    return np.array(sessions, dtype=np.int64)


def _columns(rows: Iterable[tuple[Any, ...]], width: int) -> Ints:
    """Rows of so many whole numbers as columns, (width, n)."""
    return np.array(list(rows), dtype=np.int64).reshape(-1, width).T


def _seconds(moments: Iterable[dt.datetime]) -> NDArray[np.float64]:
    """The moments in seconds since 1970."""
    return np.array([moment.timestamp() for moment in moments], dtype=np.float64)


def _days(seconds: NDArray[np.float64]) -> Ints:
    """The site's day of each moment, as an ordinal."""
    if not len(seconds):
        return np.zeros(0, dtype=np.int64)
    first, last = (site_day(dt.datetime.fromtimestamp(each, tz=dt.UTC)) for each in (seconds.min(), seconds.max()))
    days = range(first.toordinal(), last.toordinal() + 1)
    starts = _seconds(midnight(dt.date.fromordinal(day)) for day in days)
    days_passed: Ints = np.searchsorted(starts, seconds, side="right") - 1
    return first.toordinal() + days_passed


def _places(held: NDArray[np.int64], keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each of the keys is among those `held`, which are in their order; and whether it is."""
    at = np.searchsorted(held, keys)
    at = np.minimum(at, max(len(held) - 1, 0))
    return at, held[at] == keys if len(held) else np.zeros(len(keys), dtype=bool)


def _sample(
    arms: Iterable[Arm], since: dt.datetime, matched: MatchedLessons, moved: Baseline | None, live: LiveRewards
) -> tuple[Sample, dict[int, Match]]:
    """Your sessions since then of the agents that told lessons in that time, with what is left of their rewards; and
    those of each lesson. Where two that are one lesson by now matched one session, that is one. One query.
    """
    recent = Session.objects.yours().filter(ended_at__gte=since).order_by("pk")
    rows = list(recent.values_list("pk", "agent_id", "ended_at")) if len(matched.session) else []
    session, agent = _columns(((key, agent) for key, agent, _ended_at in rows), 2)
    ended = _seconds(ended_at for _key, _agent, ended_at in rows)
    at, is_known = _places(session, matched.session)
    telling = np.isin(agent, np.unique(agent[at[is_known]]))
    matches = _matches(_lessons(arms, matched.arm[is_known]), matched.session[is_known], matched.taken[is_known])
    session, agent, ended = session[telling], agent[telling], ended[telling]
    offsets = {} if moved is None else moved.offsets
    context, least, reward = live.of(session, offsets, timezone.localdate(since))
    sample = Sample(session=session, agent=agent, day=_days(ended), context=context, outcome=reward + least)
    return sample, matches


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
