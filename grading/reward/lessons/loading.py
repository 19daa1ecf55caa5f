"""Loads lessons with their sessions, draws and rewards: in as many queries for one lesson as for all.

Outcomes are residuals of the live rewards in the ledger: reward − mean of its category + mean of all.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from django.db.models import Sum
from numpy.typing import NDArray

from bandit.core.betting import Bets, Draws, evidence_threshold
from bandit.core.effect import verdicts
from bandit.core.residual import Baseline
from bandit.models import MICRO, Arm, Assignment, Bandit, Bucket, LedgerEntry
from bandit.reading import arms_of, baseline_of, site_day, version_of
from grading.days import midnight
from grading.models import Session, SessionLesson
from grading.models.sessions import observation_of, yours
from grading.reward.lessons.figures import NO_CONTEXTS, Lesson, LessonSample

DAYS = 180
# A draw this old without a session counts as lost.
LOST_AFTER = dt.timedelta(days=2)
CATEGORY = "category"
# One draw: the columns of `Draws`, then the category of its session.
DrawRow = tuple[bool, float, bool, bool, float, float, int, str]


class LiveReward(NamedTuple):
    """A session's live reward: its category's current name, the value in [0, 1], and the day on which it counts."""

    category: str
    value: float
    day: dt.date


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LessonDraws:
    """The draws of a lesson as `columns` (k,), and the category of each one's session, "" without a reward."""

    columns: Draws
    context: NDArray[np.str_]

    @classmethod
    def from_rows(cls, rows: Iterable[DrawRow]) -> Self:
        """The draws with these rows, of which there is at least one."""
        taken, chance, came, heeded, outcome, least, day, context = map(np.array, zip(*rows, strict=True))
        columns = Draws(taken=taken, chance=chance, came=came, heeded=heeded, outcome=outcome, least=least, day=day)
        return cls(columns=columns, context=context)


NO_DRAWS = LessonDraws(columns=Draws.none(), context=NO_CONTEXTS)


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedLessons:
    """Every current lesson, by name. `baseline` is what was subtracted from the rewards, None for nothing; `bar` is the
    least e-value for a verdict.
    """

    lessons: Mapping[Arm, Lesson]
    baseline: Baseline | None
    bar: float


def load_lessons(bandit: Bandit, now: dt.datetime) -> LoadedLessons:
    """Load every lesson of this bandit: its sessions of the last 180 days, and all of its draws.

    A lesson that was merged into another is part of that one.
    """
    version, baseline = version_of(bandit), baseline_of(bandit, site_day(now))
    offsets = {} if baseline is None else baseline.offsets
    arms, rewards = arms_of(bandit), _live_rewards()
    current = _current_lessons(arms)
    sample, matches = _load_sample(current, rewards, offsets, now)
    # Each reward counts as f + (1 − f)·salience, where f is the salience floor and salience is in [0, 1], stored in
    # percent.
    buckets = Bucket.objects.rewards().filter(bandit=bandit, n__gt=0).order_by()
    totals = buckets.values_list("arm__name", "arm_id", "grader__salience").annotate(total=Sum("n"))
    reward_counts: Counter[int] = Counter()
    credit: dict[int, float] = defaultdict(float)
    for _name, arm_pk, salience, total in sorted(totals):  # in a fixed order, so that sums of floats are reproducible
        lesson = current.get(arm_pk, arm_pk)
        reward_counts[lesson] += int(total)
        credit[lesson] += int(total) * (version.salience_floor + (1 - version.salience_floor) * salience / 100)
    draws_by_lesson = _load_draws(bandit, current, rewards, offsets, now)
    bets = {lesson: Bets.from_draws(draws.columns) for lesson, draws in draws_by_lesson.items()}
    # The threshold depends on how many lessons were ever drawn.
    bar = evidence_threshold(each.evidence for each in bets.values())
    lessons = {}
    for arm in arms:
        if arm.merged_into_id is not None:
            continue
        draws, matched = draws_by_lesson.get(arm.pk, NO_DRAWS), matches.get(arm.pk, {})
        lessons[arm] = Lesson(
            sample=sample,
            at=np.array(list(matched.keys()), dtype=np.int64),
            taken=np.array(list(matched.values()), dtype=bool),
            draws=draws.columns,
            bets=bets.get(arm.pk),
            context=draws.context,
            bar=bar,
            next_chance=1 - version.holdout,
            rewards=reward_counts[arm.pk],
            credit=credit[arm.pk],
        )
    return LoadedLessons(lessons=lessons, baseline=baseline, bar=bar)


def load_decided(bandit: Bandit, now: dt.datetime) -> frozenset[str]:
    """The names of the lessons with a verdict at `now`. `bandit` must be freshly loaded, with its baseline."""
    baseline, arms = baseline_of(bandit, site_day(now)), arms_of(bandit)
    offsets = {} if baseline is None else baseline.offsets
    draws = _load_draws(bandit, _current_lessons(arms), _live_rewards(), offsets, now)
    verdict_of = verdicts({lesson: each.columns for lesson, each in draws.items()})
    return frozenset(arm.name for arm in arms if arm.pk in verdict_of and verdict_of[arm.pk].decides)


