"""One scale: what a fallback's grade is worth on the judge's scale, learnt from sessions that have both.

Every judged session has a fallback too: what the chain would have rested on without the verdict, or that nothing could
be said. Those pairs fit a bandit's calibration, in versions. What a settlement says stays as it was; the calibration is
read beside it and acts where the bandit reads its rewards.
"""

import datetime as dt
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from django.contrib.auth.models import User
from django.db.models import Max, OuterRef, QuerySet, Subquery
from django.utils import timezone

from bandit import calibrating, ledger
from bandit.core.calibration import CalibrationLine, JudgedSession, Key, Scale, fit
from bandit.core.posterior import Outlook
from bandit.core.table import ABSTAINED
from bandit.models import Bandit, Bucket, CalibrationVersion
from bandit.reading import InForce, in_force, version_of, weights_of
from bandit.versions import StaleVersion
from bandit.whatif import what_if_calibrated
from grading.models import Grade, Rubric, Session
from grading.models.sessions import observation_of, yours
from grading.remembered import Memory
from grading.reward import rewards
from grading.reward.decide import ChainPolicy, fallback
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Source

# What is read on the judge's scale. Consumption never is: it decides only where it won, and such pairs are selected.
SOURCES = (Source.JOURNAL.value, Source.TRAJECTORY.value)
# Where nothing is known yet. A failure is never read below what leaving no trace is worth.
START = Scale(sources=SOURCES, floored=(EvidenceView.FAILED.value,))
# Pairs are of the latest judged sessions, so many at most, and no older than this.
MOST_SESSIONS, OLDEST = 1_000, dt.timedelta(days=180)
# Verdicts of a model that it takes to be the one whose scale is meant.
ENOUGH = 20
# A calibration comes in force by itself while no arm's mean is this far from where a person last left it.
BY_ITSELF = 0.05
SITE = "the site, at night"
CHUNK_SIZE = 500
T = TypeVar("T")
MACHINES = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whose scale it is: a judge's model and the rubrics that it was asked by."""

    model: str
    rubrics: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.model} {' '.join(rubric[:4] for rubric in self.rubrics)}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A fallback's grade on the judge's scale: `value` in [0, 1], `error` the standard deviation of one session's
    verdict about it, from `pairs` judged sessions; `weight` is what such a session counts, before any cap. `version` is
    the calibration's.
    """

    value: float
    error: float
    pairs: int
    weight: float
    version: int


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """What the pairs say by now, and what holds: `version` is the next, `held` the last one.

    `now`, `after` and `accepted` are the bandit's outlooks: as it is read now, with this scale, and as the last version
    that a person accepted has it. `moves` by arm: how far this scale's mean is from that one's.
    """

    bandit: Bandit
    scale: Scale
    target: Target | None
    version: int
    held: CalibrationVersion | None
    now: Outlook
    after: Outlook
    accepted: Outlook

    @property
    def pairs(self) -> int:
        return self.scale.n

    @property
    def is_in_force(self) -> bool:
        """Whether this very scale is in force already."""
        return calibrating.scale_of(self.held) == self.scale

    @property
    def moves(self) -> dict[str, float]:
        return {arm: each.mean - self.accepted.arms[arm].mean for arm, each in self.after.arms.items()}

    @property
    def largest(self) -> tuple[str, float]:
        """The arm that is moved furthest, and how far; nothing of no arm where there is none."""
        return max(self.moves.items(), key=lambda each: (abs(each[1]), each[0]), default=("", 0.0))

    @property
    def comes_by_itself(self) -> bool:
        """Whether nobody needs to look: somebody once did, and no arm is far from where they left it."""
        held = self.held
        return held is not None and held.enabled and all(abs(move) <= BY_ITSELF for move in self.moves.values())

    @property
    def waits(self) -> bool:
        """Whether this waits for a person: it is not in force, nobody switched off, and it does not come by itself.

        A bandit that never had a calibration, as after an upgrade, waits once it has rewards.
        """
        if self.held is None:
            return any(each.n for arm in self.now.arms.values() for each in arm.evidence)
        return self.held.enabled and bool(self.pairs) and not self.is_in_force and not self.comes_by_itself

    @property
    def fingerprint(self) -> str:
        """A name for exactly this scale."""
        return hashlib.sha256(json.dumps(self.scale.as_json(), sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class _VerdictAndFallback:
    """A session's verdict, by which model and rubric, and the fallback that it would have rested on: 0 of an
    abstention. `key` is (source, version, view) of the fallback.
    """

    key: Key
    fallback: float
    judge: float
    model: str
    rubric: str


# By a session, its last grade and the chain's version. Grades are only ever added, so that an entry holds until the
# session has another grade. The bandit's page needs 1,000 of them: 25 ms of processor time with this cache, 445 ms
# without it, most of it for decoding and redacting the evidence of their grades.
_SessionKey = tuple[int, int, str]
_cache = Memory[_SessionKey, _VerdictAndFallback | None](2 * MOST_SESSIONS)
# A session, when it ended, and its verdict.
_Judged = tuple[int, dt.datetime, _VerdictAndFallback]


class Judgements:
    """Every judged session of late with what it would have rested on without the verdict, of the judge that is meant.

    The verdict is the first that had read all there is: later samples were asked for because it looked wrong.
    """

    def __init__(self, now: dt.datetime) -> None:
        judged = _judged(now)
        self.target = target = _target(Counter((both.model, both.rubric) for _session, _ended_at, both in judged))
        self._judged = [
            (session, ended_at, both)
            for session, ended_at, both in judged
            if target is None or (both.model == target.model and both.rubric in target.rubrics)
        ]

    def pairs(self, bandit: Bandit) -> list[JudgedSession]:
        """A pair of each of them for each arm of this bandit that has its reward."""
        arms = _live_arms(bandit, [session for session, _ended_at, _both in self._judged])
        return [
            JudgedSession(
                arm=arm,
                source=both.key[0],
                version=both.key[1],
                view=both.key[2],
                fallback=both.fallback,
                judge=both.judge,
                day=timezone.localdate(ended_at),
            )
            for session, ended_at, both in self._judged
            for arm in arms[session]
        ]


def scale_of(pairs: Sequence[JudgedSession]) -> Scale:
    """What these pairs show."""
    return fit(pairs, START)


def _live_arms(bandit: Bandit, sessions: Sequence[int]) -> dict[int, list[str]]:
    """The names of the arms that have the reward of each session, in order. One query for each CHUNK_SIZE sessions."""
    arms: dict[int, list[str]] = {session: [] for session in sessions}
    for some in _in_chunks(sessions):
        session_of_observation = {observation_of(session): session for session in some}
        entries = ledger.live_entries_of(bandit.name, session_of_observation)
        for observation, arm in entries.values_list("observation", "arm__name"):
            arms[session_of_observation[observation]].append(arm)
    return {session: sorted(names) for session, names in arms.items()}


def _in_chunks(held: Sequence[T]) -> Iterator[Sequence[T]]:
    for at in range(0, len(held), CHUNK_SIZE):
        yield held[at : at + CHUNK_SIZE]


def key_of(grades: Iterable[Grade], row: int | None) -> Key:
    """(source, version, view) of the grade with this id, as the ledger has it; of an abstention for None."""
    if row is None:
        return ABSTAINED, *rewards.abstained(grades)
    return _key(next(grade for grade in grades if grade.pk == row))


def _key(grade: Grade) -> Key:
    return grade.source, grade.version, rewards.view_of(grade)


def _verdicts(given: dt.datetime, ended: dt.datetime) -> QuerySet[Grade, tuple[int, dt.datetime, int]]:
    """The verdicts given since then on sessions that ended since then, the latest first: the session, when it ended,
    its last grade. By the first of these the database leaves verdicts out before it looks for their sessions.
    """
    graded = Grade.objects.filter(session=OuterRef("session"), source__in=MACHINES).order_by()
    last = Subquery(graded.values("session").annotate(last=Max("pk")).values("last"))
    verdicts = Grade.objects.chain().verdicts().filter(yours(), created_at__gte=given, session__ended_at__gte=ended)
    return verdicts.order_by("-pk").values_list("session", "session__ended_at", last)


# Most sessions have one verdict.
FEW, MANY = MOST_SESSIONS + MOST_SESSIONS // 10, 2 * MOST_SESSIONS


def _judged(now: dt.datetime) -> list[_Judged]:
    """The sessions judged of late, the latest first, that have a verdict which had read all there is."""
    policy, since = rewards.policy(), (min(now, timezone.now()) - OLDEST, now - OLDEST)
    verdicts = list(_verdicts(*since)[:FEW])
    if len(verdicts) == FEW and len({session for session, *_ in verdicts}) < MOST_SESSIONS:
        verdicts = list(_verdicts(*since)[:MANY])
    latest = {session: (ended_at, last) for session, ended_at, last in verdicts}
    ended_at_by_key = {
        (session, last, policy.version): ended_at for session, (ended_at, last) in list(latest.items())[:MOST_SESSIONS]
    }

    def read(missing: list[_SessionKey]) -> dict[_SessionKey, _VerdictAndFallback | None]:
        both_by_session = _read([session for session, _last, _policy in missing], policy)
        return {key: both_by_session[key[0]] for key in missing}

    both_by_key = _cache.of(ended_at_by_key, read)
    return [
        (key[0], ended_at, both) for key, ended_at in ended_at_by_key.items() if (both := both_by_key[key]) is not None
    ]


def _read(sessions: Sequence[int], policy: ChainPolicy) -> dict[int, _VerdictAndFallback | None]:
    """By session; None where no verdict had read all there is. One query for each CHUNK_SIZE sessions."""
    both_by_session: dict[int, _VerdictAndFallback | None] = {}
    for some in _in_chunks(sessions):
        rows = Grade.objects.chain().filter(session__in=some, source__in=MACHINES).order_by("session", "pk")
        grades: dict[int, list[Grade]] = {session: [] for session in some}
        for grade in rows:
            grades[grade.session_id].append(grade)
        both_by_session |= {session: _verdict_and_fallback(own, policy) for session, own in grades.items()}
    return both_by_session


def _verdict_and_fallback(grades: Sequence[Grade], policy: ChainPolicy) -> _VerdictAndFallback | None:
    """Of the grades of one session; None where no verdict had read all there is."""
    views = rewards.views(grades)
    fresh = {view.id for view in views if not view.stale}
    first = (row for row in grades if row.source == Source.JUDGE and row.sample == 1 and row.value is not None)
    verdict = next((row for row in first if row.pk in fresh), None)
    if verdict is None:
        return None
    row = fallback(views, policy)
    return _VerdictAndFallback(
        key=key_of(grades, None if row is None else row.id),
        fallback=0.0 if row is None else row.value or 0.0,
        judge=verdict.value or 0.0,
        model=verdict.model,
        rubric=verdict.rubric,
    )


def _target(verdicts: Counter[tuple[str, str]]) -> Target | None:
    """The model that judges now, by the rubrics in force, where it gave enough verdicts; else the one that gave most,
    by all its rubrics.
    """
    latest_verdicts = Grade.objects.chain().verdicts().filter(yours()).order_by("-pk")
    latest = latest_verdicts.values_list("model", flat=True).first()
    active = set(Rubric.objects.filter(is_active=True).values_list("sha256", flat=True))
    now = {key: n for key, n in verdicts.items() if key[0] == latest and key[1] in active}
    if sum(now.values()) < ENOUGH:
        by_model = Counter[str]()
        for (model, _), n in verdicts.items():
            by_model[model] += n
        if not by_model:
            return None
        most = max(by_model, key=lambda model: (by_model[model], model))
        now = {key: n for key, n in verdicts.items() if key[0] == most}
    model = next(iter(now))[0]
    return Target(model=model, rubrics=tuple(sorted(rubric for _, rubric in now)))


def proposal(name: str, now: dt.datetime, judged: Judgements | None = None, held: InForce | None = None) -> Proposed:
    """What could be put in force on this bandit at `now`, from what was `judged` by then, and `held` being what it is
    read by, where these were read already. Raises UnknownBandit.
    """
    held = held or in_force(Bandit.objects.named(name))
    last, judged = held.calibration, judged or Judgements(now)
    scale = scale_of(judged.pairs(held.bandit))
    base = calibrating.scale_of(calibrating.accepted(held.bandit))
    present, after, accepted = what_if_calibrated(held, [calibrating.scale_of(last), scale, base], now)
    return Proposed(
        bandit=held.bandit,
        scale=scale,
        target=judged.target,
        version=1 if last is None else last.version + 1,
        held=last,
        now=present,
        after=after,
        accepted=accepted,
    )


def put_in_force(proposed: Proposed, by: User, *, version: int, fingerprint: str, note: str = "") -> CalibrationVersion:
    """Put what `proposed` holds in force under the reviewer's name, if it is what they saw. Raises StaleVersion."""
    if fingerprint != proposed.fingerprint:
        raise StaleVersion(
            "Verdicts came in since the page was opened, and the calibration is another now. Nothing was saved; look "
            "again."
        )
    return _put(proposed, version=version, by=by.get_username(), accepted=True, note=note)


