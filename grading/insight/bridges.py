"""Sessions that several graders have read, and the offer to have more of them read again."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection
from random import Random
from typing import Any

import numpy as np
from django.db.models import Avg, Q

from grading.days import midnight
from grading.insight.core.bridge import MIN_PAIRS, PairedReadings
from grading.insight.core.cells import GraderIdentity
from grading.insight.core.results import BridgeOffer, Span
from grading.insight.loading import GRADED, POPULATION, CellFilter, sessions_during
from grading.models import Grade, JudgeAttempt, JudgeJob, Session
from grading.models.fields import Keys
from grading.models.judging import AttemptOutcome, JobState, Purpose
from grading.models.sessions import MICRODOLLARS
from grading.vocabulary import Source, Status

# How far back sessions connect graders, and how many of them at most, the latest first. Of those that were read again,
# as many more.
REACH = dt.timedelta(days=90)
MAX_SESSIONS = 1_000
# Jobs for another verdict on a session that has one.
REREAD = Q(run__isnull=False) | Q(purpose__in=[Purpose.TRIAL, Purpose.SECOND, Purpose.REPEAT])
# The mean cost of a verdict is that of this many calls.
LATEST_CALLS = 200
# More sessions than needed are offered, since some may have nothing to read any more.
SPARE = 1.2


def load_pairs(span: Span, graders: Collection[GraderIdentity]) -> PairedReadings:
    """For each two of these graders, how much the later one in `graders` read above the other on the same sessions.

    Parallel verdicts count, such as second opinions and trials of a rubric; of several readings by one grader the
    latest does. Copies of a session, which have the same inputs, count once. Three queries.
    """
    graders = list(graders)
    if len(graders) < 2:  # noqa: PLR2004 - a pair
        return {}
    longer = Span(first=span.first - REACH, last=span.last)
    latest = sessions_during(longer).order_by("-ended_at").values_list("pk", flat=True)[:MAX_SESSIONS]
    again = JudgeJob.objects.filter(REREAD, state=JobState.DONE, created_at__gte=midnight(longer.first))
    reread = again.order_by("-created_at").values_list("session", flat=True)[:MAX_SESSIONS]
    sessions = Session.objects.filter(POPULATION, pk__in=Keys([*latest, *reread]), is_sample=False).order_by()
    grades = Grade.objects.filter(session__in=sessions, status=Status.SCORED, sample=1, withdrawn_by=None)
    columns = ("session", "source", "model", "rubric", "version", "value", "inputs_sha256")
    readings: dict[int, dict[GraderIdentity, tuple[float, str]]] = defaultdict(dict)
    for session, source, model, rubric, version, value, inputs in grades.order_by("pk").values_list(*columns):
        is_judge = source == Source.JUDGE
        key = GraderIdentity(source, model, rubric, version) if is_judge else GraderIdentity(source)
        readings[session][key] = (value, inputs)
    differences: dict[tuple[GraderIdentity, GraderIdentity], dict[Any, float]] = defaultdict(dict)
    for session, by_grader in readings.items():
        common = [grader for grader in graders if grader in by_grader]
        for number, new in enumerate(common):
            value, inputs = by_grader[new]
            for old in common[:number]:
                differences[old, new].setdefault(inputs or session, value - by_grader[old][0])
    return {pair: np.array(list(values.values())) for pair, values in differences.items()}


def make_offer(
    old: GraderIdentity, new: GraderIdentity, before: Span, *, read_by_both: int, filters: CellFilter | None = None
) -> BridgeOffer:
    """The offer to have sessions that `old` has read be read by `new`, a random sample of those in `before`. It has no
    sessions and no rubric if there are too few of them.
    """
    needed = max(0, MIN_PAIRS - read_by_both)
    keys: list[int] = []
    if new.source == Source.JUDGE:
        rows = sessions_during(before, filters).filter(GRADED, reward_source=old.source)
        if old.source == Source.JUDGE:
            rows = rows.filter(verdict__model=old.model, verdict__rubric=old.rubric, verdict__version=old.version)
        keys = sorted(rows.values_list("pk", flat=True))
    # The same sample at each request. Whoever could choose sessions could choose the result.
    count = min(len(keys), round(needed * SPARE)) if len(keys) >= needed else 0
    chosen = Random(new.rubric).sample(keys, count)  # noqa: S311 - not a secret
    each = _cost_of_a_verdict(new.model) if chosen else None
    return BridgeOffer(
        old=str(old),
        new=str(new),
        read_by_both=read_by_both,
        needed=needed,
        cost_micro=None if each is None else round(each * needed * MICRODOLLARS),
        rubric=new.rubric if chosen else "",
        sessions=tuple(chosen),
    )


def _cost_of_a_verdict(model: str) -> float | None:
    """The mean cost of the last verdicts of a judge in dollars, None if none is known."""
    calls = JudgeAttempt.objects.filter(outcome=AttemptOutcome.GRADED, model=model, cost_usd__isnull=False)
    mean: float | None = calls.order_by("-pk")[:LATEST_CALLS].aggregate(mean=Avg("cost_usd"))["mean"]
    return mean
