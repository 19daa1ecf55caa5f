"""What the pages say of the lessons, and which are decided. Whoever asks has them read for themselves; on a large site
that takes long, so that the worker reads them, and what it read last is shown to all.
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
from grading.reward.lessons import reading
from grading.reward.lessons.figures import LessonFigures
from grading.reward.lessons.lesson import Lesson, Sample

# From so many rows to be read on, a site is large: sessions, lessons that matched them, and draws. Who asks which are
# decided, at every draw, waits for a reading of a smaller one: of 4,000 rows it takes 45 ms of processor time.
LARGE = 2_000
# What grows with the site and is read whole.
READ = (Session, SessionLesson, Assignment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The figures of each lesson, by its arm; `bar` is the e-value from which one of them may be called something, and
    `baseline` what was taken out of their rewards, None for nothing. Where they were read before somebody asked,
    `read_at` says when.
    """

    figures: Mapping[int, LessonFigures]
    bar: float
    baseline: Baseline | None
    read_at: dt.datetime | None = None

    def of(self, lesson: Arm) -> LessonFigures:
        """The figures of this lesson; of one that is newer than the reading, those of one without sessions."""
        return self.figures.get(lesson.pk) or _none(lesson, self.bar)


def overview(bandit: Bandit, now: dt.datetime, *, closely: Arm | None = None) -> Overview:
    """Every lesson of this bandit; one of them `closely`."""
    return _stored(bandit) or _read(bandit, now, [] if closely is None else [closely.pk])


def decided(bandit: Bandit, now: dt.datetime) -> frozenset[str]:
    """The lessons with a verdict, by name; none where the policy holds out all alike, decided or not.

    `bandit` is to be fresh from the database, its baseline included.
    """
    if version_of(bandit).holdout_decided is None:
        return frozenset()
    stored = StoredReading.objects.filter(name=_name(bandit)).values_list("value__decided", flat=True).first()
    if stored is None:
        return reading.decided(bandit, now)
    return frozenset(bandit.arms.filter(pk__in=stored).values_list("name", flat=True))


def read_large(now: dt.datetime) -> None:
    """Read the lessons anew where the site is large and something is new to them."""
    last = _last_keys()
    for bandit in Bandit.objects.filter(kind=BanditKind.MANY).select_related("baseline"):
        if not _is_large(last) or _stored(bandit) is None:
            StoredReading.objects.filter(name=_name(bandit)).delete()
        if _is_large(last):
            StoredReading.objects.renew(_name(bandit), _basis(bandit, last, now), partial(_value, bandit, now), now)


def _name(bandit: Bandit) -> str:
    return f"lessons of {bandit.name}"


def _value(bandit: Bandit, now: dt.datetime) -> dict[str, Any]:
    """The figures of every lesson, and the keys of the arms that are decided, which draws ask for alone."""
    figures = _read(bandit, now, bandit.arms.values_list("pk", flat=True))
    return {
        "decided": [lesson for lesson, each in figures.figures.items() if each.causal.verdict.decides],
        "overview": _shape().dump_python(figures, mode="json"),
    }


def _is_large(last: Sequence[int]) -> bool:
    """Whether so much is to be read that it takes long; not without lessons, however many sessions there are."""
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
    """What the worker read last; None on a site that is not large, or where another version of the code wrote it."""
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
    """What the figures follow from, as far as that is cheap to tell: what else changes shows with the next of these."""
    learnt = None if bandit.baseline is None else bandit.baseline.revision
    return repr((bandit.revision, learnt, last, Erasure.objects.count(), site_day(now).isoformat()))


def _last_keys() -> list[int]:
    """Of the sessions, of the lessons that matched them, and of the draws; 0 for none."""
    last = [model.objects.order_by("-pk").values_list("pk", flat=True).first() for model in READ]
    return [key or 0 for key in last]


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
