"""Recalibration: by how much each stratum's machine rewards are off, from people's grades, for a bandit's rectifier.

The labels are people's blind grades, from the random slice and nowhere else: flags say what shocked somebody, not how
far a grader is off, and who accepts a number that is on the screen, or grades with the judge's answer in view, repeats
much of it. Correcting an arm along its own axis is allowed for that reason alone: doing so from machines' data, as a
score within each arm does, takes away what tells the arms apart. Each source has an offset of its own, so that
unlike judges' levels are never averaged; the ledger keeps what they said, and switching off gives it back.

Where a calibration reads a source on the judge's scale, people are compared with what that makes of its grades, and the
offsets hold under that version and those that came by themselves after it: under another, or none, they rest.

An answer's weight is that of the slice, 1/probability. Which of the slice's sessions people take first is up to the
queue's order, by stratum and age; within a stratum that says nothing of how far the machine was off.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from statistics import fmean
from typing import Any

from django.contrib.auth.models import User

from bandit import versions
from bandit.core.calibration import CalibrationLine, Key, find_line
from bandit.core.evidence import calibration_lines
from bandit.core.recalibration import MachineHumanPair, Offset, fit
from bandit.core.rectify import Stratum, rectified
from bandit.core.table import ABSTAINED, MICRO, RewardRows, RowKind
from bandit.models import Bandit, CalibrationVersion, Rectifier
from bandit.reading import EffectivePolicy, effective_policy, site_day
from bandit.selection import Outlook, what_if_rectified
from bandit.versions import StaleVersion
from grading.models import ReviewAnswer, Settlement
from grading.vocabulary import Source

# The session's column that names the arm of each bandit that learns from sessions.
ARMS = {"category": "session__category__name", "harness": "session__harness__name"}
# What a settlement's columns say of a reward: the last two name the grade's line.
REWARD = ("source", "value", "weight", "grade__version", "grade__view")
NOTHING = (0, 0.0)


class AsRead:
    """What the calibration in force makes of machines' grades on the day `today`, before any rectifier."""

    def __init__(self, held: EffectivePolicy, today: date) -> None:
        policy, names = held.policy, tuple(sorted(arm.name for arm in held.arms))
        self._lines = {line.key: line for line in calibration_lines(held.rows(today), names, policy, today)}
        self._sources = policy.scale.sources if policy.scale is not None and self._lines else ()

    def maps(self, source: str) -> bool:
        """Whether grades of this source are read by lines, and by nothing else."""
        return source in self._sources

    def value(self, arm: str, key: Key, value: float) -> float | None:
        """A grade of (source, version, view) as it is read, in [0, 1]; None where it counts nothing."""
        if not self.maps(key[0]):
            return value
        line = self._line(key)
        return None if line is None else line.clipped(arm, value)

    def sum(self, kind: RowKind, n: int, s: int) -> tuple[int, float]:
        """How many of n rewards that lines read count, and Σr' in micro-units, not clipped; s is Σr."""
        line = self._line((kind.source, kind.version, kind.view))
        return (0, 0.0) if line is None else (n, line.slope * s + line.value(kind.arm, 0.0) * n * MICRO)

    def _line(self, key: Key) -> CalibrationLine | None:
        line = find_line(self._lines, key)
        return None if line is None or line.backwards else line


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What an offset does: to how many `rewards`, and to their mean (None without any)."""

    offset: Offset
    rewards: int
    before: float | None
    after: float | None


@dataclass(frozen=True, kw_only=True)
class ProposedRectifier:
    """What people's grades say by now, and what holds: `version` is the next, `held` the last one put here.

    `strata` are those that have pairs or rewards; `offsets` holds the others' too. `without` and `rectified` are the
    bandit's outlook without any rectifier and with these offsets. `calibration` is the one in force.
    """

    bandit: Bandit
    offsets: tuple[Offset, ...]
    strata: tuple[Moved, ...]
    pairs: int
    version: int
    held: Rectifier | None
    calibration: CalibrationVersion | None
    without: Outlook
    rectified: Outlook

    @property
    def is_in_force(self) -> bool:
        """Whether these very offsets are in force already."""
        held = self.held
        counts = {} if held is None or not held.enabled else versions.effective_offsets(held, self.calibration)
        return bool(counts) and counts == _by_key(self.offsets)

    @property
    def resting(self) -> dict[str, int]:
        """How many offsets of the version in force rest, by source: they were fitted under another calibration."""
        held = self.held
        if held is None or not held.enabled:
            return {}
        counts = versions.effective_offsets(held, self.calibration)
        return dict(Counter(key[1] for key in held.offset_by_stratum if key not in counts))

    @property
    def under(self) -> int:
        """The version of the calibration in force, 0 for none."""
        return 0 if self.calibration is None else self.calibration.version

    @property
    def fingerprint(self) -> str:
        """A name for exactly these offsets under this calibration."""
        text = json.dumps([self.under, *(each.as_json() for each in self.offsets)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def pairs(name: str, now: datetime) -> list[MachineHumanPair]:
    """Each session of the random slice that a machine and people gave a reward: one pair a session.

    The machine's is what the first person had before them, or else its last one, as the calibration in force reads it;
    without weight it is none. The human's is the mean of the blind grades that hold. Nothing for a bandit that does not
    learn from sessions. Raises UnknownBandit.
    """
    bandit = Bandit.objects.named(name)
    return _pairs(bandit, AsRead(effective_policy(bandit), site_day(now)))


def _pairs(bandit: Bandit, read: AsRead) -> list[MachineHumanPair]:
    """The pairs in the order of the first answers. Two queries."""
    if bandit.name not in ARMS:
        return []
    values: dict[int, list[float]] = defaultdict(list)
    first: dict[int, tuple[str, str, float]] = {}
    rewards: dict[int, Sequence[Any]] = {}
    arm_column, shown_reward = ARMS[bandit.name], [f"settlement__{column}" for column in REWARD]
    answers = ReviewAnswer.objects.blind().exclude(**{arm_column: None}).order_by("pk")
    for session, value, arm, stratum, probability, *reward in answers.values_list(
        "session", "blind_value", arm_column, "stratum", "slice_probability", *shown_reward
    ):
        values[session].append(value)
        if session not in first:
            first[session], rewards[session] = (arm, stratum, probability), reward
    # Where a person had no machine's reward before them, its last one counts.
    unseen = [session for session, reward in rewards.items() if not _is_machines(*reward[:3])]
    settlements = Settlement.objects.filter(session__in=unseen).order_by("session", "revision")
    for session, *reward in settlements.values_list("session", *REWARD):
        if _is_machines(*reward[:3]):
            rewards[session] = reward
    machine_human_pairs = []
    for session, (arm, stratum, probability) in first.items():
        source, value, weight, version, view = rewards[session]
        if not _is_machines(source, value, weight):
            continue
        machine = read.value(arm, (source, version or "", view or ""), value)
        if machine is not None:
            human = fmean(values[session])
            pair = MachineHumanPair(
                arm=arm, source=source, stratum=stratum, machine=machine, human=human, probability=probability
            )
            machine_human_pairs.append(pair)
    return machine_human_pairs


def _is_machines(source: str | None, value: float | None, weight: float | None) -> bool:
    return source != Source.HUMAN and value is not None and bool(weight)


def proposal(name: str, now: datetime, held: EffectivePolicy | None = None) -> ProposedRectifier:
    """What could be put in force on this bandit at `now`; `held` is what it is read by, where that is known already.
    Raises UnknownBandit.
    """
    held = held or effective_policy(Bandit.objects.named(name))
    bandit, today = held.bandit, site_day(now)
    rows, read = held.rows(today), AsRead(held, today)
    found = _pairs(bandit, read)
    # Every arm with every (source, stratum) that has rewards or pairs: also those whose first reward is to come.
    kinds = {(kind.source, kind.stratum) for kind in rows.kinds if kind.source != ABSTAINED}
    kinds |= {(pair.source, pair.stratum) for pair in found}
    offsets = fit(found, {(arm.name, *kind) for arm in held.arms for kind in kinds if kind[0] != Source.HUMAN})
    without, with_them = what_if_rectified(held, _by_key(offsets), now)
    return ProposedRectifier(
        bandit=bandit,
        offsets=offsets,
        strata=tuple(each for each in _moved(offsets, rows, read) if each.rewards or each.offset.pairs),
        pairs=len(found),
        version=1 if held.rectifier is None else held.rectifier.version + 1,
        held=held.rectifier,
        calibration=versions.if_enabled(held.calibration),
        without=without,
        rectified=with_them,
    )


def put_in_force(proposed: ProposedRectifier, by: User, *, version: int, fingerprint: str, note: str = "") -> Rectifier:
    """Put what `proposed` holds in force under the reviewer's name, if it is what they saw.

    Raises StaleVersion where another version or another grade came in between, ValueError where there is nothing.
    """
    if fingerprint != proposed.fingerprint:
        raise StaleVersion(
            "Grades came in or the calibration changed since the page was opened, and the offsets are others now. "
            "Nothing was saved; look again."
        )
    name = proposed.bandit.name
    return versions.set_rectifier(name, proposed.offsets, version=version, by=by.get_username(), note=note)


def switch_off(name: str, by: User, *, version: int, note: str = "") -> Rectifier:
    """Move nothing any more, under a person's name. Raises StaleVersion."""
    return versions.switch_off_rectifier(name, version=version, by=by.get_username(), note=note)


