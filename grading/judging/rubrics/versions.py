"""Rubrics as rows: saving a version, putting one in force, and what came of each."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, F, Max, QuerySet, Sum
from django.utils import timezone

from bandit.models import Erasure
from grading.days import midnight
from grading.judging.core.prompt import rubric_sha256
from grading.judging.rubrics import examples
from grading.judging.rubrics.verdicts import verdicts
from grading.models import Grade, JudgeJob, Rubric, RubricActivation
from grading.models.judging import JobState, Purpose
from grading.remembered import Memory, remembered, upto
from grading.vocabulary import Source, Status

# A verdict is on record so long after its `created_at` at the latest.
SETTLED = dt.timedelta(hours=1)
# So many sessions are asked about by one query.
CHUNK = 500
# By rubric and session: the first verdict's id, and how far the latest is from the last word of people.
Gaps = dict[tuple[str, int], tuple[int, float]]
# By how often something was erased: up to which grade they are known, and they.
_memory = Memory[int, tuple[int, Gaps]](1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came of a rubric: verdicts and their mean; over `pairs` sessions that people graded too, how far apart."""

    verdicts: int = 0
    mean: float | None = None
    pairs: int = 0
    error: float | None = None
    bias: float | None = None


def content(rubric: Rubric) -> dict[str, Any]:
    """What a rubric asks, without what is said about it."""
    return {name: getattr(rubric, name) for name in ("text", "dimensions", "bands", "examples")}


def sha256(rubric: Rubric) -> str:
    """The identity of a rubric, saved or not."""
    return rubric_sha256(rubric.text, rubric.dimensions, rubric.bands, examples.shown(rubric.examples))


def save(draft: Rubric, *, author: User) -> tuple[Rubric, bool]:
    """The row of a draft, and whether it is new: the same content is the same rubric, whatever its title.

    It is for the kind of work that the one it began from is for.
    """
    kind = draft.kind if draft.parent is None else draft.parent.kind
    about = {"kind": kind, "title": draft.title, "note": draft.note, "parent": draft.parent, "author": author}
    return Rubric.objects.get_or_create(sha256=sha256(draft), defaults={**content(draft), **about})


def activate(rubric: Rubric, *, by: User) -> int:
    """Put a rubric in force for its kind of work: queued verdicts on such are asked for under it; how many.

    Given ones become stale, and hold.
    """
    with transaction.atomic():
        of_its_kind = Rubric.objects.select_for_update().filter(is_active=True, kind=rubric.kind)
        in_force = list(of_its_kind)
        if in_force == [rubric]:
            return 0
        if not RubricActivation.objects.filter(rubric__kind=rubric.kind).exists():
            # The rubric that a site starts with is in force without anybody's doing; going back to it is offered too.
            for first in in_force:
                RubricActivation.objects.create(rubric=first, at=first.created_at)
        of_its_kind.update(is_active=False)
        Rubric.objects.filter(pk=rubric.pk).update(is_active=True)
        RubricActivation.objects.create(rubric=rubric, by=by)
        queued = JudgeJob.objects.filter(
            state__in=[JobState.QUEUED, JobState.PARKED], purpose=Purpose.VERDICT, rubric__kind=rubric.kind
        )
        return queued.update(rubric=rubric)


def figures() -> dict[str, Figures]:
    """What came of each rubric, by its hash: ten queries, and two for each 500 sessions that got another grade."""
    latest = _gaps()
    for rubric in Rubric.objects.exclude(examples=[]):  # an example's own session shows nothing
        for example in rubric.examples:
            latest.pop((rubric.sha256, example.get("session")), None)
    gaps: dict[str, list[float]] = {}  # judge − human by rubric, for the latest verdict of each session
    for (sha256, _), (_, gap) in sorted(latest.items(), key=lambda each: each[1][0]):
        gaps.setdefault(sha256, []).append(gap)
    return {
        rubric: Figures(
            verdicts=n,
            mean=total / n,
            pairs=len(gaps.get(rubric, [])),
            error=_mean([abs(gap) for gap in gaps.get(rubric, [])]),
            bias=_mean(gaps.get(rubric, [])),
        )
        for rubric, (n, total) in _said(timezone.now()).items()
    }


def _gaps() -> Gaps:
    """As they are: read once, and from then on kept up with the grades, which are only ever added."""
    key = Erasure.objects.count()
    last, known = upto(Grade.objects.all()), _memory.get(key)
    if known is None:
        found = _gaps_of(_by_people().values_list("session", flat=True).distinct())
    else:
        before, held = known
        since = Grade.objects.filter(pk__gt=before, source__in=[Source.HUMAN, Source.JUDGE])
        moved = set(since.values_list("session", flat=True))
        found = {of: gap for of, gap in held.items() if of[1] not in moved} | _gaps_of(moved)
    _memory.put(key, (last, found))
    return dict(found)


def _gaps_of(sessions: Iterable[int]) -> Gaps:
    """Those of these sessions."""
    found: Gaps = {}
    ordered = sorted(sessions)
    for some in (ordered[at : at + CHUNK] for at in range(0, len(ordered), CHUNK)):
        human = dict(_by_people().filter(session__in=some).order_by("pk").values_list("session", "value"))
        rows = verdicts().filter(session__in=human).order_by("session", "pk")
        for rubric, session, pk, value in rows.values_list("rubric", "session", "pk", F("value")):
            first, _ = found.get((rubric, session), (pk, 0.0))
            found[rubric, session] = first, value - human[session]
    return found


def _by_people() -> QuerySet[Grade]:
    """What people said and did not take back; each of them has an author, by which an index finds them."""
    held = Grade.objects.filter(source=Source.HUMAN, status=Status.SCORED, withdrawn_by=None)
    return held.filter(author__isnull=False).order_by()


def _said(now: dt.datetime) -> dict[str, tuple[int, float]]:
    """How many verdicts were given by each rubric, and their sum. Those from before today are remembered: nothing is
    ever added there, and what is erased leaves a record.
    """
    settled = midnight(timezone.localdate(now)) - SETTLED
    last = verdicts().filter(created_at__lt=settled).values_list("pk", flat=True).first() or 0
    erased = Erasure.objects.aggregate(last=Max("pk"))["last"]
    sums = dict(_said_until(last, erased))
    for rubric, (n, total) in _summed(verdicts().filter(pk__gt=last)).items():
        before = sums.get(rubric, (0, 0.0))
        sums[rubric] = before[0] + n, before[1] + total
    return sums


@remembered(2)
def _said_until(last: int, _erased: int | None) -> dict[str, tuple[int, float]]:
    return _summed(verdicts().filter(pk__lte=last))


def _summed(rows: QuerySet[Grade]) -> dict[str, tuple[int, float]]:
    found = rows.order_by().values_list("rubric").annotate(n=Count("pk"), total=Sum("value"))
    return {rubric: (n, total) for rubric, n, total in found}


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
