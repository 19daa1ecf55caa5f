"""One scale: what a fallback's grade is worth on the judge's scale, learnt from sessions that have both.

A judged session also has a fallback: the grade that the chain would rest on without the verdict, or an abstention. A
bandit's calibration is fitted to these pairs, in versions. Settlements stay as they are: a calibration acts where the
bandit reads its rewards.
"""

import datetime as dt
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.utils import timezone

from bandit import ledger, versions
from bandit.core.calibration import NORMAL_90, CalibrationLine, JudgedSession, Key, Scale, fit
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

# The sources that are read on the judge's scale. Consumption never is: it decides only if it is higher, so that such
# pairs are selected.
SOURCES = (Source.JOURNAL.value, Source.TRAJECTORY.value)
# The scale without any pairs. A failure is never read below what leaving no trace is worth.
START = Scale(sources=SOURCES, floored=(EvidenceView.FAILED.value,))
# Pairs are of the latest judged sessions: at most this many, and none older than this.
MAX_SESSIONS, MAX_AGE = 1_000, dt.timedelta(days=180)
# The least verdicts of the current model and rubrics for them to be the target.
MIN_TARGET_VERDICTS = 20
# A calibration takes effect by itself if it moves no arm's mean by more than this since a person last accepted one.
MAX_AUTOMATIC_MOVE = 0.05
SITE = "the site, at night"
# The name of the stored reading, and the fields of each pair in it.
STORED_NAME = "calibration pairs"
PAIR_FIELDS = ("arm", "source", "version", "view", "fallback", "judge", "day")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The judge whose scale is meant: a model and the rubrics that it was asked by."""

    model: str
    rubrics: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.model} {' '.join(rubric[:4] for rubric in self.rubrics)}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A fallback's grade on the judge's scale.

    `value` is in [0, 1], `half_width` half of the 90 % interval of one session's verdict about it, estimated from
    `pairs` judged sessions. `weight` is what such a session counts, before any cap. `version` is the calibration's.
    """

    value: float
    half_width: float
    pairs: int
    weight: float
    version: int


