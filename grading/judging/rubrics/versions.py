"""Rubrics as rows: saving a version, activating it, and the figures of each."""

import datetime as dt
from collections import defaultdict
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Sum

from bandit.models import Erasure
from grading.judging.core.prompt import rubric_sha256
from grading.judging.rubrics import examples
from grading.judging.rubrics.verdicts import verdicts
from grading.models import Grade, JudgeJob, Rubric, RubricActivation, StoredReading
from grading.models.judging import JobState, Purpose
from grading.models.readings import last_keys
from grading.vocabulary import Source, Status

# The name of the stored reading.
FIGURES = "figures of rubrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricFigures:
    """The number and mean of a rubric's verdicts, and how they compare with people's grades of the same sessions.

    `pairs` is the number of these sessions. `error` is the mean absolute difference, `bias` the mean difference.
    """

    verdicts: int = 0
    mean: float | None = None
    pairs: int = 0
    error: float | None = None
    bias: float | None = None


def content(rubric: Rubric) -> dict[str, Any]:
    """The columns that the judge reads."""
    return {name: getattr(rubric, name) for name in ("text", "dimensions", "bands", "examples")}


def sha256(rubric: Rubric) -> str:
    """The identity of a rubric, saved or not."""
    return rubric_sha256(rubric.text, rubric.dimensions, rubric.bands, examples.in_prompt(rubric.examples))


def save(draft: Rubric, *, author: User) -> tuple[Rubric, bool]:
    """The row of a draft, and whether it is new: the same content is the same rubric, even with another title.

    A new rubric has the kind of work of its parent, if it has one.
    """
    kind = draft.kind if draft.parent is None else draft.parent.kind
    columns = {"kind": kind, "title": draft.title, "note": draft.note, "parent": draft.parent, "author": author}
    return Rubric.objects.get_or_create(sha256=sha256(draft), defaults={**content(draft), **columns})


def activate(rubric: Rubric, *, by: User) -> int:
    """Activate a rubric for its kind of work and its queued jobs. Returns how many jobs. Verdicts become stale."""
    with transaction.atomic():
        of_its_kind = Rubric.objects.select_for_update().filter(is_active=True, kind=rubric.kind)
        in_force = list(of_its_kind)
        if in_force == [rubric]:
            return 0
        if not RubricActivation.objects.filter(rubric__kind=rubric.kind).exists():
            # The rubric that a site starts with was never activated. Record it, so that it can be activated again.
            for first in in_force:
                RubricActivation.objects.create(rubric=first, at=first.created_at)
        of_its_kind.update(is_active=False)
        Rubric.objects.filter(pk=rubric.pk).update(is_active=True)
        RubricActivation.objects.create(rubric=rubric, by=by)
        queued = JudgeJob.objects.filter(
            state__in=[JobState.QUEUED, JobState.PARKED], purpose=Purpose.VERDICT, rubric__kind=rubric.kind
        )
        return queued.update(rubric=rubric)


def figures() -> dict[str, RubricFigures]:
    """The figures of each rubric, by its hash. Four queries."""
    # For each rubric: its latest verdict on each session minus the latest grade by a person. Sessions that are examples
    # in the rubric itself are left out. The condition on the author holds for every such grade, and lets an index be
    # used.
    by_people = Grade.objects.filter(source=Source.HUMAN, status=Status.SCORED, withdrawn_by=None, author__isnull=False)
    human = {session: value or 0.0 for session, value in by_people.order_by("pk").values_list("session", "value")}
    latest: dict[tuple[str, int], float] = {}
    judged = verdicts().filter(session__in=by_people.order_by().values("session")).order_by("pk")
    for rubric, session, value in judged.values_list("rubric", "session", "value"):
        if session in human:
            latest[rubric, session] = value or 0.0
    for row in Rubric.objects.exclude(examples=[]):
        for example in row.examples:
            latest.pop((row.sha256, example.get("session")), None)
    gaps: dict[str, list[float]] = defaultdict(list)
    for (rubric, session), value in latest.items():
        gaps[rubric].append(value - human[session])
    sums = verdicts().order_by().values_list("rubric").annotate(n=Count("pk"), total=Sum("value"))
    return {
        rubric: RubricFigures(
            verdicts=n,
            mean=total / n,
            pairs=len(gaps[rubric]),
            error=fmean(map(abs, gaps[rubric])) if gaps[rubric] else None,
            bias=fmean(gaps[rubric]) if gaps[rubric] else None,
        )
        for rubric, n, total in sums
    }


def store_figures(now: dt.datetime) -> None:
    """Compute and store the figures for the pages, if grades or rubrics have changed."""
    inputs = repr((last_keys(Grade, Rubric), Erasure.objects.count()))
    StoredReading.objects.renew(
        FIGURES, inputs, lambda: {rubric: asdict(of_rubric) for rubric, of_rubric in figures().items()}, now
    )


def latest_figures() -> tuple[dict[str, RubricFigures], dt.datetime | None]:
    """The stored figures by the rubric's hash, and when they were computed. If none are stored, they are computed now
    and the time is None.
    """
    stored = StoredReading.objects.filter(name=FIGURES).first()
    if stored is None:
        return figures(), None
    return {rubric: RubricFigures(**columns) for rubric, columns in stored.value.items()}, stored.read_at
