"""Few-shot examples: sessions that people graded, stored with the rubric and so versioned."""

from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from grading.judging import inputs
from grading.judging.core import prompt
from grading.judging.core.sanitise import clean
from grading.models import Grade
from grading.models.sessions import yours
from grading.vocabulary import Source, Status

SUMMARY_LIMIT, WHY_LIMIT = prompt.SUMMARY_CHARS, prompt.WHY_CHARS

Example = dict[str, Any]


def labelled(search: str = "") -> QuerySet[Grade]:
    """The latest grade by a person of each session, newest first; only those with `search` in id, title or reason."""
    grades = Grade.objects.filter(yours(), source=Source.HUMAN, status=Status.SCORED, withdrawn_by=None)
    newest = grades.filter(session=OuterRef("session")).order_by("-pk").values("pk")[:1]
    rows = grades.filter(pk=Subquery(newest)).select_related("session__category", "session__harness", "author")
    if search:
        matches = Q(session__external_id__icontains=search) | Q(session__title__icontains=search)
        # Reasons are stored compressed, so the database cannot search them.
        by_reason = [pk for pk, reason in rows.values_list("pk", "detail") if search.casefold() in reason.casefold()]
        rows = rows.filter(matches | Q(pk__in=by_reason))
    return rows.order_by("-pk")


def make_example(grade: Grade) -> Example:
    """A person's grade as an example: a summary of the session, the score, the reason. Raises whatever reading evidence
    raises.

    Its keys "session" and "grade" say where it comes from; the prompt does not contain them.
    """
    summary = prompt.summarise(inputs.case(grade.session), SUMMARY_LIMIT) or clean(grade.session.title, SUMMARY_LIMIT)
    return {
        "grade": grade.pk,
        "session": grade.session_id,
        "summary": summary,
        "score": grade.value,
        "why": clean(grade.detail, WHY_LIMIT),
    }


def in_prompt(examples: list[Example]) -> list[Example]:
    """The part of the examples that the prompt contains and a rubric's hash covers."""
    return [{name: example[name] for name in ("summary", "score", "why")} for example in examples]
