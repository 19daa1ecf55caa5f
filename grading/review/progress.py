"""How reviewing goes: for one reviewer or for all, and a row for each."""

import datetime as dt
import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from django.contrib.auth.models import User
from django.utils import timezone

from grading.days import midnight, start_of_day
from grading.models import ReviewAnswer
from grading.models.review import Answer

WINDOW = dt.timedelta(days=30)
NOT_DONE = (Answer.SKIP, Answer.UNDO)
# Two reviewers by their ids, and how far apart they are in reward.
Pair = tuple[int, int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two graders of the same sessions are apart: `n` pairs, their mean |difference| in reward.

    `mean` is None where there is no pair.
    """

    n: int
    mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One reviewer's figures, or everybody's: answers held today and this week (from Monday, in the site's zone).

    The others are of the last thirty days: `seconds` the median from opening to answering, or None; how far from what
    other people, and the judge, said of the same sessions, the latter blind; `undone` the share of answers taken back.
    """

    reviewer: User | None
    today: int
    week: int
    answers: int
    seconds: float | None
    people: Agreement
    judge: Agreement
    undone: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`total` for whom it was asked; `rows` one a reviewer, the busiest of the week first."""

    total: Row
    rows: tuple[Row, ...]


def progress(reviewer: User | None = None, now: dt.datetime | None = None) -> Progress:
    """The figures of one reviewer, or of all; one query."""
    now = now or timezone.now()
    since = min(now - WINDOW, _monday(now))
    found = ReviewAnswer.objects.filter(created_at__gt=since, created_at__lte=now).exclude(answer__in=NOT_DONE)
    given = list(found.select_related("reviewer", "judge", "undone_by").order_by("pk"))
    pairs = _pairs(given)
    rows = [_row(person, given, pairs, now) for person in {answer.reviewer: None for answer in given}]
    rows.sort(key=lambda row: (-row.week, str(row.reviewer)))
    if reviewer is not None:
        rows = [row for row in rows if row.reviewer == reviewer]
    return Progress(total=_row(reviewer, given, pairs, now), rows=tuple(rows))


def _row(reviewer: User | None, given: Sequence[ReviewAnswer], pairs: Sequence[Pair], now: dt.datetime) -> Row:
    mine = [answer for answer in given if reviewer is None or answer.reviewer == reviewer]
    held = [answer for answer in mine if _holds(answer)]
    recent = [answer for answer in held if answer.created_at > now - WINDOW]
    acts = sum(answer.created_at > now - WINDOW for answer in mine)
    seconds = [answer.seconds for answer in recent if answer.seconds is not None]
    people = [apart for one, other, apart in pairs if reviewer is None or reviewer.pk in (one, other)]
    return Row(
        reviewer=reviewer,
        today=sum(answer.created_at >= start_of_day(now) for answer in held),
        week=sum(answer.created_at >= _monday(now) for answer in held),
        answers=len(recent),
        seconds=median(seconds) if seconds else None,
        people=_agreement(people),
        judge=_agreement(_from_judge(recent)),
        undone=1 - len(recent) / acts if acts else None,
    )


def _pairs(given: Iterable[ReviewAnswer]) -> list[Pair]:
    """Two people's latest grades of one session, each pair once."""
    latest: dict[int, dict[int, float]] = defaultdict(dict)
    for answer in given:
        if _holds(answer) and answer.value is not None:
            latest[answer.session_id][answer.reviewer_id] = answer.value
    return [
        (one, other, abs(said[one] - said[other]))
        for said in latest.values()
        for one, other in itertools.combinations(said, 2)
    ]


def _from_judge(mine: Iterable[ReviewAnswer]) -> list[float]:
    """|what a person said blind − what the judge had said|."""
    return [
        abs(answer.blind_value - answer.judge.value)
        for answer in mine
        if answer.blind_value is not None and answer.judge is not None and answer.judge.value is not None
    ]


def _agreement(apart: Sequence[float]) -> Agreement:
    return Agreement(n=len(apart), mean=fmean(apart) if apart else None)


def _holds(answer: ReviewAnswer) -> bool:
    return not hasattr(answer, "undone_by")


def _monday(now: dt.datetime) -> dt.datetime:
    today = timezone.localdate(now)
    return midnight(today - dt.timedelta(days=today.weekday()))
