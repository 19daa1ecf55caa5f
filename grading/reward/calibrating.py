"""A bandit's calibration, which adjusts the grades of fallbacks and machines: proposed, put in force, switched off.

Fallbacks are compared with verdicts (`judged_pairs`), then machines' grades with people's (`human_pairs`). Both are
fitted and put in force together, in versions.
"""

import datetime as dt
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from bandit import versions
from bandit.core import calibration, machine_human
from bandit.core.calibration import FallbackCalibration, fallback_share
from bandit.core.evidence import value_as_read
from bandit.core.machine_human import MachineHumanPair, Offset
from bandit.core.offsets import Stratum
from bandit.core.posterior import Outlook
from bandit.core.table import ABSTAINED
from bandit.models import Bandit, CalibrationVersion, LedgerEntry
from bandit.reading import EffectivePolicy, effective_policy, site_day, verdicts_of, version_of, weights_of
from bandit.versions import StaleVersion
from bandit.whatif import row_of_entry, what_if_calibrated
from grading.models import Grade, Session
from grading.reward.human_pairs import human_pairs
from grading.reward.judged_pairs import Judgements, Target, latest_judgements, read_judgements
from grading.vocabulary import Source

# The sources of fallbacks. Consumption is none: it is computed from artifacts.
SOURCES = (Source.JOURNAL.value, Source.TRAJECTORY.value)
# The sources whose grades are based on no judge, person or artifact.
UNJUDGED = frozenset({*SOURCES, Source.FLOOR.value, ABSTAINED})
# A calibration takes effect by itself if it moves no arm's mean by more than this since a person last accepted one.
MAX_AUTOMATIC_MOVE = 0.05
SITE = "the site, at night"
NORMAL_90 = 1.6448536269514722


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A fallback's grade on the judge's scale.

    `value` is in [0, 1], `half_width` half of the 90 % interval of a session's verdict about it, estimated from `pairs`
    judged sessions. `version` is the calibration's.
    """

    value: float
    half_width: float
    pairs: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedReward:
    """A reward as its bandit reads it: the `value` in [0, 1] that counts, and the corrections that led to it.

    `on_judges_scale`: a fallback's grade was calibrated; `by_people`: a machine's was corrected by people's grades;
    `by_context`: it was compared with the bandit's baseline. `is_estimated`: the grade was not read at all, since its
    arm has enough verdicts; the value is that of judged sessions like it.
    """

    value: float
    on_judges_scale: bool = False
    by_people: bool = False
    by_context: bool = False
    is_estimated: bool = False

    @property
    def how(self) -> str:
        """How the value came about, as a phrase such as "on the judge’s scale"; empty if it is the reward as given."""
        if self.is_estimated:
            return "estimated from judged sessions"
        corrections = {
            "on the judge’s scale": self.on_judges_scale,
            "corrected by people’s grades": self.by_people,
            "compared with its category": self.by_context,
        }
        return " and ".join(phrase for phrase, applies in corrections.items() if applies)


def read_reward(entry: LedgerEntry, outlook: Outlook) -> CountedReward:
    """A live reward as its bandit reads it. `outlook` is the bandit's own."""
    policy, grader = outlook.posterior.policy, entry.grader
    arm = entry.arm.current.name
    for evidence in outlook.arms[arm].evidence:
        # All fallbacks of one source in an arm are estimated alike, so their mean is the value of each.
        if evidence.source == grader.source and evidence.is_estimated:
            return CountedReward(value=evidence.mean, is_estimated=True)
    row = row_of_entry(entry, sign=1)
    return CountedReward(
        value=value_as_read(row, policy),
        on_judges_scale=bool(policy.calibration and policy.calibration.shifts.get(grader.source)),
        by_people=bool(policy.offsets.get((row.arm, row.source, row.stratum))),
        by_context=bool(policy.baseline.get(row.context)),
    )


