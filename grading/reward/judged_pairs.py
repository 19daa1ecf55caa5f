"""Judged sessions as pairs of their verdict and their fallback, to which calibrations are fitted.

The fallback is the grade that the chain would rest on without the verdict, or an abstention. Settlements stay as they
are: a calibration acts where the bandit reads its rewards.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

from django.utils import timezone

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
# The name of the stored reading, and the fields of each pair in it.
STORED_NAME = "judged pairs"
PAIR_FIELDS = ("arm", "source", "reason", "fallback", "judge", "day")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The judge whose verdicts fallbacks are compared with: a model and the rubrics that it was asked by."""

    model: str
    rubrics: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.model} {' '.join(rubric[:4] for rubric in self.rubrics)}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgements:
    """The pairs of every bandit that learns, as JSON in the form that the worker stores.

    `read_at` is the time of a stored reading, None for one made just now.
    """

    data: Mapping[str, Any]
    read_at: dt.datetime | None = None

    @property
    def target(self) -> Target | None:
        target = self.data["target"]
        return None if target is None else Target(model=target["model"], rubrics=tuple(target["rubrics"]))

    def pairs(self, bandit: Bandit) -> list[JudgedSession]:
        """The two grades of each judged session, the judge's and the fallback's, once for each arm of this bandit that
        has the session's reward.

        A stored pair is a list of the values of PAIR_FIELDS, with the day as text.
        """
        pairs = []
        for values in self.data["bandits"].get(bandit.name, ()):
            fields = dict(zip(PAIR_FIELDS, values, strict=True))
            fields["day"] = dt.date.fromisoformat(fields["day"])
            pairs.append(JudgedSession(**fields))
        return pairs


def read_judgements(now: dt.datetime) -> Judgements:
    """Read the judged sessions: half a second of processor time for 1,000 of them."""
    return Judgements(data=_judgements_as_json(now))


def latest_judgements(now: dt.datetime) -> Judgements:
    """The judgements as the worker last stored them; as of `now` if it never did. For pages."""
    stored = StoredReading.objects.filter(name=STORED_NAME).first()
    return read_judgements(now) if stored is None else Judgements(data=stored.value, read_at=stored.read_at)


def store_judgements(now: dt.datetime) -> None:
    """Store the judgements for pages, if grades, rewards or the day changed since they were last stored."""
    rubrics = list(Rubric.objects.filter(is_active=True).order_by("pk").values_list("pk", flat=True))
    today = timezone.localdate(now).isoformat()
    last = last_keys(Grade, LedgerEntry)
    # The judgements are stored again only if this text differs from that of the last time.
    inputs = repr((PAIR_FIELDS, last, Erasure.objects.count(), rubrics, rewards.policy().version, today))
    StoredReading.objects.renew(STORED_NAME, inputs, partial(_judgements_as_json, now), now)


class _JudgedPair(NamedTuple):
    """A session's pair, without an arm, and the model and the rubric of its verdict."""

    session: int
    model: str
    rubric: str
    pair: JudgedSession


def _judgements_as_json(now: dt.datetime) -> dict[str, Any]:
    """`Judgements.data` as of now: the target, and the pairs of each bandit.

    Only verdicts of the target count: of other judges' scales nothing is learnt.
    """
    judged = _judged_pairs(now)
    target = _target(Counter((each.model, each.rubric) for each in judged))
    if target is not None:
        judged = [each for each in judged if each.model == target.model and each.rubric in target.rubrics]
    bandits = {}
    for bandit in Bandit.objects.that_learn():
        arms = _live_arms(bandit, [each.session for each in judged])
        pairs = [replace(each.pair, arm=arm) for each in judged for arm in arms[each.session]]
        bandits[bandit.name] = [_pair_as_json(pair) for pair in pairs]
    return {
        "target": None if target is None else {"model": target.model, "rubrics": target.rubrics},
        "bandits": bandits,
    }


def _pair_as_json(pair: JudgedSession) -> tuple[Any, ...]:
    return pair.arm, pair.source, pair.reason, pair.fallback, pair.judge, pair.day.isoformat()


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
    ended_at = dict(islice(dict(latest).items(), MAX_SESSIONS))
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

    Of the first readings that have read it, the earliest is taken. Further readings never are: they are requested where
    a verdict looks wrong, and would distort the pairs.
    """
    views = rewards.views(grades)
    fresh = {view.id for view in views if not view.stale}
    verdicts = (grade for grade in grades if grade.source == Source.JUDGE and grade.sample == 1)
    verdict = next((grade for grade in verdicts if grade.value is not None and grade.pk in fresh), None)
    if verdict is None:
        return None
    row = fallback(views, policy)
    pair = JudgedSession(
        arm="",
        source=ABSTAINED if row is None else row.source,
        reason=rewards.abstention_key(grades)[1] if row is None else "",
        fallback=0.0 if row is None else row.value or 0.0,
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
