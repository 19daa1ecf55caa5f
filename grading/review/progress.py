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
from grading.review.seen import NON_ANSWERS

DAYS = 30
WEEK = dt.timedelta(days=6)
COLUMNS = (
    "pk", "session", "reviewer", "created_at", "answer", "value", "blind_value", "revealed", "seconds",
    "slice_probability", "bulk", "grade", "judge__value", "undone_by",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _AnswerRow:
    """The columns of an answer that the figures need. They are in the order of `COLUMNS`."""

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
    """How far two graders of the same sessions differ: the mean |difference| over `n` pairs, in reward.

    `bias` is the mean of (person − judge); None if both graders are people. Both means are None without pairs.
    """

    n: int
    mean: float | None
    bias: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchoring:
    """How the judge's answer influences people.

    Of `n` answers with a blind grade, `changed` have a different final grade, and `towards` of these are nearer to the
    judge's grade. `mean` is the mean of |final − blind| over all n answers; None if there are none.
    """

    n: int
    changed: int
    towards: int
    mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerRow:
    """The figures of one person, or of everybody (`reviewer` None).

    `today` and `week` (today and the six days before) count answers that were not undone. `answers`, `taken_back`,
    `seconds` and the gaps are about the last 30 days. `taken_back` answers were undone, or overruled by another
    person's later grade. `seconds` is the median time from opening to answering. `waits` is the number of open items
    assigned to the person.
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
    """The figures of everybody together (`total`), and of each person (`rows`, by name)."""

    total: ReviewerRow
    rows: tuple[ReviewerRow, ...]


def progress() -> ReviewProgress:
    """The figures of all reviewers. Three queries."""
    now = timezone.now()
    since = start_of_day(now) - dt.timedelta(days=DAYS - 1)
    recent = ReviewAnswer.objects.filter(yours(), created_at__gte=since, created_at__lte=now)
    recent = recent.exclude(answer__in=NON_ANSWERS)
    answers = [_AnswerRow(*columns) for columns in recent.order_by("pk").values_list(*COLUMNS)]
    waits = dict(
        ReviewItem.objects.open()
        .filter(yours(), assigned_to__isnull=False)
        .values_list("assigned_to")
        .annotate(n=Count("pk"))
        .order_by()
    )
    overruled = _find_overruled(answers)
    reviewer_ids = {answer.reviewer for answer in answers} | set(waits)
    people = User.objects.filter(pk__in=reviewer_ids).order_by("username")
    rows = tuple(_row(person, answers, overruled, waits, now) for person in people)
    total = _row(None, answers, overruled, waits, now)
    return ReviewProgress(total=total, rows=rows)


def _find_overruled(answers: Iterable[_AnswerRow]) -> set[int]:
    """The keys of the answers whose grade was replaced by another person's later grade. `answers` are in order."""
    latest: dict[int, _AnswerRow] = {}  # by session
    overruled = set()
    for answer in answers:
        if answer.grade is None or answer.undone_by is not None:
            continue
        before = latest.get(answer.session)
        if before is not None and before.reviewer != answer.reviewer:
            overruled.add(before.pk)
        latest[answer.session] = answer
    return overruled


def _row(
    reviewer: User | None, answers: Sequence[_AnswerRow], overruled: set[int], waits: dict[int, int], now: dt.datetime
) -> ReviewerRow:
    """The figures of this reviewer, or of everybody. `overruled` are keys of answers; `waits` is by key of the user."""
    reviewer_answers = [answer for answer in answers if reviewer is None or answer.reviewer == reviewer.pk]
    effective = [answer for answer in reviewer_answers if answer.undone_by is None]
    today = start_of_day(now)
    seconds = [answer.seconds for answer in effective if answer.seconds is not None and not answer.bulk]
    return ReviewerRow(
        reviewer=reviewer,
        today=sum(answer.at >= today for answer in effective),
        week=sum(answer.at >= today - WEEK for answer in effective),
        answers=len(reviewer_answers),
        taken_back=sum(answer.undone_by is not None or answer.pk in overruled for answer in reviewer_answers),
        seconds=median(seconds) if seconds else None,
        people=_gap_between_people(answers, reviewer),
        judge=_gap_to_judge(effective),
        anchoring=_anchoring(effective),
        waits=sum(waits.values()) if reviewer is None else waits.get(reviewer.pk, 0),
    )


def _gap_between_people(answers: Iterable[_AnswerRow], reviewer: User | None) -> GraderGap:
    """The gap between two people’s latest grades of a session, over all pairs of people or those with `reviewer`."""
    latest: dict[int, dict[int, float]] = defaultdict(dict)  # by session, then person
    for answer in answers:
        if answer.undone_by is None and answer.value is not None:
            latest[answer.session][answer.reviewer] = answer.value
    gaps = []
    for grade_by_person in latest.values():
        for person, other_person in itertools.combinations(grade_by_person, 2):
            if reviewer is None or reviewer.pk in (person, other_person):
                gaps.append(abs(grade_by_person[person] - grade_by_person[other_person]))
    return GraderGap(n=len(gaps), mean=fmean(gaps) if gaps else None)


def _gap_to_judge(answers: Iterable[_AnswerRow]) -> GraderGap:
    """The gap between people's blind grades and the judge's, on the random slice only, because nobody chose its
    sessions.
    """
    gaps = [
        answer.blind - answer.judge
        for answer in answers
        if answer.slice_probability is not None
        and answer.blind is not None
        and answer.judge is not None
        # To accept the grade on the screen is not a grade of one's own.
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
