"""Recalibration: by how much each stratum's machine rewards are off, from people's grades, for a bandit's rectifier.

The labels are people's, from the random slice and nowhere else: flags say what shocked somebody, not how far a grader
is off (I146). Correcting an arm along its own axis is allowed for that reason alone: doing so from machines' data, as a
score within each arm does, takes away what tells the arms apart (I71). Each source has an offset of its own, so that
unlike judges' levels are never averaged (I37); the ledger keeps what they said, and switching off gives it back.

An answer's weight is that of the slice, 1/probability. Which of the slice's sessions people take first is up to the
queue's order, by stratum and age; within a stratum that says nothing of how far the machine was off.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F
from django.db.models.functions import Coalesce

from bandit import rectifying
from bandit.core.recalibration import Offset, Pair, fit
from bandit.core.rectify import Stratum, rectified
from bandit.core.table import MICRO, Row
from bandit.models import Bandit, Rectifier
from bandit.reading import policy_of, rows_of, site_day
from bandit.selection import Outlook, what_if_rectified
from bandit.versions import StaleVersion
from grading.core.vocabulary import Source
from grading.models import ReviewAnswer, Settlement
from grading.models.review import ReviewAnswerQuerySet

# The session's column that names the arm of each bandit that learns from sessions.
ARMS = {"category": "session__category__name", "harness": "session__harness__name"}
# What a settlement's columns say of a reward.
REWARD = ("source", "value", "weight")
Reward = Sequence[Any]
NO_REWARD: Reward = (None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What an offset does: to how many `rewards`, and to their mean (None without any)."""

    offset: Offset
    rewards: int
    before: float | None
    after: float | None


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What people's grades say by now, and what holds: `version` is the next, `held` the last one put here.

    `strata` are those that have pairs or rewards; `offsets` holds the others' too. `without` and `rectified` are the
    bandit's outlook without any rectifier and with these offsets.
    """

    bandit: Bandit
    offsets: tuple[Offset, ...]
    strata: tuple[Moved, ...]
    pairs: int
    version: int
    held: Rectifier | None
    without: Outlook
    rectified: Outlook

    @property
    def is_in_force(self) -> bool:
        """Whether these very offsets are in force already."""
        held = self.held
        return held is not None and held.enabled and rectifying.offsets_of(held) == _by_key(self.offsets)

    @property
    def fingerprint(self) -> str:
        """A name for exactly these offsets."""
        text = json.dumps([each.as_json() for each in self.offsets], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def pairs(bandit: str) -> list[Pair]:
    """Each session of the random slice that a machine and people gave a reward: one pair a session, in two queries.

    The machine's is what the first person had before them, or else its last one; without weight it is none. The
    human's is the mean of the grades that hold: each as it was before the judge was revealed, where it was. Nothing
    for a bandit that does not learn from sessions.
    """
    if bandit not in ARMS:
        return []
    answers = ReviewAnswer.objects.holding().with_values().filter(slice_probability__isnull=False).order_by("pk")
    rows = answers.annotate(arm=F(ARMS[bandit]), human=Coalesce("blind_value", "value")).exclude(arm=None)
    columns = ("session", "human", "arm", "stratum", "slice_probability", *(f"settlement__{name}" for name in REWARD))
    said: dict[int, list[float]] = defaultdict(list)
    first: dict[int, Sequence[Any]] = {}
    for session, human, *seen in rows.values_list(*columns):
        said[session].append(human)
        first.setdefault(session, seen)
    machines = _machines(answers)
    made = (_pair(fmean(said[session]), *first[session], last=machines.get(session)) for session in said)
    return [pair for pair in made if pair is not None]


def _pair(human: float, arm: str, stratum: str, probability: float, *seen: Any, last: Reward | None) -> Pair | None:
    source, machine, _ = seen if _is_machines(*seen) else last or NO_REWARD
    if machine is None:
        return None
    return Pair(arm=arm, source=source, stratum=stratum, machine=machine, human=human, probability=probability)


def _machines(answers: ReviewAnswerQuerySet) -> dict[int, Reward]:
    """Each answered session's last reward that a machine gave, with weight."""
    held = Settlement.objects.filter(session__in=answers.values("session")).order_by("session", "revision")
    return {session: reward for session, *reward in held.values_list("session", *REWARD) if _is_machines(*reward)}


def _is_machines(source: str | None, value: float | None, weight: float | None) -> bool:
    return source != Source.HUMAN and value is not None and bool(weight)


def proposal(name: str, now: datetime) -> Proposal:
    """What could be put in force on this bandit at `now`. Raises UnknownBandit."""
    bandit = Bandit.objects.named(name)
    held, found, rows = rectifying.latest(bandit), pairs(name), rows_of(bandit, policy_of(bandit), site_day(now))
    offsets = fit(found, _strata(bandit, rows, found))
    without, with_them = what_if_rectified(name, _by_key(offsets), now)
    return Proposal(
        bandit=bandit,
        offsets=offsets,
        strata=tuple(each for each in _moved(offsets, rows) if each.rewards or each.offset.pairs),
        pairs=len(found),
        version=1 if held is None else held.version + 1,
        held=held,
        without=without,
        rectified=with_them,
    )


def put_in_force(proposed: Proposal, by: User, *, version: int, fingerprint: str, note: str = "") -> Rectifier:
    """Put what `proposed` holds in force under the reviewer's name, if it is what they saw.

    Raises StaleVersion where another version or another grade came in between, ValueError where there is nothing.
    """
    if fingerprint != proposed.fingerprint:
        raise StaleVersion(
            "Grades came in since the page was opened, and the offsets are others now. Nothing was saved; look again."
        )
    name = proposed.bandit.name
    return rectifying.put_in_force(name, proposed.offsets, version=version, by=by.get_username(), note=note)


def switch_off(name: str, by: User, *, version: int, note: str = "") -> Rectifier:
    """Move nothing any more, under a person's name. Raises StaleVersion."""
    return rectifying.switch_off(name, version=version, by=by.get_username(), note=note)


def _strata(bandit: Bandit, rows: Iterable[Row], found: Iterable[Pair]) -> set[Stratum]:
    """Every arm with every (source, stratum) that has rewards or pairs: also those whose first reward is to come."""
    kinds = {(row.source, row.stratum) for row in rows} | {(pair.source, pair.stratum) for pair in found}
    arms = list(bandit.arms.values_list("name", flat=True))
    return {(arm, *kind) for arm in arms for kind in kinds if kind[0] != Source.HUMAN}


def _moved(offsets: Iterable[Offset], rows: Iterable[Row]) -> list[Moved]:
    rows, offsets = list(rows), list(offsets)
    was, will = _sums(rows), _sums(rectified(rows, _by_key(offsets)))
    return [
        Moved(
            offset=each,
            rewards=was[each.key][0],
            before=_mean(*was[each.key]),
            after=_mean(*will[each.key]),
        )
        for each in offsets
    ]


def _sums(rows: Iterable[Row]) -> dict[Stratum, tuple[int, int]]:
    sums: dict[Stratum, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in rows:
        n, s = sums[row.arm, row.source, row.stratum]
        sums[row.arm, row.source, row.stratum] = (n + row.n, s + row.s)
    return sums


def _mean(n: int, s: int) -> float | None:
    return s / n / MICRO if n else None


def _by_key(offsets: Iterable[Offset]) -> dict[Stratum, float]:
    return {each.key: each.offset for each in offsets}
