"""Few-shot examples: sessions that people graded, as the judge is shown them. Stored with the rubric, so versioned."""

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
    """What people said and did not take back, one grade a session, the latest first. `search` in id, title, reason."""
    held = Grade.objects.filter(yours(), source=Source.HUMAN, status=Status.SCORED, withdrawn_by=None)
    newest = held.filter(session=OuterRef("session")).order_by("-pk").values("pk")[:1]
    rows = held.filter(pk=Subquery(newest)).select_related("session__category", "session__harness", "author")
    if search:
        found = Q(session__external_id__icontains=search) | Q(session__title__icontains=search)
        said = [pk for pk, reason in rows.values_list("pk", "detail") if search.casefold() in reason.casefold()]
        rows = rows.filter(found | Q(pk__in=said))
    return rows.order_by("-pk")


def make(grade: Grade) -> Example:
    """A person's grade as an example: what the session did, the score, why. Raises what reading evidence raises.

    `session` and `grade` say where it comes from; the judge is not shown them.
    """
    # Its transcript in short; its title where it has none to read.
    summary = prompt.summarise(inputs.case(grade.session), SUMMARY_LIMIT) or clean(grade.session.title, SUMMARY_LIMIT)
    return {
        "grade": grade.pk,
        "session": grade.session_id,
        "summary": summary,
        "score": grade.value,
        "why": clean(grade.detail, WHY_LIMIT),
    }


def shown(examples: list[Example]) -> list[Example]:
    """What of the examples the judge is shown: the part that a rubric's hash covers."""
    return [{name: example[name] for name in ("summary", "score", "why")} for example in examples]
