"""The progress of reviewing: a row for each person and one for all. The figures are not meant for ranking people."""

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
class _AnswerRow:
    """The columns of an answer that the figures need, in the order of `COLUMNS`."""

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
    """The difference between two graders of the same sessions: `n` pairs and their mean |difference|, in reward.

    `bias` is the mean of (person − judge), None if the other grader is a person. The means are None without pairs.
    """

    n: int
    mean: float | None
    bias: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchoring:
    """How the judge's answer influences people: of `n` answers with a blind grade, `changed` have another final grade,
    `towards` of them in the judge's direction. `mean` is |final − blind| over all n, None without any.
    """

    n: int
    changed: int
    towards: int
    mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerRow:
    """The figures of one person, or of everybody (`reviewer` None).

    `today` and `week` (today and the six days before) count answers that were not undone. The others are of the last 30
    days: `answers`, of which `taken_back` were undone or overruled by another person's later grade; `seconds` is the
    median time from opening to answering. `waits` is the number of open items assigned to the person.
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
    """`total` is the row of all; `rows` has one row for each person, by name."""

    total: ReviewerRow
    rows: tuple[ReviewerRow, ...]


def progress() -> ReviewProgress:
    """The figures of all reviewers. Three queries."""
    now = timezone.now()
    since = start_of_day(now) - dt.timedelta(days=DAYS - 1)
    recent = ReviewAnswer.objects.filter(yours(), created_at__gte=since, created_at__lte=now)
    recent = recent.exclude(answer__in=LOOKS_ONLY)
    answers = [_AnswerRow(*columns) for columns in recent.order_by("pk").values_list(*COLUMNS)]
    waits = dict(
        ReviewItem.objects.open()
        .filter(yours(), assigned_to__isnull=False)
        .values_list("assigned_to")
        .annotate(n=Count("pk"))
        .order_by()
    )
    # The answers whose grade was replaced by another person's later one.
    latest: dict[int, _AnswerRow] = {}
    overruled = set()
    for answer in answers:
        if answer.grade is None or answer.undone_by is not None:
            continue
        before = latest.get(answer.session)
        if before is not None and before.reviewer != answer.reviewer:
            overruled.add(before.pk)
        latest[answer.session] = answer
    reviewer_ids = {answer.reviewer for answer in answers} | set(waits)
    people = User.objects.filter(pk__in=reviewer_ids).order_by("username")
    rows = tuple(_row(person, answers, overruled, waits, now) for person in people)
    total = _row(None, answers, overruled, waits, now)
    return ReviewProgress(total=total, rows=rows)


def _row(
    reviewer: User | None, answers: Sequence[_AnswerRow], overruled: set[int], waits: dict[int, int], now: dt.datetime
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


def _with_people(answers: Iterable[_AnswerRow], reviewer: User | None) -> GraderGap:
    """The gap between two people's latest grades of a session, over all pairs of people or those with `reviewer`."""
    latest: dict[int, dict[int, float]] = defaultdict(dict)
    for answer in answers:
        if answer.undone_by is None and answer.value is not None:
            latest[answer.session][answer.reviewer] = answer.value
    gaps = []
    for grade_by_person in latest.values():
        for one, other in itertools.combinations(grade_by_person, 2):
            if reviewer is None or reviewer.pk in (one, other):
                gaps.append(abs(grade_by_person[one] - grade_by_person[other]))
    return GraderGap(n=len(gaps), mean=fmean(gaps) if gaps else None)


def _with_judge(answers: Iterable[_AnswerRow]) -> GraderGap:
    """The gap between blind grades and the judge's on the random slice, the only sessions that nobody has chosen."""
    gaps = [
        answer.blind - answer.judge
        for answer in answers
        if answer.slice_probability is not None
        and answer.blind is not None
        and answer.judge is not None
        # Accepting what was on the screen is no grade of one's own.
        and (answer.answer == Answer.GRADE or answer.revealed)
    ]
    if not gaps:
        return GraderGap(n=0, mean=None)
    return GraderGap(n=len(gaps), mean=fmean(map(abs, gaps)), bias=fmean(gaps))


def _anchoring(answers: Iterable[_AnswerRow]) -> Anchoring:
    sizes: list[float] = []
    towards = 0
    for answer in answers:
        if not answer.revealed or answer.blind is None or answer.value is None or answer.judge is None:
            continue
        change = answer.value - answer.blind
        sizes.append(abs(change))
        if change * (answer.judge - answer.blind) > 0:
            towards += 1
    return Anchoring(
        n=len(sizes),
        changed=sum(size > 0 for size in sizes),
        towards=towards,
        mean=fmean(sizes) if sizes else None,
    )