@dataclass(frozen=True, kw_only=True)
class ScaleProposal:
    """The scale that today's pairs suggest for a bandit, as its next calibration `version`, and what it would change.

    `last` is the last version, enabled or not. `read_at` is when the worker read the pairs, None if they were read just
    now. `now`, `after` and `accepted` are the bandit's outlooks: as it is now, with this scale, and with the last
    version that a person accepted.
    """

    bandit: Bandit
    scale: Scale
    target: Target | None
    read_at: dt.datetime | None
    version: int
    last: CalibrationVersion | None
    now: Outlook
    after: Outlook
    accepted: Outlook

    @property
    def pairs(self) -> int:
        return self.scale.n

    @property
    def is_in_force(self) -> bool:
        """Whether exactly this scale is used already."""
        return versions.scale_of(self.last) == self.scale

    @property
    def moves(self) -> dict[str, float]:
        """How far this scale moves each arm's mean from the last version that a person accepted."""
        return {name: arm.mean - self.accepted.arms[name].mean for name, arm in self.after.arms.items()}

    @property
    def largest(self) -> tuple[str, float]:
        """The arm that is moved furthest, and by how much; ("", 0) without arms."""
        return max(self.moves.items(), key=lambda move: (abs(move[1]), move[0]), default=("", 0.0))

    @property
    def comes_by_itself(self) -> bool:
        """Whether no person needs to look at it: one accepted a version before, and no arm is far from that."""
        if self.last is None or not self.last.enabled:
            return False
        return all(abs(move) <= MAX_AUTOMATIC_MOVE for move in self.moves.values())

    @property
    def waits(self) -> bool:
        """Whether this waits for a person: it is not used yet, calibration is on, and it does not come by itself.

        A bandit that never had a calibration, as after an upgrade, waits once it has rewards.
        """
        if self.last is None:
            return any(evidence.n for arm in self.now.arms.values() for evidence in arm.evidence)
        return self.last.enabled and bool(self.pairs) and not self.is_in_force and not self.comes_by_itself

    @property
    def fingerprint(self) -> str:
        """A digest of exactly this scale."""
        return hashlib.sha256(json.dumps(self.scale.as_json(), sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgements:
    """The pairs of every bandit that learns and the scales that they fit, as JSON in the form that the worker stores.

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
        stored = self.data["bandits"].get(bandit.name, {"pairs": []})
        pairs = []
        for values in stored["pairs"]:
            fields = dict(zip(PAIR_FIELDS, values, strict=True))
            fields["day"] = dt.date.fromisoformat(fields["day"])
            pairs.append(JudgedSession(**fields))
        return pairs

    def scale(self, bandit: Bandit) -> Scale:
        """The scale that the pairs of this bandit fit."""
        stored = self.data["bandits"].get(bandit.name)
        return START if stored is None else Scale.from_json(stored["scale"])


def read_judgements(now: dt.datetime) -> Judgements:
    """Read the judged sessions and fit the scales: half a second of processor time for 1,000 sessions."""
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
    inputs = repr((last, Erasure.objects.count(), rubrics, rewards.policy().version, today))
    StoredReading.objects.renew(STORED_NAME, inputs, partial(_judgements_as_json, now), now)


class _JudgedPair(NamedTuple):
    """A session's pair, without an arm, and the model and the rubric of its verdict."""

    session: int
    model: str
    rubric: str
    pair: JudgedSession


def _judgements_as_json(now: dt.datetime) -> dict[str, Any]:
    """`Judgements.data` as of now: the target, and for each bandit its pairs and the scale that they fit.

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
        bandits[bandit.name] = {"pairs": [_pair_as_json(pair) for pair in pairs], "scale": fit(pairs, START).as_json()}
    return {
        "target": None if target is None else {"model": target.model, "rubrics": target.rubrics},
        "bandits": bandits,
    }


def _pair_as_json(pair: JudgedSession) -> tuple[Any, ...]:
    return pair.arm, pair.source, pair.version, pair.view, pair.fallback, pair.judge, pair.day.isoformat()


def _live_arms(bandit: Bandit, sessions: Iterable[int]) -> dict[int, list[str]]:
    """The names of the arms that have the reward of each session, in order. One query."""
    session_of_observation = {observation_of(session): session for session in sessions}
    arms: dict[int, list[str]] = {session: [] for session in session_of_observation.values()}
    entries = ledger.live_entries_of(bandit.name, session_of_observation)
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
    if row is None:
        source = ABSTAINED
        version, view = rewards.abstention_key(grades)
    else:
        source, version, view = _key(next(grade for grade in grades if grade.pk == row.id))
    pair = JudgedSession(
        arm="",
        source=source,
        version=version,
        view=view,
        fallback=0.0 if row is None else row.value or 0.0,
        judge=verdict.value or 0.0,
        day=day,
    )
    return _JudgedPair(verdict.session_id, verdict.model, verdict.rubric, pair)


def _key(grade: Grade) -> Key:
    return grade.source, grade.version, rewards.view_of(grade)


def _target(verdicts: Counter[tuple[str, str]]) -> Target | None:
    """The judge whose scale is learnt. `verdicts` counts the judged sessions by (model, rubric).

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


def proposal(
    name: str, now: dt.datetime, judgements: Judgements | None = None, current: EffectivePolicy | None = None
) -> ScaleProposal:
    """The next calibration of this bandit, fitted to the judgements, and what it would change. Raises UnknownBandit.

    `judgements` and the policy that the bandit is read by (`current`) are loaded if they aren't passed in.
    """
    current = current or effective_policy(Bandit.objects.named(name))
    judgements = judgements or latest_judgements(now)
    bandit, last = current.bandit, current.calibration
    scale = judgements.scale(bandit)
    accepted_scale = versions.scale_of(versions.accepted_calibration(bandit))
    scales = [versions.scale_of(last), scale, accepted_scale]
    outlook_now, outlook_after, outlook_accepted = what_if_calibrated(current, scales, now)
    return ScaleProposal(
        bandit=bandit,
        scale=scale,
        target=judgements.target,
        read_at=judgements.read_at,
        version=1 if last is None else last.version + 1,
        last=last,
        now=outlook_now,
        after=outlook_after,
        accepted=outlook_accepted,
    )


def put_in_force(
    proposed: ScaleProposal, by: User, *, version: int, fingerprint: str, note: str = ""
) -> CalibrationVersion:
    """Append the proposed version under the user's name.

    `version` and `fingerprint` are of the proposal that the user saw. Raises StaleVersion if it has changed since.
    """
    if fingerprint != proposed.fingerprint:
        raise StaleVersion(
            "New verdicts have changed this calibration since the page was opened. Nothing was saved. Look at the new "
            "version, then decide again."
        )
    return _put(proposed, version=version, by=by.get_username(), accepted=True, note=note)


def switch_off(name: str, by: User, *, version: int, note: str = "") -> CalibrationVersion:
    """Append a version that reads every source as it stands, under the user's name. Raises StaleVersion."""
    return versions.switch_off_calibration(name, version=version, by=by.get_username(), note=note)


def renew(now: dt.datetime) -> list[CalibrationVersion]:
    """Fit every bandit's calibration again, put in force those that need no person, and return these. Runs at night."""
    renewed = []
    judgements = read_judgements(now)
    for bandit in Bandit.objects.that_learn():
        last = versions.latest(CalibrationVersion, bandit)
        if last is None or not last.enabled:
            continue
        proposed = proposal(bandit.name, now, judgements)
        if proposed.pairs and not proposed.is_in_force and proposed.comes_by_itself:
            renewed.append(_put(proposed, version=proposed.version, by=SITE, accepted=False))
    return renewed


def _put(proposed: ScaleProposal, *, version: int, by: str, accepted: bool, note: str = "") -> CalibrationVersion:
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
    """Whether any of its rewards is a judge's: the starting scale is used only then."""
    return Bucket.objects.filter(bandit=bandit, grader__source=Source.JUDGE, n__gt=0).exists()


class ScaleReader:
    """Reads grades on the judge's scale by the current calibration of one bandit. Raises UnknownBandit.

    Two queries, and up to two more for the weights.
    """

    def __init__(self, bandit: str = "category") -> None:
        self._row = Bandit.objects.named(bandit)
        calibration = versions.current(CalibrationVersion, self._row)
        self.bandit, self.version = bandit, 0 if calibration is None else calibration.version
        self.scale = versions.scale_of(calibration)

    @cached_property
    def weights(self) -> dict[str, float]:
        """How much a session of each source counts now, before any cap: by the policy, or by the scale for the sources
        that it maps. The starting scale is used only once there are verdicts.
        """
        weights = weights_of(version_of(self._row))
        if self.scale is None or (self.scale.is_start and not has_verdicts(self._row)):
            return weights
        return self.scale.replace_weights(weights, timezone.localdate())

    def calibrate(self, session: Session, grade: Grade, value: float | None = None) -> Calibrated | None:
        """A fallback's grade of this session, or the `value` that it was settled at, on the scale of its category.

        None if nothing maps it: no value, no category, another source, or no judged session like it yet.
        """
        if value is None:
            value = grade.value
        if value is None or grade.source not in SOURCES or session.category is None:
            return None
        return self.read(session.category.current.name, _key(grade), value)

    def read(self, arm: str, key: Key, value: float) -> Calibrated | None:
        """The grade `value` of (source, version, view) on the judge's scale. None if there is no line for these, or if
        its slope may be 0 or less, so that a higher grade says nothing of the verdict.
        """
        line = None if self.scale is None else self.scale.line(key)
        if line is None or line.backwards:
            return None
        return Calibrated(
            value=line.clipped(arm, value),
            half_width=NORMAL_90 * line.error(arm, value),
            pairs=line.n,
            weight=self.weights.get(key[0], 0.0),
            version=self.version,
        )


def calibrate(session: Session, grade: Grade) -> Calibrated | None:
    """`ScaleReader.calibrate` for a single grade."""
    if session.category is None or grade.source not in SOURCES:
        return None
    return ScaleReader().calibrate(session, grade)


def current_lines(bandit: str = "category") -> list[CalibrationLine]:
    """The lines by which a bandit's fallbacks are read now, without those that stand in for others."""
    scale = versions.scale_of(versions.current(CalibrationVersion, Bandit.objects.named(bandit)))
    return [] if scale is None else scale.own_lines
