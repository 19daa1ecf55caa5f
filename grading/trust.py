"""Can the reward be trusted today? The figures of the dashboard, each with its own denominator, and one sentence."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, Exists, F, OuterRef, Subquery, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from grading import monitoring
from grading.core.vocabulary import Source, Status
from grading.days import midnight, start_of_day
from grading.models import Flag, Grade, JudgeAttempt, JudgeJob, Quota, Session

WINDOW_DAYS = 7
CHART_DAYS = 14
# Sources whose grade counts as valid where no rule speaks against it (60-validity.md).
VALID_SOURCES = frozenset({Source.JUDGE, Source.HUMAN, Source.CONSUMPTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """How many sessions of one day were decided by `source`, finally or not, and with an open flag or not."""

    day: dt.date
    source: str
    final: bool
    flagged: bool
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """`part` of `whole` sessions. `percent` is None where there is nothing to divide."""

    part: int
    whole: int

    @property
    def percent(self) -> float | None:
        return None if self.whole == 0 else 100 * self.part / self.whole

    @property
    def rest(self) -> int:
        return self.whole - self.part


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One grader against people on the same sessions: mean absolute error and bias (judge − human), both in grades.

    `grader` names it (model, route, rubric): figures of two instruments are never averaged (I36). `others` are the
    pairs of other graders, left out.
    """

    pairs: int
    error: float | None
    bias: float | None
    grader: str = ""
    others: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """All figures of the dashboard at one moment. Coverage and validity stay two numbers (L10)."""

    answer: str
    sentence: str
    coverage: Share
    validity: Share
    provisional_today: Share
    contradicted: int
    agreement: Agreement
    waiting: int
    spent_usd: float
    verdicts_today: int
    cells: tuple[Cell, ...]
    provisional_by_source: Mapping[str, int]


def trust(now: dt.datetime | None = None) -> Trust:
    """The dashboard's figures, in a constant number of queries. Windows are event time, in the site's zone."""
    now = now or timezone.now()
    today = timezone.localdate(now)
    cells = day_cells(today)
    week = [cell for cell in cells if cell.day > today - dt.timedelta(days=WINDOW_DAYS) and cell.source]
    today_cells = [cell for cell in week if cell.day == today]
    graded = [cell for cell in week if cell.source != Source.FLOOR]
    valid = [cell for cell in graded if cell.source in VALID_SOURCES and not cell.flagged]
    provisional = [cell for cell in today_cells if not cell.final]
    contradicted = Flag.objects.open().filter(session__ended_at__gt=now - dt.timedelta(days=WINDOW_DAYS))
    spent = JudgeAttempt.objects.filter(started_at__gte=start_of_day(now)).aggregate(
        cost=Sum("cost_usd"), verdicts=Count("cost_usd")
    )
    share_today = Share(part=_count(provisional), whole=_count(today_cells))
    flagged = contradicted.values("session").distinct().count()
    answer, sentence = _sentence(share_today, flagged, any_sessions=bool(cells) or Session.objects.exists())
    return Trust(
        answer=answer,
        sentence=sentence,
        coverage=Share(part=_count(graded), whole=_count(week)),
        validity=Share(part=_count(valid), whole=_count(graded)),
        provisional_today=share_today,
        contradicted=flagged,
        agreement=agreement(),
        waiting=JudgeJob.objects.open().count(),
        spent_usd=spent["cost"] or 0.0,
        verdicts_today=spent["verdicts"],
        cells=tuple(cells),
        provisional_by_source=Counter({cell.source: cell.count for cell in provisional}),
    )


def day_cells(today: dt.date) -> list[Cell]:
    """Sessions of the last fourteen days by day, deciding source, finality and flag: one query."""
    flags = Flag.objects.open().filter(session=OuterRef("pk"))
    rows = (
        Session.objects.filter(ended_at__gte=midnight(today - dt.timedelta(days=CHART_DAYS - 1)))
        .with_reward()
        .annotate(day=TruncDate("ended_at"), flagged=Exists(flags))
        .order_by()
        .values("day", "reward_source", "reward_final", "flagged")
        .annotate(count=Count("pk"))
    )
    return [
        Cell(
            day=row["day"],
            source=row["reward_source"] or "",
            final=bool(row["reward_final"]),
            flagged=row["flagged"],
            count=row["count"],
        )
        for row in rows
    ]


def agreement() -> Agreement:
    """Sessions that both a judge and a person graded (the latest of each): how far apart they are.

    Of the grader that was asked last among them: model, route, rubric and digest version (I36).
    """
    human = Grade.objects.filter(
        session=OuterRef("session"), source=Source.HUMAN, status=Status.SCORED, withdrawn_by=None
    ).order_by("-pk")
    latest = Grade.objects.chain().verdicts().filter(session=OuterRef("session")).order_by("-pk")
    pairs = list(
        Grade.objects.verdicts()
        .filter(pk=Subquery(latest.values("pk")[:1]))
        .annotate(human=Subquery(human.values("value")[:1]))
        .exclude(human=None)
        .annotate(gap=F("value") - F("human"))
        .order_by("-pk")
        .values_list("gap", "model", "route", "rubric", "version")
    )
    if not pairs:
        return Agreement(pairs=0, error=None, bias=None)
    _gap, *grader = pairs[0]
    gaps = [float(gap) for gap, *who in pairs if who == grader]
    model, route, rubric, _version = grader
    return Agreement(
        pairs=len(gaps),
        error=sum(map(abs, gaps)) / len(gaps),
        bias=sum(gaps) / len(gaps),
        grader=" ".join(part for part in (model, route and f"at {route}", rubric and f"rubric {rubric[:4]}") if part),
        others=len(pairs) - len(gaps),
    )


def _sentence(today: Share, flagged: int, *, any_sessions: bool) -> tuple[str, str]:
    """The answer in a word, and why."""
    if not any_sessions:
        return "Nothing to trust yet.", "No session has come in. Connect an agent, or load the samples."
    against = f"{flagged} of this week's rewards contradict a commit or a pull request" if flagged else ""
    provisional = f"{today.part} of today's {today.whole} rewards are provisional" if today.part else ""
    out = Quota.objects.out().filter(model=settings.JUDGE_MODEL).order_by("pk").first()
    if out is not None:
        why = f"The judge has been out since {timezone.localtime(out.changed_at):%H:%M}"
    elif monitoring.says_judge_fails(monitoring.open_alarms()):
        why = "Calls to the judge fail"
    elif not settings.ANTHROPIC_API_KEY:
        why = "No judge is configured"
    else:
        why = ""
    facts = ", and ".join(part for part in (provisional, against) if part)
    if why:
        return "Not fully.", why + (f": {facts}." if facts else ". No reward of today is provisional.")
    if flagged:
        return "Not fully.", f"{facts}."
    if provisional:
        return "Mostly.", f"The judge is open; {provisional} until it has answered."
    return "Yes.", "The judge is open, no reward of today is provisional and no rule speaks against one."


def _count(cells: list[Cell]) -> int:
    return sum(cell.count for cell in cells)
