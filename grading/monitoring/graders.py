"""Rules about the judges as measuring instruments: one family only, no resolution, unlike levels."""

import datetime as dt
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Avg, Count, Max, StdDev, Sum

from grading.models import Grade, Rubric
from grading.models.grades import GradeQuerySet
from grading.models.sessions import yours
from grading.monitoring.families import family
from grading.monitoring.rule import Finding, Rule, Severity

WINDOW = dt.timedelta(days=14)
IDENTITY = ("model", "route", "rubric", "version")
SOMETIMES = dt.timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """One grader identity and its verdicts of the window: how many, their mean, spread and distinct values."""

    model: str
    route: str
    rubric: str
    version: str
    n: int
    mean: float
    sd: float
    values: int
    latest: int

    def __str__(self) -> str:
        return f"{self.model} at {self.route or 'an unknown route'}, rubric {self.rubric[:4]}, {self.version}"


def verdicts(now: dt.datetime) -> GradeQuerySet:
    """What judges said of the sessions that ended in the last fourteen days (event time), at their first reading."""
    return Grade.objects.verdicts().first_readings().filter(yours(), session__ended_at__gt=now - WINDOW)


def instruments(now: dt.datetime) -> list[Instrument]:
    """The grader identities whose verdicts entered the chain, the one in use last first: one query."""
    rows = (
        verdicts(now)
        .chain()
        .order_by()
        .values(*IDENTITY)
        .annotate(n=Count("pk"), mean=Avg("value"), sd=StdDev("value"))
        .annotate(values=Count("value", distinct=True), latest=Max("pk"))
    )
    return sorted((Instrument(**row) for row in rows), key=lambda each: -each.latest)


class Monoculture(Rule):
    """A16. With one family judging, its bias cannot be told from its calibration."""

    id = "A16"
    title = "One model family judges nearly everything"
    means = (
        "Opens when one model family gave more than 80 % of at least 50 verdicts in 14 days, or when a judge "
        "rates its own family’s sessions more than .05 above the rest (at least 20 of each)."
    )
    severity = Severity.ADVISORY
    every = SOMETIMES
    share, at_least, gap, of_each = 0.8, 50, 0.05, 20

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        rows = verdicts(now).order_by().values_list("model", "session__model").annotate(n=Count("pk"), s=Sum("value"))
        judged: Counter[str] = Counter()
        sides: dict[str, Sides] = defaultdict(Sides)
        for model, session_model, n, total in rows:
            judged[family(model)] += n
            if session_model:
                sides[model].add(n, total, own=family(session_model) == family(model))
        whole = judged.total()
        name, most = next(iter(judged.most_common(1)), ("", 0))
        if whole >= self.at_least and most > self.share * whole:
            yield Finding(
                about="share",
                detail=f"{most} of {whole} verdicts in 14 days come from the {name} family, so nobody can tell its "
                "bias from its calibration. Set JUDGE_SECOND_MODEL to another family, and let it judge a quarter.",
            )
        for model, side in sorted(sides.items()):
            if min(side.own, side.others) < self.of_each:
                continue
            own, others = side.own_sum / side.own, side.others_sum / side.others
            if own - others > self.gap:
                yield Finding(
                    about=model,
                    detail=f"{model} gives sessions of its own family {own:.2f} on average ({side.own}), others "
                    f"{others:.2f} ({side.others}). They may be better, or favored: compare with how a second family "
                    "or people grade the same sessions.",
                )


@dataclass(slots=True)
class Sides:
    """One judge's verdicts on sessions of its own family and on others: how many, and their sums."""

    own: int = 0
    own_sum: float = 0.0
    others: int = 0
    others_sum: float = 0.0

    def add(self, n: int, total: float, *, own: bool) -> None:
        if own:
            self.own, self.own_sum = self.own + n, self.own_sum + total
        else:
            self.others, self.others_sum = self.others + n, self.others_sum + total


class Unresolving(Rule):
    """A26. A judge that says nearly the same of everything cannot tell arms apart."""

    id = "A26"
    title = "A judge can’t tell sessions apart"
    means = (
        "Opens when a judge, under one rubric, gave fewer than 10 distinct grades over at least 50 sessions in 14 "
        "days, or grades with a standard deviation below .05."
    )
    every = SOMETIMES
    at_least, values, sd = 50, 10, 0.05

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        for each in instruments(now):
            if each.n >= self.at_least and (each.values < self.values or each.sd < self.sd):
                yield Finding(
                    about=str(each)[:150],
                    detail=f"{each}: {each.n} verdicts in 14 days take {each.values} values and spread by "
                    f"{each.sd:.3f}. What it says separates no arms: try a stronger model or a rubric with more bands.",
                )


class UnlikeLevels(Rule):
    """A27. Where two instruments are mixed, arms learn who graded them."""

    id = "A27"
    title = "Graders with different baselines are mixed"
    means = (
        "Opens when the verdicts of two graders (model, route, rubric, digest; at least 20 each in 14 days) of the "
        "same kind of work differ by .10 or more on average, and by at least two standard errors."
    )
    severity = Severity.ADVISORY
    every = SOMETIMES
    at_least, gap, errors = 20, 0.1, 2.0

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        enough = [each for each in instruments(now) if each.n >= self.at_least]
        kinds = dict(Rubric.objects.filter(sha256__in={each.rubric for each in enough}).values_list("sha256", "kind"))
        reported: set[str] = set()
        # The one in use last comes first, so that a judge's line is about its latest change.
        for new, old in itertools.combinations(enough, 2):
            # What a rubric that the site does not have asks about is comparable with itself alone.
            kind = kinds.get(new.rubric, new.rubric)
            about = f"{new.model}, {kind if new.rubric in kinds else f'rubric {kind[:4]}'}"[:150]
            if about in reported or kind != kinds.get(old.rubric, old.rubric):
                continue
            error = math.sqrt(new.sd**2 / new.n + old.sd**2 / old.n)
            if abs(new.mean - old.mean) >= max(self.gap, self.errors * error):
                reported.add(about)
                yield Finding(
                    about=about,
                    detail=f"The grader identity changed, and the level with it: {old} gave {old.mean:.2f} on average "
                    f"({old.n}), {new} gives {new.mean:.2f} ({new.n}). That need not be the work: compare within one "
                    "grader only, or have the older sessions judged again.",
                )
