"""The dashboard's counts about how far the reward can be trusted, with their denominators and the rows behind them."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any

from django.db.models import Case, Count, DateField, F, Q, Value, When
from django.utils import timezone

from bandit.models import Arm
from grading.days import midnight
from grading.models import JudgeJob, Session
from grading.models.judging import Purpose
from grading.models.sessions import SessionQuerySet, Whose
from grading.monitoring import judges
from grading.review import calibration
from grading.vocabulary import Source

WINDOW_DAYS = 7
CHART_DAYS = 14
# Sources whose grade counts as valid unless a flag is open.
VALID_SOURCES = frozenset({Source.JUDGE, Source.HUMAN, Source.CONSUMPTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustCell:
    """How many sessions have this day, arm, source of reward, and state of being final and flagged (`count`)."""

    day: dt.date
    source: str
    final: bool
    flagged: bool
    arm: str
    count: int

    @property
    def is_graded(self) -> bool:
        return self.source not in {"", Source.FLOOR}

    @property
    def is_valid(self) -> bool:
        return self.source in VALID_SOURCES and not self.flagged

    @property
    def is_missing(self) -> bool:
        """Whether the reward is provisional or the floor, so that the arm learns little or nothing from it yet."""
        return self.source == Source.FLOOR or (self.source != "" and not self.final)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """`part` of `whole` sessions. `percent` is None if `whole` is 0."""

    part: int
    whole: int

    @property
    def percent(self) -> float | None:
        return None if self.whole == 0 else 100 * self.part / self.whole

    @property
    def rest(self) -> int:
        return self.whole - self.part


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The dashboard's counts at one moment.

    `coverage` is the share of the last 7 days' sessions that are graded. `validity` is the share of these graded
    sessions whose grade is valid. `provisional_today` is a share of today's graded sessions; `ungraded_today` are not
    graded yet. `graded_before` counts the sessions that were ever graded, but is 0 if a session of the last 7 days is
    graded. `waiting` counts the open jobs for verdicts, `opinions` the judges' other open jobs.
    """

    coverage: Share
    validity: Share
    provisional_today: Share
    provisional_by_source: Mapping[str, int]
    ungraded_today: int
    graded_before: int
    waiting: int
    opinions: int
    cells: tuple[TrustCell, ...]

    @property
    def missing_by_arm(self) -> dict[str, Share]:
        """By arm, the share of the last 14 days' sessions whose reward is provisional or the floor."""
        missing, whole = Counter[str](), Counter[str]()
        for cell in self.cells:
            whole[cell.arm] += cell.count
            missing[cell.arm] += cell.count if cell.is_missing else 0
        return {arm: Share(part=missing[arm], whole=whole[arm]) for arm in whole if arm}


def trust(now: dt.datetime | None = None, whose: Whose = Whose.YOURS) -> Trust:
    """The counts at `now`. Three queries, or four if no session of the last 7 days is graded.

    A session belongs to the day, in the site's zone, on which it ended. Windows are whole days and include today.
    """
    today = timezone.localdate(now or timezone.now())
    cells = day_cells(today, whose)
    week = [cell for cell in cells if cell.day > today - dt.timedelta(days=WINDOW_DAYS)]
    of_today = [cell for cell in week if cell.day == today]
    graded = [cell for cell in week if cell.is_graded]
    graded_today = [cell for cell in of_today if cell.is_graded]
    provisional = [cell for cell in graded_today if not cell.final]
    ever_graded = Session.objects.filter(whose.rows("pk")).exclude(reward_source__in=["", Source.FLOOR])
    by_source: Counter[str] = Counter()
    for cell in provisional:
        by_source[cell.source] += cell.count
    jobs = JudgeJob.objects.open().filter(whose.rows()).order_by().aggregate(
        verdicts=Count("pk", filter=Q(purpose=Purpose.VERDICT)), all=Count("pk")
    )  # fmt: skip
    return Trust(
        coverage=Share(part=_count(graded), whole=_count(week)),
        validity=Share(part=_count(cell for cell in graded if cell.is_valid), whole=_count(graded)),
        provisional_today=Share(part=_count(provisional), whole=_count(graded_today)),
        provisional_by_source=dict(by_source.most_common()),
        ungraded_today=_count(of_today) - _count(graded_today),
        graded_before=0 if graded else ever_graded.count(),
        waiting=jobs["verdicts"],
        opinions=jobs["all"] - jobs["verdicts"],
        cells=tuple(cells),
    )