def residuals(sessions: Iterable[Session], baseline: Baseline | None, now: dt.datetime) -> dict[int, float]:
    """The residual of each session's reward, by primary key: the reward plus its category's offset. One query.

    Sessions from before the last 180 days are left out.
    """
    first_day = _first_day(now)
    recent = {each.observation: each.pk for each in sessions if each.ended_at >= midnight(first_day)}
    offsets = {} if baseline is None else baseline.offsets
    entries = LedgerEntry.objects.rewards().live().filter(bandit__name=CATEGORY, observation__in=recent)
    entries = entries.filter(effective_day__gte=first_day).select_related("arm__merged_into")
    return {
        recent[entry.observation]: offsets.get(entry.arm.current.name, 0.0) + entry.value_micro / MICRO
        for entry in entries
    }


def _first_day(now: dt.datetime) -> dt.date:
    return site_day(now) - dt.timedelta(days=DAYS - 1)


def _current_lessons(arms: Iterable[Arm]) -> dict[int, int]:
    """The primary key of the lesson that each arm is part of now: its own, or that of the one it was merged into."""
    return {arm.pk: arm.merged_into_id or arm.pk for arm in arms}


def _live_rewards() -> dict[str, LiveReward]:
    """The live rewards in the category bandit, by observation. Three queries; one reads the whole ledger."""
    bandit = Bandit.objects.named(CATEGORY)
    names = {arm.pk: arm.current.name for arm in bandit.arms.select_related("merged_into")}
    entries = LedgerEntry.objects.rewards().live().filter(bandit=bandit).order_by()
    rows = entries.values_list("observation", "arm_id", "value_micro", "effective_day").iterator()
    return {observation: LiveReward(names[arm], micro / MICRO, day) for observation, arm, micro, day in rows}


def _load_draws(
    bandit: Bandit,
    current: Mapping[int, int],
    rewards: Mapping[str, LiveReward],
    offsets: Mapping[str, float],
    now: dt.datetime,
) -> dict[int, LessonDraws]:
    """The draws of each lesson, in the order in which they were made. Two queries.

    A draw that has no session after LOST_AFTER is lost: it counts as heeded, without an outcome. Left out are newer
    draws without a session, draws made after their session had ended (no `SessionLesson` has these), and draws of two
    lessons for the same session, if the lessons were merged since.
    """
    randomised = Assignment.objects.filter(bandit=bandit, chance__lt=1)  # what was certain was not drawn
    columns = ("pk", "arm_id", "taken", "chance", "created", "observation")
    draws = list(randomised.order_by("created", "pk").values_list(*columns))
    matched = SessionLesson.objects.exclude(assignment=None).order_by("pk")
    # Whether the session of each draw had the lesson.
    had_lesson = dict(matched.values_list("assignment_id", "taken"))
    times_drawn = Counter((current.get(arm, arm), observation) for _, arm, _, _, _, observation in draws)
    rows_by_lesson: dict[int, list[DrawRow]] = defaultdict(list)
    for pk, arm, taken, chance, created, observation in draws:
        lesson = current.get(arm, arm)
        drawn_once = times_drawn[lesson, observation] == 1  # else by two lessons that were merged since
        came = pk in had_lesson and drawn_once
        is_lost = not observation and created < now - LOST_AFTER
        if not (came or is_lost):
            continue
        heeded = had_lesson[pk] == taken if came else True
        category, least, outcome = "", 0.0, np.nan
        if observation in rewards:
            category = rewards[observation].category
            least = offsets.get(category, 0.0)  # the residual of a reward of 0
            outcome = least + rewards[observation].value
        day = site_day(created).toordinal()
        rows_by_lesson[lesson].append((taken, chance, came, heeded, outcome, least, day, category))
    return {lesson: LessonDraws.from_rows(rows) for lesson, rows in rows_by_lesson.items()}


def _load_sample(
    current: Mapping[int, int], rewards: Mapping[str, LiveReward], offsets: Mapping[str, float], now: dt.datetime
) -> tuple[LessonSample, dict[int, dict[int, bool]]]:
    """The recent sessions of agents that report lessons; and for each lesson, whether each session that it matched had
    it, by the session's index in the sample. Two queries.
    """
    first_day = _first_day(now)
    recent = SessionLesson.objects.filter(yours(), session__ended_at__gte=midnight(first_day)).order_by()
    matched = list(recent.values_list("session_id", "session__agent_id", "arm_id", "taken"))
    agents = {agent for _, agent, _, _ in matched}
    sessions = Session.objects.yours().filter(agent__in=agents, ended_at__gte=midnight(first_day)).order_by("pk")
    index: dict[int, int] = {}
    rows = []
    for pk, agent, ended_at in sessions.values_list("pk", "agent_id", "ended_at"):
        index[pk] = len(index)
        reward = rewards.get(observation_of(pk))
        category, outcome = "", np.nan
        if reward is not None and reward.day >= first_day:
            category = reward.category
            outcome = offsets.get(category, 0.0) + reward.value
        rows.append((agent, site_day(ended_at).toordinal(), category, outcome))
    matches: dict[int, dict[int, bool]] = defaultdict(dict)
    for session, _, arm, taken in matched:
        if session in index:  # else it was erased between the two queries
            taken_by_index = matches[current.get(arm, arm)]
            # Two lessons that were merged since may have matched the same session.
            taken_by_index[index[session]] = taken or taken_by_index.get(index[session], False)
    return LessonSample.from_rows(rows), matches
