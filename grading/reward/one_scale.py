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
from functools import cached_property, partial
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from bandit import ledger, versions
from bandit.core.calibration import CalibrationLine, JudgedSession, Key, Scale, fit
from bandit.core.posterior import Outlook
from bandit.core.table import ABSTAINED
from bandit.models import Bandit, Bucket, CalibrationVersion, Erasure, LedgerEntry
from bandit.reading import EffectivePolicy, effective_policy, version_of, weights_of
from bandit.versions import StaleVersion
from bandit.whatif import what_if_calibrated
from grading.models import Grade, Rubric, Session, StoredReading
from grading.models.readings import last_keys
from grading.models.sessions import observation_of, yours
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
# The name of the stored reading, and what it has of each pair.
PAIRS = "calibration pairs"
PAIR = ("arm", "source", "version", "view", "fallback", "judge", "day")
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
    """What the pairs say by now, and what holds: `version` is the next, `held` the last one. Where the worker read the
    pairs, `read_at` says when.

    `now`, `after` and `accepted` are the bandit's outlooks: as it is read now, with this scale, and as the last version
    that a person accepted has it. `moves` by arm: how far this scale's mean is from that one's.
    """

    bandit: Bandit
    scale: Scale
    target: Target | None
    read_at: dt.datetime | None
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
        return versions.scale_of(self.held) == self.scale

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
    abstention. `key` is (source, version, view) of the fallback, `day` the site's on which the session ended.
    """

    session: int
    day: dt.date
    key: Key
    fallback: float
    judge: float
    model: str
    rubric: str


class Judgements:
    """Every judged session of late with what it would have rested on without the verdict, of the judge that is meant.

    The verdict is the first that had read all there is: later samples were asked for because it looked wrong. Reading
    1,000 sessions' grades takes about half a second of processor time.
    """

    read_at: dt.datetime | None = None

    def __init__(self, now: dt.datetime) -> None:
        judged = _judged(now)
        self.target = target = _target(Counter((both.model, both.rubric) for both in judged))
        self._verdicts = [
            both for both in judged if target is None or (both.model == target.model and both.rubric in target.rubrics)
        ]

    def pairs(self, bandit: Bandit) -> list[JudgedSession]:
        """A pair of each of them for each arm of this bandit that has its reward."""
        arms = _live_arms(bandit, [both.session for both in self._verdicts])
        return [
            JudgedSession(
                arm=arm,
                source=both.key[0],
                version=both.key[1],
                view=both.key[2],
                fallback=both.fallback,
                judge=both.judge,
                day=both.day,
            )
            for both in self._verdicts
            for arm in arms[both.session]
        ]

    def scale(self, bandit: Bandit) -> Scale:
        """What the pairs of this bandit show."""
        return fit(self.pairs(bandit), START)


class StoredJudgements:
    """The pairs and scales as the worker last read them, at `read_at`."""

    def __init__(self, stored: StoredReading) -> None:
        self.read_at: dt.datetime | None = stored.read_at
        target = stored.value["target"]
        self.target = None if target is None else Target(model=target["model"], rubrics=tuple(target["rubrics"]))
        self._bandits = stored.value["bandits"]

    def pairs(self, bandit: Bandit) -> list[JudgedSession]:
        return [
            JudgedSession(**{**dict(zip(PAIR, row, strict=True)), "day": dt.date.fromisoformat(row[-1])})
            for row in self._bandits.get(bandit.name, {}).get("pairs", ())
        ]

    def scale(self, bandit: Bandit) -> Scale:
        stored = self._bandits.get(bandit.name)
        return START if stored is None else Scale.from_json(stored["scale"])


def latest_judgements(now: dt.datetime) -> Judgements | StoredJudgements:
    """The judged sessions as the worker last read them; as they are at `now` where it never did. For pages."""
    stored = StoredReading.objects.filter(name=PAIRS).first()
    return Judgements(now) if stored is None else StoredJudgements(stored)


def store_judgements(now: dt.datetime) -> None:
    """Read the judged sessions for the pages, if grades, rewards or the day changed since they were last read."""
    rubrics = list(Rubric.objects.filter(is_active=True).order_by("pk").values_list("pk", flat=True))
    today = timezone.localdate(now).isoformat()
    last = last_keys(Grade, LedgerEntry)
    inputs = repr((last, Erasure.objects.count(), rubrics, rewards.policy().version, today))
    StoredReading.objects.renew(PAIRS, inputs, partial(_judgements_as_json, now), now)


def _judgements_as_json(now: dt.datetime) -> dict[str, Any]:
    judgements, bandits = Judgements(now), dict[str, Any]()
    for bandit in Bandit.objects.that_learn():
        pairs = judgements.pairs(bandit)
        bandits[bandit.name] = {
            "pairs": [(*(getattr(pair, name) for name in PAIR[:-1]), pair.day.isoformat()) for pair in pairs],
            "scale": fit(pairs, START).as_json(),
        }
    target = judgements.target
    return {
        "target": None if target is None else {"model": target.model, "rubrics": target.rubrics},
        "bandits": bandits,
    }


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


def _verdicts(created_since: dt.datetime, ended_since: dt.datetime) -> QuerySet[Grade, tuple[int, dt.datetime]]:
    """The verdicts given since then on sessions that ended since then, the latest first: the session, when it ended.
    By the first of these the database leaves verdicts out before it looks for their sessions.
    """
    verdicts = (
        Grade.objects.chain()
        .verdicts()
        .filter(yours(), created_at__gte=created_since, session__ended_at__gte=ended_since)
    )
    return verdicts.order_by("-pk").values_list("session", "session__ended_at")


# Most sessions have one verdict.
FEW, MANY = MOST_SESSIONS + MOST_SESSIONS // 10, 2 * MOST_SESSIONS


def _judged(now: dt.datetime) -> list[_VerdictAndFallback]:
    """The sessions judged of late, the latest first, that have a verdict which had read all there is."""
    policy, since = rewards.policy(), (min(now, timezone.now()) - OLDEST, now - OLDEST)
    verdicts = list(_verdicts(*since)[:FEW])
    if len(verdicts) == FEW and len(dict(verdicts)) < MOST_SESSIONS:
        verdicts = list(_verdicts(*since)[:MANY])
    ended_at = dict(list(dict(verdicts).items())[:MOST_SESSIONS])
    judged = []
    for some in _in_chunks(list(ended_at)):
        rows = Grade.objects.chain().filter(session__in=some, source__in=MACHINES).order_by("session", "pk")
        grades: dict[int, list[Grade]] = {session: [] for session in some}
        for grade in rows:
            grades[grade.session_id].append(grade)
        for session, own in grades.items():
            both = _verdict_and_fallback(session, timezone.localdate(ended_at[session]), own, policy)
            if both is not None:
                judged.append(both)
    return judged


def _verdict_and_fallback(
    session: int, day: dt.date, grades: Sequence[Grade], policy: ChainPolicy
) -> _VerdictAndFallback | None:
    """Of the grades of one session; None where no verdict had read all there is."""
    views = rewards.views(grades)
    fresh = {view.id for view in views if not view.stale}
    first = (row for row in grades if row.source == Source.JUDGE and row.sample == 1 and row.value is not None)
    verdict = next((row for row in first if row.pk in fresh), None)
    if verdict is None:
        return None
    row = fallback(views, policy)
    return _VerdictAndFallback(
        session=session,
        day=day,
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


def proposal(
    name: str,
    now: dt.datetime,
    judged: Judgements | StoredJudgements | None = None,
    held: EffectivePolicy | None = None,
) -> Proposed:
    """What could be put in force on this bandit at `now`, from what was `judged` by then, and `held` being what it is
    read by, where these were read already. Raises UnknownBandit.
    """
    held = held or effective_policy(Bandit.objects.named(name))
    last = held.calibration
    judged = judged or latest_judgements(now)
    scale = judged.scale(held.bandit)
    base = versions.scale_of(versions.accepted_calibration(held.bandit))
    present, after, accepted = what_if_calibrated(held, [versions.scale_of(last), scale, base], now)
    return Proposed(
        bandit=held.bandit,
        scale=scale,
        target=judged.target,
        read_at=judged.read_at,
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
    return versions.switch_off_calibration(name, version=version, by=by.get_username(), note=note)


def renew(now: dt.datetime) -> list[CalibrationVersion]:
    """Fit every bandit's calibration anew, and put in force what may come by itself; what waits for a person stays a
    proposal. For the night.
    """
    made, judged = [], Judgements(now)
    for bandit in Bandit.objects.that_learn():
        held = versions.latest(CalibrationVersion, bandit)
        if held is None or not held.enabled:
            continue
        proposed = proposal(bandit.name, now, judged)
        if proposed.pairs and not proposed.is_in_force and proposed.comes_by_itself:
            made.append(_put(proposed, version=proposed.version, by=SITE, accepted=False))
    return made


def _put(proposed: Proposed, *, version: int, by: str, accepted: bool, note: str = "") -> CalibrationVersion:
    return versions.set_calibration(
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
        held = versions.current(CalibrationVersion, self._row)
        self.bandit, self.version = bandit, 0 if held is None else held.version
        self.scale = versions.scale_of(held)

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
    scale = versions.scale_of(versions.current(CalibrationVersion, Bandit.objects.named(bandit)))
    return [] if scale is None else scale.own_lines
