"""Judged sessions as pairs of their verdict and their fallback, to which calibrations are fitted.

The fallback is the grade that the chain would rest on without the verdict, or an abstention. Settlements stay as they
are: a calibration acts where the bandit reads its rewards.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from django.utils import timezone
from pydantic import TypeAdapter, ValidationError

from bandit import ledger
from bandit.core.calibration import JudgedSession
from bandit.core.table import ABSTAINED
from bandit.models import Bandit, Erasure, LedgerEntry
from grading.models import Grade, Rubric, StoredReading
from grading.models.readings import last_keys
from grading.models.sessions import observation_of, yours
from grading.reward import rewards
from grading.reward.decide import ChainPolicy, fallback
from grading.vocabulary import Source

# Pairs are of the latest judged sessions: at most this many, and none older than this.
MAX_SESSIONS, MAX_AGE = 1_000, dt.timedelta(days=180)
# The least verdicts of the current model and rubrics for them to be the target.
MIN_TARGET_VERDICTS = 20
# The name of the stored reading, and the version of its form.
STORED_NAME, STORED_VERSION = "judged pairs", 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The judge whose verdicts fallbacks are compared with: a model and the rubrics that it was asked by."""

    model: str
    rubrics: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.model} {' '.join(rubric[:4] for rubric in self.rubrics)}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgements:
    """The judged sessions that calibrations are fitted to; only those of the target, if there is one.

    `pairs` has, for each bandit that learns, by name, a session's two grades once for each arm that has its reward.
    `read_at` is the time of a stored reading, None for one made just now.
    """

    target: Target | None
    pairs: Mapping[str, Sequence[JudgedSession]]
    read_at: dt.datetime | None = None


STORED_FORM = TypeAdapter(Judgements)


def latest_judgements(now: dt.datetime) -> Judgements:
    """The judgements as the worker last stored them, for pages.

    Those as of `now` if it never did, or if another version of the code stored them in another form.
    """
    stored = StoredReading.objects.filter(name=STORED_NAME).first()
    if stored is None:
        return read_judgements(now)
    try:
        return replace(STORED_FORM.validate_python(stored.value), read_at=stored.read_at)
    except ValidationError:
        return read_judgements(now)


def store_judgements(now: dt.datetime) -> None:
    """Store the judgements for pages, if grades, rewards or the day changed since they were last stored."""
    rubrics = list(Rubric.objects.filter(is_active=True).order_by("pk").values_list("pk", flat=True))
    today = timezone.localdate(now).isoformat()
    last = last_keys(Grade, LedgerEntry)
    # The judgements are stored again only if this text differs from that of the last time.
    inputs = repr((STORED_VERSION, last, Erasure.objects.count(), rubrics, rewards.policy().version, today))
    StoredReading.objects.renew(
        STORED_NAME, inputs, lambda: STORED_FORM.dump_python(read_judgements(now), mode="json"), now
    )


class _JudgedPair(NamedTuple):
    """A session's pair, without an arm, and the model and the rubric of its verdict."""

    session: int
    model: str
    rubric: str
    pair: JudgedSession


def read_judgements(now: dt.datetime) -> Judgements:
    """Read the judged sessions: half a second of processor time for 1,000 of them.

    Only verdicts of the target count: nothing is learnt from other judges' scales.
    """
    judged = _judged_pairs(now)
    target = _target(Counter((each.model, each.rubric) for each in judged))
    if target is not None:
        judged = [each for each in judged if each.model == target.model and each.rubric in target.rubrics]
    pairs = {}
    for bandit in Bandit.objects.that_learn():
        arms = _live_arms(bandit, [each.session for each in judged])
        pairs[bandit.name] = [replace(each.pair, arm=arm) for each in judged for arm in arms[each.session]]
    return Judgements(target=target, pairs=pairs)


def _live_arms(bandit: Bandit, sessions: Iterable[int]) -> dict[int, list[str]]:
    """The names of the arms that have the reward of each session, in order. One query."""
    session_of_observation = {observation_of(session): session for session in sessions}
    arms: dict[int, list[str]] = {session: [] for session in session_of_observation.values()}
    entries = ledger.live_entries(bandit.name, session_of_observation)
    for observation, arm in entries.values_list("observation", "arm__name"):
        arms[session_of_observation[observation]].append(arm)
    return {session: sorted(names) for session, names in arms.items()}


