"""Trying a rubric on a session: a real question to the judge, whose answer stands beside the chain, never in it."""

from django.db import transaction

from grading.evidence.material import judgeable
from grading.judging import enqueuing, judges
from grading.judging.rubrics.verdicts import answers
from grading.models import JudgeJob, Rubric, Session
from grading.models.judging import Purpose


class TrialError(Exception):
    """The rubric cannot be tried on this session now; the message says why and what to do."""


def try_on(session: Session, rubric: Rubric) -> JudgeJob | None:
    """Ask the judge about a session under any rubric, beside the chain; None where it has answered just that before.

    The job waits in the queue like any other. TrialError where no judge is configured or another trial is under way.
    """
    if judges.first() is None:
        raise TrialError("There is no judge to ask: add a key in Settings.")
    with transaction.atomic():
        Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        if answers(session, rubric, judgeable(session)).exists():
            return None
        under_way = session.judge_jobs.open().filter(purpose=Purpose.TRIAL).select_related("rubric").first()
        if under_way is not None and under_way.rubric_id != rubric.pk:
            raise TrialError(f"A trial of {under_way.rubric} on this session is under way: wait for its answer first.")
        if under_way is None:
            return enqueuing.add(session, rubric, purpose=Purpose.TRIAL, backlog=False)
        return under_way
