"""Sessions that several graders have read, and the offer to have more of them read again."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection
from itertools import combinations
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

# Graders are compared by the latest MAX_SESSIONS sessions, and by as many that were read again, none older than REACH.
REACH = dt.timedelta(days=90)
MAX_SESSIONS = 1_000
# Jobs for another verdict on a session that has one.
REREAD = Q(run__isnull=False) | Q(purpose__in=[Purpose.TRIAL, Purpose.SECOND, Purpose.REPEAT])
# The mean cost of a verdict is that of this many calls.
LATEST_CALLS = 200
# More sessions than needed are offered, since some may have nothing to read any more.
SPARE = 1.2


def load_pairs(span: Span, graders: Collection[GraderIdentity]) -> PairedReadings:
    """By pair of graders (old, new): new reading − old reading of each session that both have read.

    Of two graders, the one that comes first in `graders` is the old one. Parallel verdicts count too, such as second
    opinions and trials of a rubric. If one grader has read a session several times, the latest reading counts. Of
    copies of a session (with the same inputs), the first counts. Three queries.
    """
    graders = list(graders)
    if len(graders) < 2:  # noqa: PLR2004 - a pair
        return {}
    longer_span = Span(first=span.first - REACH, last=span.last)
    latest = sessions_during(longer_span).order_by("-ended_at").values_list("pk", flat=True)[:MAX_SESSIONS]
    reread_jobs = JudgeJob.objects.filter(REREAD, state=JobState.DONE, created_at__gte=midnight(longer_span.first))
    reread = reread_jobs.order_by("-created_at").values_list("session", flat=True)[:MAX_SESSIONS]
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
        for old, new in combinations([grader for grader in graders if grader in by_grader], 2):
            old_value, _old_inputs = by_grader[old]
            new_value, inputs = by_grader[new]
            differences[old, new].setdefault(inputs or session, new_value - old_value)
    return {pair: np.array(list(values.values())) for pair, values in differences.items()}


def make_offer(
    old: GraderIdentity, new: GraderIdentity, before: Span, *, read_by_both: int, filters: CellFilter | None = None
) -> BridgeOffer:
    """The offer to have `new` read a random sample of the sessions of `before` that `old` has read.

    The offer names no sessions and no rubric if there are too few such sessions, or if `new` is not a judge.
    """
    needed = max(0, MIN_PAIRS - read_by_both)
    keys: list[int] = []
    if new.source == Source.JUDGE:
        rows = sessions_during(before, filters).filter(GRADED, reward_source=old.source)
        if old.source == Source.JUDGE:
            rows = rows.filter(verdict__model=old.model, verdict__rubric=old.rubric, verdict__version=old.version)
        keys = sorted(rows.values_list("pk", flat=True))
    # The same sample at each request: a person who could choose the sessions could choose the result.
    count = min(len(keys), round(needed * SPARE)) if len(keys) >= needed else 0
    chosen = Random(new.rubric).sample(keys, count)  # noqa: S311 - not a secret
    verdict_usd = _cost_of_a_verdict(new.model) if chosen else None
    return BridgeOffer(
        old=str(old),
        new=str(new),
        read_by_both=read_by_both,
        needed=needed,
        cost_micro=None if verdict_usd is None else round(verdict_usd * needed * MICRODOLLARS),
        rubric=new.rubric if chosen else "",
        sessions=tuple(chosen),
    )


def _cost_of_a_verdict(model: str) -> float | None:
    """The mean cost of the last verdicts of a judge in dollars. None if no cost is known."""
    calls = JudgeAttempt.objects.filter(outcome=AttemptOutcome.GRADED, model=model, cost_usd__isnull=False)
    mean: float | None = calls.order_by("-pk")[:LATEST_CALLS].aggregate(mean=Avg("cost_usd"))["mean"]
    return mean
