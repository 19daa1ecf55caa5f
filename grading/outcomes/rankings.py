"""Compares grades with what became of the work: does a higher grade go with work that landed and stayed?"""

import datetime as dt

from grading.models import Grade, Session, SessionFacts
from grading.models.sessions import yours
from grading.outcomes.auc import Ranking, rank
from grading.outcomes.landed_work import DECIDED, LANDED, SETTLED
from grading.vocabulary import Source, Status

# The latest sessions that are compared.
COMPARED = 2000
SOURCES = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION)
TOOL_CALLS = "number of tool calls"


def load_rankings(now: dt.datetime) -> dict[str, Ranking]:
    """How well each source's latest grade ranks sessions by whether their work landed.

    The number of tool calls, by which nobody would grade, is there for comparison. Three queries.
    """
    sessions = Session.objects.filter(yours("pk"), DECIDED, ended_at__lte=now - SETTLED).order_by("-ended_at", "-pk")
    landed = dict(sessions.annotate(has_landed=LANDED).values_list("pk", "has_landed")[:COMPARED])
    values: dict[str, dict[int, float]] = {source: {} for source in (*SOURCES, TOOL_CALLS)}
    grades = Grade.objects.filter(session__in=list(landed), source__in=SOURCES, status=Status.SCORED, parallel=False)
    for source, session, value in grades.filter(sample=1).order_by("pk").values_list("source", "session", "value"):
        if value is not None:
            values[source][session] = value
    facts = SessionFacts.objects.filter(session__in=list(landed)).values_list("session", "tool_calls")
    values[TOOL_CALLS] = {session: float(calls) for session, calls in facts if calls is not None}
    return {
        name: rank(
            [value for session, value in by_session.items() if landed[session]],
            [value for session, value in by_session.items() if not landed[session]],
        )
        for name, by_session in values.items()
    }