def day_cells(today: dt.date, whose: Whose = Whose.YOURS) -> list[TrustCell]:
    """The settled sessions of the last CHART_DAYS that have a source, ordered by day. Two queries."""
    # A session's day is the latest of these days that began before it ended. Tomorrow is among them, because clocks may
    # run ahead. Midnights are compared, because SQLite would compute each date by a Python function.
    days = [today + dt.timedelta(days=1 - back) for back in range(CHART_DAYS)]
    rows: Any = (
        Session.objects.filter(whose.rows("pk"))
        .filter(_ended_in(today, CHART_DAYS))
        .order_by()
        .values(
            "category",
            source=F("reward_source"),
            final=F("reward_final"),
            day=Case(
                *(When(ended_at__gte=midnight(day), then=Value(day)) for day in days),
                default=Value(today - dt.timedelta(days=CHART_DAYS - 1)),
                output_field=DateField(),
            ),
        )
        .annotate(flagged=Q(open_flags__gt=0))
        .annotate(count=Count("pk"))
    )
    names = dict(Arm.objects.filter(bandit__name="category").values_list("pk", "name"))
    # Sessions without a source are left out here: with a condition, SQLite would read the whole index on the source.
    cells = [TrustCell(arm=names.get(row.pop("category"), ""), **row) for row in rows if row["source"]]
    return sorted(cells, key=attrgetter("day", "source", "final", "flagged", "arm"))  # PostgreSQL has its own order


# --- the rows behind a figure ----------------------------------------------------------------------------------------


class Behind(StrEnum):
    """A filter of the list of sessions: the sessions behind a figure of the dashboard."""

    HOLDS = "holds"
    DOUBTED = "doubted"
    GRADED = "graded"
    FLOOR = "floor"
    TODAY = "today"
    PROVISIONAL = "provisional"
    UNGRADED = "ungraded"
    COMPARED = "compared"
    WAITING = "waiting"
    MISSING = "missing"

    @property
    def words(self) -> str:
        return {
            Behind.HOLDS: "reliable grades of the last 7 days (from a judge, a person or artifacts, and not flagged)",
            Behind.DOUBTED: "unreliable grades of the last 7 days (from trajectory or journal, or flagged)",
            Behind.GRADED: "sessions of the last 7 days that have a grade",
            Behind.FLOOR: "sessions of the last 7 days that are not graded yet",
            Behind.TODAY: "sessions of today, graded or not",
            Behind.PROVISIONAL: "provisional rewards of today",
            Behind.UNGRADED: "sessions of today that are not graded yet",
            Behind.COMPARED: (
                "sessions of the random check with a blind grade from a person and a grade from the current judge"
            ),
            Behind.WAITING: "sessions that wait for a verdict",
            Behind.MISSING: "sessions of the last 14 days whose reward is provisional or missing",
        }[self]


def sessions_behind(sessions: SessionQuerySet, behind: Behind) -> SessionQuerySet:
    """Those of the sessions that the figure counts."""
    today = timezone.localdate()
    if behind is Behind.WAITING:
        jobs = JudgeJob.objects.open().filter(purpose=Purpose.VERDICT)
        return sessions.filter(pk__in=jobs.values("session"))
    if behind is Behind.COMPARED:
        in_use = judges.grader_in_use()
        return sessions.none() if in_use is None else calibration.compared_sessions(sessions, in_use.grader)
    settled = Q(reward_source__gt="")
    graded = settled & ~Q(reward_source=Source.FLOOR)
    is_valid = Q(reward_source__in=[str(source) for source in VALID_SOURCES], open_flags=0)
    provisional = Q(reward_final=False)
    week = _ended_in(today, WINDOW_DAYS)
    of_today = _ended_in(today, 1, until=1)
    return sessions.filter(
        {
            Behind.HOLDS: week & is_valid,
            Behind.DOUBTED: week & graded & ~is_valid,
            Behind.GRADED: week & graded,
            Behind.FLOOR: week & Q(reward_source=Source.FLOOR),
            Behind.TODAY: of_today & settled,
            Behind.PROVISIONAL: of_today & graded & provisional,
            Behind.UNGRADED: of_today & Q(reward_source=Source.FLOOR),
            Behind.MISSING: _ended_in(today, CHART_DAYS) & settled & (Q(reward_source=Source.FLOOR) | provisional),
        }[behind]
    )


def _ended_in(today: dt.date, days: int, *, until: int | None = None) -> Q:
    """A condition on sessions: they ended in the last `days` days, counting today.

    `until` is the number of days after today from which on sessions are excluded (1: from tomorrow). Without it,
    sessions whose clock runs ahead are included.
    """
    since = Q(ended_at__gte=midnight(today - dt.timedelta(days=days - 1)))
    return since if until is None else since & Q(ended_at__lt=midnight(today + dt.timedelta(days=until)))


def _count(cells: Iterable[TrustCell]) -> int:
    return sum(cell.count for cell in cells)