@dataclass(frozen=True, kw_only=True)
class CalibrationProposal:
    """The calibration that today's pairs suggest for a bandit, as its next `version`, and what it would change.

    `last` is the last version, enabled or not. `offsets` are of every arm and stratum, and `rewards` is the number of
    rewards by stratum. `human_pairs` are those behind the offsets. `read_at` is when the worker read the judged
    sessions, None if they were read just now. `now`, `after` and `accepted` are the bandit's outlooks: as it is now,
    with this calibration, and with the last version that a person accepted.
    """

    bandit: Bandit
    fallbacks: FallbackCalibration
    offsets: Sequence[Offset]
    rewards: Mapping[Stratum, int]
    human_pairs: int
    target: Target | None
    read_at: dt.datetime | None
    version: int
    last: CalibrationVersion | None
    now: Outlook
    after: Outlook
    accepted: Outlook

    @property
    def pairs(self) -> int:
        """The number of judged sessions behind it."""
        return self.fallbacks.n

    @property
    def is_in_force(self) -> bool:
        """Whether exactly this calibration is used already."""
        last = self.last
        if last is None or not last.enabled:
            return False
        offsets = {each.key: each.offset for each in self.offsets}
        return last.fallback_calibration == self.fallbacks and last.offset_by_stratum == offsets

    @property
    def moves(self) -> dict[str, float]:
        """How far it moves each arm's mean from the last version that a person accepted."""
        return {name: arm.mean - self.accepted.arms[name].mean for name, arm in self.after.arms.items()}

    @property
    def largest(self) -> tuple[str, float]:
        """The arm that is moved furthest, and by how much; ("", 0) without arms."""
        return max(self.moves.items(), key=lambda move: (abs(move[1]), move[0]), default=("", 0.0))

    @property
    def comes_by_itself(self) -> bool:
        """Whether no person needs to look at it: one accepted a version before, and no arm is far from that."""
        if self.last is None or self.last.fallback_calibration is None:
            return False
        return all(abs(move) <= MAX_AUTOMATIC_MOVE for move in self.moves.values())

    @property
    def waits(self) -> bool:
        """Whether this waits for a person: it is not used yet, calibration is on, and it does not come by itself.

        A bandit that never had a calibration waits once it has rewards.
        """
        if self.last is None:
            return any(evidence.n for arm in self.now.arms.values() for evidence in arm.evidence)
        return self.last.enabled and self.is_fitted and not self.is_in_force and not self.comes_by_itself

    @property
    def is_fitted(self) -> bool:
        """Whether any pair is behind it."""
        return bool(self.pairs or self.human_pairs)

    @property
    def fingerprint(self) -> str:
        """A digest of exactly this calibration."""
        content = [self.fallbacks.as_json(), [each.as_json() for each in self.offsets]]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def proposal(
    name: str, now: dt.datetime, judgements: Judgements | None = None, current: EffectivePolicy | None = None
) -> CalibrationProposal:
    """The next calibration of this bandit, fitted to today's pairs, and what it would change. Raises UnknownBandit.

    `judgements` and the policy that the bandit is read by (`current`) are loaded if they aren't passed in.
    """
    current = current or effective_policy(Bandit.objects.named(name))
    judgements = judgements or latest_judgements(now)
    bandit, last = current.bandit, current.calibration
    fallbacks = calibration.fit(judgements.pairs.get(bandit.name, ()), SOURCES)
    pairs = human_pairs(bandit, fallbacks)
    rewards = Counter[Stratum]()
    for kind, (n, *_) in current.rows(site_day(now)).totals():
        if kind.source not in {ABSTAINED, Source.HUMAN}:
            rewards[kind.arm, kind.source, kind.stratum] += n
    offsets = _fit_offsets(pairs, current, rewards)
    proposed = CalibrationVersion(fallbacks=fallbacks.as_json(), offsets=[each.as_json() for each in offsets])
    outlooks = what_if_calibrated(current, [last, proposed, versions.accepted_calibration(bandit)], now)
    return CalibrationProposal(
        bandit=bandit,
        fallbacks=fallbacks,
        offsets=offsets,
        rewards=rewards,
        human_pairs=len(pairs),
        target=judgements.target,
        read_at=judgements.read_at,
        version=1 if last is None else last.version + 1,
        last=last,
        now=outlooks[0],
        after=outlooks[1],
        accepted=outlooks[2],
    )


def _fit_offsets(
    pairs: Sequence[MachineHumanPair], current: EffectivePolicy, rewards: Mapping[Stratum, int]
) -> tuple[Offset, ...]:
    """The offset of every arm and every (source, stratum) that has rewards or pairs; empty without pairs.

    Arms without such rewards are included, since their first one may be to come.
    """
    if not pairs:
        return ()
    kinds = {(source, name) for _arm, source, name in rewards}
    kinds |= {(pair.source, pair.stratum) for pair in pairs}
    return machine_human.fit(
        pairs, {(arm.name, *kind) for arm in current.arms for kind in kinds if kind[0] != Source.HUMAN}
    )