def switch_off(name: str, by: User, *, version: int, note: str = "") -> CalibrationVersion:
    """Read every source as it stands, under a person's name. Raises StaleVersion."""
    return calibrating.switch_off(name, version=version, by=by.get_username(), note=note)


def renew(now: dt.datetime) -> list[CalibrationVersion]:
    """Fit every bandit's calibration anew, and put in force what may come by itself; what waits for a person stays a
    proposal. For the night.
    """
    made, judged = [], Judgements(now)
    for bandit in Bandit.objects.that_learn():
        held = calibrating.latest(bandit)
        if held is None or not held.enabled:
            continue
        proposed = proposal(bandit.name, now, judged)
        if proposed.pairs and not proposed.is_in_force and proposed.comes_by_itself:
            made.append(_put(proposed, version=proposed.version, by=SITE, accepted=False))
    return made


def _put(proposed: Proposed, *, version: int, by: str, accepted: bool, note: str = "") -> CalibrationVersion:
    return calibrating.put_in_force(
        proposed.bandit.name,
        proposed.scale,
        version=version,
        by=by,
        target=str(proposed.target or ""),
        accepted=accepted,
        note=note,
    )


def has_verdicts(bandit: Bandit) -> bool:
    """Whether any of its rewards is a judge's: at the start, only then is anything read through the scale."""
    return Bucket.objects.filter(bandit=bandit, grader__source=Source.JUDGE, n__gt=0).exists()