def _judged_pairs(now: dt.datetime) -> list[_JudgedPair]:
    """The pairs of the latest judged sessions, the last verdict first. Two queries.

    A verdict counts if it is of the last 180 days, and its session ended in them.
    """
    verdicts = Grade.objects.chain().verdicts().filter(yours(), session__ended_at__gte=now - MAX_AGE)
    # Redundant, since a verdict is later than the end of its session; but it lets the database leave out old verdicts
    # before it looks for their sessions. Verdicts are dated by the real clock, and `now` may be ahead of it.
    verdicts = verdicts.filter(created_at__gte=min(now, timezone.now()) - MAX_AGE)
    # Few sessions have several verdicts, so that twice as many verdicts cover enough sessions.
    latest = verdicts.order_by("-pk").values_list("session", "session__ended_at")[: 2 * MAX_SESSIONS]
    ended_at: dict[int, dt.datetime] = {}  # of each session, in the order of their latest verdicts
    for session, ended in latest:
        if len(ended_at) < MAX_SESSIONS:
            ended_at.setdefault(session, ended)
    machines = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL)
    grades = Grade.objects.chain().filter(session__in=ended_at, source__in=machines).order_by("session", "pk")
    policy = rewards.policy()
    pairs = {}
    for session, session_grades in groupby(grades.iterator(), key=attrgetter("session_id")):
        pair = _judged_pair(list(session_grades), timezone.localdate(ended_at[session]), policy)
        if pair is not None:
            pairs[session] = pair
    return [pairs[session] for session in ended_at if session in pairs]


def _judged_pair(grades: list[Grade], day: dt.date, policy: ChainPolicy) -> _JudgedPair | None:
    """The pair of the session with these grades, in the order of their rows; None if no verdict has read all evidence.

    The verdict is the earliest first reading that saw all evidence. Further readings are ignored: they are requested
    when a verdict looks wrong, and would bias the pairs.
    """
    views = rewards.views(grades)
    fresh = {view.id for view in views if not view.stale}
    verdicts = (grade for grade in grades if grade.source == Source.JUDGE and grade.sample == 1)
    verdict = next((grade for grade in verdicts if grade.value is not None and grade.pk in fresh), None)
    if verdict is None:
        return None
    source, reason, fallback_value = ABSTAINED, "", 0.0
    fallback_grade = fallback(views, policy)
    if fallback_grade is None:
        _, reason = rewards.abstention_key(grades)
    else:
        source, fallback_value = fallback_grade.source, fallback_grade.value or 0.0
    pair = JudgedSession(
        arm="",
        source=source,
        reason=reason,
        fallback=fallback_value,
        judge=verdict.value or 0.0,
        day=day,
    )
    return _JudgedPair(verdict.session_id, verdict.model, verdict.rubric, pair)


def _target(verdicts: Counter[tuple[str, str]]) -> Target | None:
    """The judge whose verdicts count. `verdicts` counts the judged sessions by (model, rubric).

    It is the model of the latest verdict with the active rubrics, if that gave MIN_TARGET_VERDICTS of them. Otherwise
    it is the model with the most, with all its rubrics; None without verdicts.
    """
    latest_verdicts = Grade.objects.chain().verdicts().filter(yours()).order_by("-pk")
    model = latest_verdicts.values_list("model", flat=True).first() or ""
    active = set(Rubric.objects.filter(is_active=True).values_list("sha256", flat=True))
    rubrics = [rubric for name, rubric in verdicts if name == model and rubric in active]
    if sum(verdicts[model, rubric] for rubric in rubrics) < MIN_TARGET_VERDICTS:
        by_model = Counter[str]()
        for (name, _rubric), count in verdicts.items():
            by_model[name] += count
        if not by_model:
            return None
        model = max(by_model, key=lambda name: (by_model[name], name))
        rubrics = [rubric for name, rubric in verdicts if name == model]
    return Target(model=model, rubrics=tuple(sorted(rubrics)))