def put_in_force(
    proposed: CalibrationProposal, by: User, *, version: int, fingerprint: str, note: str = ""
) -> CalibrationVersion:
    """Append the proposed version under the user's name.

    `version` and `fingerprint` are of the proposal that the user saw. Raises StaleVersion if it has changed since.
    """
    if fingerprint != proposed.fingerprint:
        raise StaleVersion(
            "Nothing was saved, because new grades have changed this calibration since the page was opened. Check "
            "the new version, then decide again."
        )
    return _put(proposed, version=version, by=by.get_username(), accepted=True, note=note)


def switch_off(name: str, by: User, *, version: int, note: str = "") -> CalibrationVersion:
    """Append a version under which every reward is read as given, under the user's name. Raises StaleVersion."""
    return versions.switch_off_calibration(name, version=version, by=by.get_username(), note=note)


def renew(now: dt.datetime) -> list[CalibrationVersion]:
    """Fit every bandit's calibration again, put in force those that need no person, and return these. Runs at night."""
    renewed = []
    judgements = read_judgements(now)
    for bandit in Bandit.objects.that_learn():
        last = versions.latest(bandit.calibrations.all())
        if last is None or not last.enabled:
            continue
        proposed = proposal(bandit.name, now, judgements)
        if proposed.is_fitted and not proposed.is_in_force and proposed.comes_by_itself:
            renewed.append(_put(proposed, version=proposed.version, by=SITE, accepted=False))
    return renewed


def _put(proposed: CalibrationProposal, *, version: int, by: str, accepted: bool, note: str = "") -> CalibrationVersion:
    return versions.set_calibration(
        proposed.bandit.name,
        proposed.fallbacks,
        proposed.offsets,
        version=version,
        by=by,
        target=str(proposed.target or ""),
        accepted=accepted,
        note=note,
    )


class CalibrationReader:
    """Reads grades by the current calibration of one bandit. Raises UnknownBandit.

    Two queries, one more for the first weight, and up to two for that of a fallback in each arm.
    """

    def __init__(self, bandit: str = "category") -> None:
        self._row = Bandit.objects.named(bandit)
        current = versions.current_calibration(self._row)
        self.bandit, self.version = bandit, 0 if current is None else current.version
        self.fallbacks = None if current is None else current.fallback_calibration
        # By arm. Pages weigh many rewards of an arm: without this, an alarm's page makes two queries for each.
        self._verdicts: dict[str, int] = {}

    def weight(self, arm: str, source: str) -> float:
        """How much a session of this source counts in this arm now, before any cap."""
        weight = self._policy_weights.get(source, 0.0)
        if self.fallbacks is None or source not in SOURCES:
            return weight
        if arm not in self._verdicts:
            self._verdicts[arm] = verdicts_of(self._row, arm, self._policy_weights, site_day(timezone.now()))
        return weight * fallback_share(self._verdicts[arm])

    def weight_of(self, entry: LedgerEntry) -> float:
        """How much a reward of this bandit counts now, in [0, 1], before any cap: its source's weight in the arm,
        reduced by its standing.
        """
        standing_weight = settings.STANDING_WEIGHTS.get(entry.grader.standing, 1.0)
        return self.weight(entry.arm.name, entry.grader.source) * standing_weight

    def read(self, source: str, value: float) -> Calibrated | None:
        """A fallback's grade `value` on the judge's scale. None without a calibration or judged sessions like it."""
        kind = None if self.fallbacks is None else self.fallbacks.by_kind.get((source, ""))
        if kind is None:
            return None
        return Calibrated(
            value=kind.read(value), half_width=NORMAL_90 * kind.deviation, pairs=kind.n, version=self.version
        )

    def calibrate(self, session: Session, grade: Grade, value: float | None = None) -> Calibrated | None:
        """A fallback's grade of this session, or the `value` that it was settled at, on the judge's scale.

        None if nothing maps it: no value, no category, another source, or no judged session like it yet.
        """
        value = grade.value if value is None else value
        if value is None or session.category is None:
            return None
        return self.read(grade.source, value)

    @cached_property
    def _policy_weights(self) -> dict[str, float]:
        return weights_of(version_of(self._row))


def calibrate(session: Session, grade: Grade) -> Calibrated | None:
    """`CalibrationReader.calibrate` for a single grade."""
    if session.category is None or grade.source not in SOURCES:
        return None
    return CalibrationReader().calibrate(session, grade)
