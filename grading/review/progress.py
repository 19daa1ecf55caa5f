"""How reviewing goes: a row for each person and one for all. Figures to work with, not to rank by."""

import datetime as dt
import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from django.contrib.auth.models import User
from django.db.models import Count
from django.utils import timezone

from grading.days import start_of_day
from grading.models import ReviewAnswer, ReviewItem
from grading.models.review import Answer
from grading.models.sessions import yours
from grading.review.seen import LOOKS_ONLY

DAYS = 30
WEEK = dt.timedelta(days=6)
COLUMNS = (
    "pk", "session", "reviewer", "created_at", "answer", "value", "blind_value", "revealed", "seconds",
    "slice_probability", "bulk", "grade", "judge__value", "undone_by",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Given:
    """One answer, as far as the figures need it; in the order of `COLUMNS`."""

    pk: int
    session: int
    reviewer: int
    at: dt.datetime
    answer: str
    value: float | None
    blind: float | None
    revealed: bool
    seconds: float | None
    slice_probability: float | None
    bulk: str
    grade: int | None
    judge: float | None
    undone_by: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderGap:
    """How far two graders of the same sessions are apart: `n` pairs, their mean |difference| in reward.

    `bias` is the mean of (person − judge) where a judge is the other. None where there is no pair.
    """

    n: int
    mean: float | None
    bias: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchoring:
    """What looking at the judge's answer does: of `n` who had said a grade before, `moved` changed it, `towards` of
    them to the judge's side; `mean` is |final − blind| over all n, None for none.
    """

    n: int
    changed: int
    towards: int
    mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerRow:
    """One person's figures, or everybody's (`reviewer` None).

    `today` and `week` (today and the six days before) count answers that hold. The others are of the last 30 days:
    `answers` given, of which `taken_back` were undone or overruled by another person's later grade; `seconds` the
    median from opening to answering. `waits` is how many open items are assigned to them.
    """

    reviewer: User | None
    today: int
    week: int
    answers: int
    taken_back: int
    seconds: float | None
    people: GraderGap
    judge: GraderGap
    anchoring: Anchoring
    waits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewProgress:
    """`total` of whom it was asked for; `rows` one a person, by name."""

    total: ReviewerRow
    rows: tuple[ReviewerRow, ...]


def progress(reviewer: User | None = None, now: dt.datetime | None = None) -> ReviewProgress:
    """The figures of one person, or of all. Three queries."""
    now = now or timezone.now()
    since = start_of_day(now) - dt.timedelta(days=DAYS - 1)
    recent = ReviewAnswer.objects.filter(yours(), created_at__gte=since, created_at__lte=now)
    recent = recent.exclude(answer__in=LOOKS_ONLY)
    answers = [_Given(*columns) for columns in recent.order_by("pk").values_list(*COLUMNS)]
    waits = dict(
        ReviewItem.objects.open()
        .filter(yours(), assigned_to__isnull=False)
        .values_list("assigned_to")
        .annotate(n=Count("pk"))
        .order_by()
    )
    # The answers whose grade another person's later one took the place of.
    latest: dict[int, _Given] = {}
    overruled = set()
    for answer in answers:
        if answer.grade is None or answer.undone_by is not None:
            continue
        before = latest.get(answer.session)
        if before is not None and before.reviewer != answer.reviewer:
            overruled.add(before.pk)
        latest[answer.session] = answer
    reviewer_ids = {answer.reviewer for answer in answers} | set(waits) if reviewer is None else {reviewer.pk}
    people = User.objects.filter(pk__in=reviewer_ids).order_by("username")
    rows = tuple(_row(person, answers, overruled, waits, now) for person in people)
    total = _row(reviewer, answers, overruled, waits, now)
    return ReviewProgress(total=total, rows=rows)


def _row(
    reviewer: User | None, answers: Sequence[_Given], overruled: set[int], waits: dict[int, int], now: dt.datetime
) -> ReviewerRow:
    mine = [answer for answer in answers if reviewer is None or answer.reviewer == reviewer.pk]
    effective = [answer for answer in mine if answer.undone_by is None]
    today = start_of_day(now)
    seconds = [answer.seconds for answer in effective if answer.seconds is not None and not answer.bulk]
    return ReviewerRow(
        reviewer=reviewer,
        today=sum(answer.at >= today for answer in effective),
        week=sum(answer.at >= today - WEEK for answer in effective),
        answers=len(mine),
        taken_back=sum(answer.undone_by is not None or answer.pk in overruled for answer in mine),
        seconds=median(seconds) if seconds else None,
        people=_with_people(answers, reviewer),
        judge=_with_judge(effective),
        anchoring=_anchoring(effective),
        waits=sum(waits.values()) if reviewer is None else waits.get(reviewer.pk, 0),
    )


def _with_people(answers: Iterable[_Given], reviewer: User | None) -> GraderGap:
    """Two people's latest grades of one session, each pair once."""
    latest: dict[int, dict[int, float]] = defaultdict(dict)
    for answer in answers:
        if answer.undone_by is None and answer.value is not None:
            latest[answer.session][answer.reviewer] = answer.value
    apart = [
        abs(by_person[one] - by_person[other])
        for by_person in latest.values()
        for one, other in itertools.combinations(by_person, 2)
        if reviewer is None or reviewer.pk in (one, other)
    ]
    return GraderGap(n=len(apart), mean=fmean(apart) if apart else None)


def _with_judge(answers: Iterable[_Given]) -> GraderGap:
    """What was said blind of the random slice, against the judge: the only pairs that are no one's choice."""
    apart = [
        answer.blind - answer.judge
        for answer in answers
        if answer.slice_probability is not None
        and answer.blind is not None
        and answer.judge is not None
        # Who agrees with what was on the screen says nothing of their own.
        and (answer.answer == Answer.GRADE or answer.revealed)
    ]
    if not apart:
        return GraderGap(n=0, mean=None)
    return GraderGap(n=len(apart), mean=fmean(map(abs, apart)), bias=fmean(apart))


def _anchoring(answers: Iterable[_Given]) -> Anchoring:
    n, moves, towards = 0, [], 0
    for answer in answers:
        if not answer.revealed or answer.blind is None or answer.value is None or answer.judge is None:
            continue
        n, move = n + 1, answer.value - answer.blind
        moves.append(abs(move))
        towards += move * (answer.judge - answer.blind) > 0
    return Anchoring(n=n, changed=sum(move > 0 for move in moves), towards=towards, mean=fmean(moves) if n else None)
