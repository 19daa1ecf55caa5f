"""The figures of all lessons, and which lessons are decided, as pages and draws read them.

A small site computes them at each request. On a large one that takes too long, so the worker stores them.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bandit.core.residual import Baseline
from bandit.models import Arm, Assignment, Bandit, BanditKind, Erasure
from bandit.reading import site_day, version_of
from grading.models import Session, SessionLesson, StoredReading
from grading.models.readings import last_keys
from grading.reward.lessons.figures import Lesson, LessonFigures
from grading.reward.lessons.loading import load_decided, load_lessons

# A site with this many sessions, matched lessons and draws is large. On a smaller one every draw loads them all, to
# know which lessons are decided: 45 ms of processor time for 4,000 rows.
LARGE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The figures of each lesson, by its arm's primary key.

    `bar` is the least e-value for a verdict; `baseline` is what was subtracted from the rewards, None for nothing;
    `read_at` is the time of a stored overview, None for one computed now.
    """

    figures: Mapping[int, LessonFigures]
    bar: float
    baseline: Baseline | None
    read_at: dt.datetime | None = None

    def for_lesson(self, arm: Arm) -> LessonFigures:
        """The lesson's figures; for a lesson that is newer than the overview, those of one without sessions."""
        return self.figures.get(arm.pk) or Lesson.without_sessions(self.bar).figures()


STORED_FORM = TypeAdapter(Overview)


def load_overview(bandit: Bandit, now: dt.datetime, *, closely: Arm | None = None) -> Overview:
    """The stored overview; if there is none, as on a small site, one computed now.

    A stored one has the categories and heeded draws of every lesson, a computed one only those of the lesson `closely`.
    """
    return _stored(bandit) or _compute(bandit, now, closely=[] if closely is None else [closely.pk])


def decided(bandit: Bandit, now: dt.datetime) -> frozenset[str]:
    """The names of the lessons with a verdict; none if the policy holds out decided lessons like all others.

    `bandit` must be freshly loaded, with its baseline.
    """
    if version_of(bandit).holdout_decided is None:
        return frozenset()
    stored = StoredReading.objects.filter(name=_name(bandit)).values_list("value__decided", flat=True).first()
    if stored is None:
        return load_decided(bandit, now)
    return frozenset(bandit.arms.filter(pk__in=stored).values_list("name", flat=True))


def store_overviews(now: dt.datetime) -> None:
    """On a large site, store the overviews again if something changed; on a small one, delete stored overviews."""
    last = last_keys(Session, SessionLesson, Assignment)
    # A site without lessons is never large: then nothing is loaded.
    is_large = any(last[1:]) and sum(last) >= LARGE
    for bandit in Bandit.objects.filter(kind=BanditKind.MANY).select_related("baseline"):
        # An overview in another form (`_stored` is None) is deleted, too: `renew` would keep it while no input changes.
        if not is_large or _stored(bandit) is None:
            StoredReading.objects.filter(name=_name(bandit)).delete()
        if is_large:
            # Only what is cheap to load. Other changes only show once one of these changes.
            baseline_revision = None if bandit.baseline is None else bandit.baseline.revision
            day = site_day(now).isoformat()
            inputs = repr((bandit.revision, baseline_revision, last, Erasure.objects.count(), day))
            StoredReading.objects.renew(_name(bandit), inputs, partial(_value, bandit, now), now)


def _name(bandit: Bandit) -> str:
    return f"lessons of {bandit.name}"


def _value(bandit: Bandit, now: dt.datetime) -> dict[str, Any]:
    """The value to store: the overview, and the primary keys of the decided lessons, which is all that a draw needs."""
    overview = _compute(bandit, now, closely=list(bandit.arms.values_list("pk", flat=True)))
    return {
        "decided": [lesson for lesson, figures in overview.figures.items() if figures.causal.verdict.decides],
        "overview": STORED_FORM.dump_python(overview, mode="json"),
    }


def _stored(bandit: Bandit) -> Overview | None:
    """The stored overview; None on a small site, or if another version of the code stored it in another form."""
    row = StoredReading.objects.filter(name=_name(bandit)).first()
    if row is None:
        return None
    try:
        return replace(STORED_FORM.validate_python(row.value["overview"]), read_at=row.read_at)
    except (KeyError, ValidationError):
        return None


def _compute(bandit: Bandit, now: dt.datetime, *, closely: Sequence[int]) -> Overview:
    """The overview as of now, with all details of the lessons whose primary keys are in `closely`."""
    loaded = load_lessons(bandit, now)
    return Overview(
        figures={arm.pk: lesson.figures(closely=arm.pk in closely) for arm, lesson in loaded.lessons.items()},
        bar=loaded.bar,
        baseline=loaded.baseline,
    )
