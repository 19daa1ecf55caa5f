"""The figures of the lessons, and which lessons are decided. On a small site they are computed when somebody asks; on a
large one that takes long, so the worker stores them and everybody gets those.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from bandit.core.betting import Draws
from bandit.core.residual import Baseline
from bandit.models import Arm, Assignment, Bandit, BanditKind, Erasure
from bandit.reading import site_day, version_of
from grading.models import Session, SessionLesson, StoredReading
from grading.models.readings import last_keys
from grading.reward.lessons import reading
from grading.reward.lessons.figures import LessonFigures
from grading.reward.lessons.lesson import Lesson, Sample

# A site is large from so many sessions, matched lessons and draws on. On a smaller one every draw reads them all, to
# know which lessons are decided: 45 ms of processor time for 4,000 rows.
LARGE = 2_000
# The tables of which all rows are read.
READ = (Session, SessionLesson, Assignment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The figures of each lesson, by its arm's primary key.

    `bar` is the least e-value for a verdict; `baseline` is what was subtracted from the rewards, None for nothing;
    `read_at` is the time of a stored reading, None for one computed now.
    """

    figures: Mapping[int, LessonFigures]
    bar: float
    baseline: Baseline | None
    read_at: dt.datetime | None = None

    def of(self, lesson: Arm) -> LessonFigures:
        """The lesson's figures; for a lesson that is newer than the reading, those of one without sessions."""
        return self.figures.get(lesson.pk) or _none(lesson, self.bar)


def overview(bandit: Bandit, now: dt.datetime, *, closely: Arm | None = None) -> Overview:
    """Every lesson of this bandit; with all details for the lesson `closely`, or for all in a stored reading."""
    return _stored(bandit) or _read(bandit, now, [] if closely is None else [closely.pk])


def decided(bandit: Bandit, now: dt.datetime) -> frozenset[str]:
    """The names of the lessons with a verdict; none if the policy holds out decided lessons like all others.

    `bandit` must be freshly loaded, with its baseline.
    """
    if version_of(bandit).holdout_decided is None:
        return frozenset()
    stored = StoredReading.objects.filter(name=_name(bandit)).values_list("value__decided", flat=True).first()
    if stored is None:
        return reading.decided(bandit, now)
    return frozenset(bandit.arms.filter(pk__in=stored).values_list("name", flat=True))


def read_large(now: dt.datetime) -> None:
    """On a large site, store the figures again if something changed since; on a small one, delete stored figures."""
    last = last_keys(*READ)
    for bandit in Bandit.objects.filter(kind=BanditKind.MANY).select_related("baseline"):
        if not _is_large(last) or _stored(bandit) is None:
            StoredReading.objects.filter(name=_name(bandit)).delete()
        if _is_large(last):
            StoredReading.objects.renew(_name(bandit), _basis(bandit, last, now), partial(_value, bandit, now), now)


def _name(bandit: Bandit) -> str:
    return f"lessons of {bandit.name}"


def _value(bandit: Bandit, now: dt.datetime) -> dict[str, Any]:
    """The figures of every lesson; beside them the keys of the decided ones, which are all that a draw needs."""
    figures = _read(bandit, now, bandit.arms.values_list("pk", flat=True))
    return {
        "decided": [lesson for lesson, each in figures.figures.items() if each.causal.verdict.decides],
        "overview": _shape().dump_python(figures, mode="json"),
    }


def _is_large(last: Sequence[int]) -> bool:
    """Whether reading all rows takes long. A site without lessons is never large: then nothing is read."""
    sessions, *lessons = last
    return any(lessons) and sessions + sum(lessons) >= LARGE


def _read(bandit: Bandit, now: dt.datetime, closely: Iterable[int]) -> Overview:
    found, close = reading.read(bandit, now), frozenset(closely)
    return Overview(
        figures={each.arm.pk: each.figures(closely=each.arm.pk in close) for each in found.lessons},
        bar=found.bar,
        baseline=found.baseline,
    )


def _stored(bandit: Bandit) -> Overview | None:
    """The stored reading; None on a small site, or if another version of the code wrote it in another form."""
    row = StoredReading.objects.filter(name=_name(bandit)).first()
    if row is None:
        return None
    try:
        return replace(_shape().validate_python(row.value["overview"]), read_at=row.read_at)
    except (KeyError, ValidationError):
        return None


@cache
def _shape() -> TypeAdapter[Overview]:
    return TypeAdapter(Overview)


def _basis(bandit: Bandit, last: Sequence[int], now: dt.datetime) -> str:
    """What the figures are computed from, as far as that is cheap to read. Other changes show at the next of these."""
    learnt = None if bandit.baseline is None else bandit.baseline.revision
    return repr((bandit.revision, learnt, last, Erasure.objects.count(), site_day(now).isoformat()))


def _none(lesson: Arm, bar: float) -> LessonFigures:
    nothing = np.zeros(0, dtype=np.int64)
    words = nothing.astype(np.str_)
    sample = Sample(session=nothing, agent=nothing, day=nothing, context=words, outcome=nothing.astype(np.float64))
    return Lesson(
        arm=lesson,
        sample=sample,
        at=nothing,
        taken=nothing.astype(bool),
        draws=Draws.none(),
        context=words,
        bar=bar,
        next_chance=0.0,
        rewards=0,
        credit=0.0,
    ).figures()