class ScaleReader:
    """The calibration of one bandit that is in force, for reading grades on the judge's scale: two queries, and up to
    two more for what they weigh. Raises UnknownBandit.
    """

    def __init__(self, bandit: str = "category") -> None:
        self._row = Bandit.objects.named(bandit)
        held = calibrating.in_force(self._row)
        self.bandit, self.version = bandit, 0 if held is None else held.version
        self.scale = calibrating.scale_of(held)

    @cached_property
    def weights(self) -> dict[str, float]:
        """What a session of each source counts now, before any cap."""
        weights = weights_of(version_of(self._row))
        if self.scale is None or (self.scale.is_start and not has_verdicts(self._row)):
            return weights
        return self.scale.replace_weights(weights, timezone.localdate())

    def of(self, session: Session, grade: Grade, value: float | None = None) -> Calibrated | None:
        """A fallback's grade of this session, or the `value` that was made of it, on the judge's scale of its category;
        None where nothing maps it: no value, no category, another source, no judged session like it yet.
        """
        said = grade.value if value is None else value
        if said is None or grade.source not in SOURCES or session.category is None:
            return None
        return self.read(session.category.current.name, _key(grade), said)

    def read(self, arm: str, key: Key, value: float) -> Calibrated | None:
        """A grade of (source, version, view) on the judge's scale; None where nothing maps it, or the map ranks
        backwards.
        """
        line = None if self.scale is None else self.scale.line(key)
        if self.scale is None or line is None or line.backwards:
            return None
        return Calibrated(
            value=line.clipped(arm, value),
            error=line.error(arm, value),
            pairs=line.n,
            weight=self.weights.get(key[0], 0.0),
            version=self.version,
        )


def of(session: Session, grade: Grade) -> Calibrated | None:
    """One fallback's grade of this session on the judge's scale of its category, as `ScaleReader.of` has it."""
    return None if session.category is None or grade.source not in SOURCES else ScaleReader().of(session, grade)


def lines(bandit: str = "category") -> list[CalibrationLine]:
    """The lines by which a bandit's fallbacks are read now, without those that stand in for others."""
    scale = calibrating.scale_of(calibrating.in_force(Bandit.objects.named(bandit)))
    return [] if scale is None else scale.own_lines
