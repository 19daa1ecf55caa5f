"""Reading: a line of a batch's results as the answer that a call of its own would have had."""

import uuid

from anthropic.types import ErrorResponse
from anthropic.types.messages import MessageBatchIndividualResponse
from django.conf import settings
from django.utils import timezone

from grading.judging import client, inputs
from grading.judging.client import CallOutcome
from grading.judging.core import api_errors
from grading.judging.core.batch import unpack
from grading.judging.core.verdict import DeferralScope, Deferred
from grading.models import JudgeAttempt, JudgeJob, Session
from grading.vocabulary import Reason


def token(custom_id: str) -> uuid.UUID:
    """The lease that a request's id names; for an id that is not ours, one that nobody holds."""
    try:
        return uuid.UUID(hex=custom_id)
    except ValueError:
        return uuid.UUID(int=0)


def answer_in(line: MessageBatchIndividualResponse, attempt: JudgeAttempt) -> CallOutcome:
    """What became of one request; costs are those of a batch."""
    result = line.result
    match result.type:
        case "succeeded":
            citable, evidence = unpack(attempt.citable), _evidence(attempt.job)
            return client.read(result.message, attempt.job.rubric, citable, evidence=evidence, batch=True)
        case "errored":
            return _errored(result.error)
        case "expired":
            return _undone(Reason.OVERLOADED, "The batch expired before this request was done", result.type)
        case "canceled":
            return _undone(Reason.AWAITING_JUDGE, "The batch was canceled before this request was done", result.type)
        case _:
            return _undone(Reason.NEEDS_ATTENTION, f"A result of an unknown kind: {result.type}", str(result.type))


def _evidence(job: JudgeJob) -> str:
    """What the judge was given to read, and what has come since: no verdict may be copied from either."""
    session = Session.objects.with_people().get(pk=job.session_id)
    return inputs.build(session, job.rubric, budget=settings.JUDGE_INPUT_TOKENS).user


def _errored(error: ErrorResponse) -> CallOutcome:
    """An error in place of a reply, by the same table as everywhere."""
    said = error.error
    details = getattr(said, "details", None)
    code = details.get("error_code", "") if isinstance(details, dict) else ""
    result = api_errors.classify_said(said.type, said.message, timezone.now(), code=str(code))
    row = {
        "http_status": api_errors.STATUS_OF_TYPE.get(said.type),
        "error_type": str(code or said.type)[:80],
        "request_id": str(error.request_id or "")[:120],
    }
    return CallOutcome(result=result, row=row)


def _undone(reason: Reason, detail: str, kind: str) -> CallOutcome:
    return CallOutcome(
        result=Deferred(reason=reason, scope=DeferralScope.JOB, detail=detail), row={"error_type": kind[:80]}
    )
