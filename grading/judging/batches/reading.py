"""Reading: a line of a batch's results as the answer that a call of its own would have had."""

import uuid
from typing import TYPE_CHECKING

from django.conf import settings

from grading import clock
from grading.judging import client, inputs
from grading.judging.client import CallOutcome
from grading.judging.core import api_errors
from grading.judging.core.batch import unpack
from grading.judging.core.verdict import DeferralScope, Deferred
from grading.models import JudgeAttempt, Session
from grading.vocabulary import Reason

if TYPE_CHECKING:
    from anthropic.types.messages import MessageBatchIndividualResponse


def token(custom_id: str) -> uuid.UUID:
    """The lease that a request's id names; for an id that is not ours, one that nobody holds."""
    try:
        return uuid.UUID(hex=custom_id)
    except ValueError:
        return uuid.UUID(int=0)


def answer_in(line: "MessageBatchIndividualResponse", attempt: JudgeAttempt) -> CallOutcome:
    """What became of one request; costs are those of a batch."""
    result, rubric = line.result, attempt.job.rubric
    match result.type:
        case "succeeded":
            # What the judge was given to read, and what has come since: no verdict may be copied from either.
            session = Session.objects.with_people().get(pk=attempt.job.session_id)
            evidence = inputs.build(session, rubric, budget=settings.JUDGE_INPUT_TOKENS).user
            return client.read(result.message, rubric, unpack(attempt.citable), evidence=evidence, batch=True)
        case "errored":  # in place of a reply; it means what the same error means everywhere
            error = result.error.error
            details = getattr(error, "details", None)
            code = details.get("error_code", "") if isinstance(details, dict) else ""
            row = {
                "http_status": api_errors.STATUS_OF_TYPE.get(error.type),
                "error_type": str(code or error.type)[:80],
                "request_id": str(result.error.request_id or "")[:120],
            }
            meaning = api_errors.classify_said(error.type, error.message, clock.now(), code=str(code))
            return CallOutcome(result=meaning, row=row)
        case "expired":
            return _undone(Reason.OVERLOADED, "The batch expired before this request was done", result.type)
        case "canceled":
            return _undone(Reason.AWAITING_JUDGE, "The batch was canceled before this request was done", result.type)
        case _:
            return _undone(Reason.NEEDS_ATTENTION, f"A result of an unknown kind: {result.type}", str(result.type))


def _undone(reason: Reason, detail: str, kind: str) -> CallOutcome:
    return CallOutcome(
        result=Deferred(reason=reason, scope=DeferralScope.JOB, detail=detail), row={"error_type": kind[:80]}
    )