def _moved(offsets: Iterable[Offset], rows: RewardRows, read: AsRead) -> list[Moved]:
    offsets, maps = list(offsets), rows.mask(lambda kind: read.maps(kind.source))
    plain = rows.select(~maps)
    mapped = _sums((kind, *read.sum(kind, n, s)) for kind, (n, s, *_) in rows.select(maps).totals())
    was = _sums((kind, n, s) for kind, (n, s, *_) in plain.totals()) | mapped
    will = _sums((kind, n, s) for kind, (n, s, *_) in rectified(plain, _by_key(offsets)).totals())
    # What lines read is moved and clipped once, as a whole.
    will |= {
        each.key: (mapped[each.key][0], mapped[each.key][1] + each.offset * mapped[each.key][0] * MICRO)
        for each in offsets
        if each.key in mapped
    }
    return [
        Moved(
            offset=each,
            rewards=was.get(each.key, NOTHING)[0],
            before=_mean(*was.get(each.key, NOTHING)),
            after=_mean(*will.get(each.key, NOTHING)),
        )
        for each in offsets
    ]


def _sums(counted: Iterable[tuple[RowKind, int, float]]) -> dict[Stratum, tuple[int, float]]:
    sums: dict[Stratum, tuple[int, float]] = {}
    for kind, count, value in counted:
        n, s = sums.get((kind.arm, kind.source, kind.stratum), NOTHING)
        sums[kind.arm, kind.source, kind.stratum] = (n + count, s + value)
    return sums


def _mean(n: int, s: float) -> float | None:
    return min(max(s / n / MICRO, 0.0), 1.0) if n else None


def _by_key(offsets: Iterable[Offset]) -> dict[Stratum, float]:
    return {each.key: each.offset for each in offsets}
