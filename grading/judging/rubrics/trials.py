"""Trying a rubric on a session: a real call to the judge, whose answer never counts for the chain."""

from django.db import transaction

from grading.evidence.material import judgeable
from grading.judging import enqueuing, judges
from grading.judging.rubrics.verdicts import answers
from grading.models import JudgeJob, Rubric, Session
from grading.models.judging import Purpose


class TrialError(Exception):
    """The rubric cannot be tried on this session now; the message says why and what to do."""


def try_on(session: Session, rubric: Rubric) -> JudgeJob | None:
    """The job of a trial, queued like any other; None if the judge has answered this question before.

    TrialError if no judge is configured or another trial is under way.
    """
    if judges.first() is None:
        raise TrialError("There is no judge. Add a key in Settings.")
    with transaction.atomic():
        Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        if answers(session, rubric, judgeable(session)).exists():
            return None
        under_way = session.judge_jobs.open().filter(purpose=Purpose.TRIAL).select_related("rubric").first()
        if under_way is not None and under_way.rubric_id != rubric.pk:
            raise TrialError(
                f"A trial of {under_way.rubric} on this session is in progress. Wait for its answer first."
            )
        if under_way is None:
            return enqueuing.add(session, rubric, purpose=Purpose.TRIAL, backlog=False)
        return under_way
