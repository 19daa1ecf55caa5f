"""The operations of the HTTP API, and the tokens that open it."""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

from django.http import Http404, HttpRequest
from django.utils import timezone
from ninja import NinjaAPI, Path, Status
from ninja.security import HttpBearer

from bandit import holdout, selection
from bandit.models import Bandit
from bandit.reading import posterior_of
from grading import intake
from grading.agent.views import hook_checksum
from grading.api import entry, uploads
from grading.api.docs import Pages
from grading.api.errors import AGAIN, ReadOnly, answer_errors
from grading.api.lessons import lessons_of
from grading.api.schemas import (
    AssignmentIn,
    AssignmentOut,
    BanditOut,
    ErrorOut,
    GradeOut,
    JudgingOut,
    ReadReward,
    ReceiptOut,
    SelectionIn,
    SelectionOut,
    SessionOut,
    TokenOut,
    multipart,
)
from grading.intake import erased, history
from grading.intake.categories.provenance import provenance_of
from grading.intake.first_word import Speaker
from grading.intake.submission import TOO_LARGE, Problem
from grading.judging.allowance import quota
from grading.judging.outlook.estimates import estimate
from grading.models import Agent, ApiToken, Grade, JudgePolicy, Rubric, Session, Settlement
from grading.models.agents import TokenScope
from grading.reward import calibrating, lessons
from grading.reward.rewards import live
from grading.vocabulary import WorkKind
from gradingsite import telemetry
from gradingsite.clients import client_address
from gradingsite.server import ADMITTED

SCALED = {"calibrated", "calibration_version"}
TOKEN_SEEN_EVERY = dt.timedelta(minutes=1)


class Bearer(HttpBearer):
    """An agent's token, as `request.auth`. One for reading only opens what only reads.

    The web server has asked before it read a body (`grading.api.gate`): such a request was counted then.
    """

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken | None:
        now = timezone.now()
        row = ApiToken.objects.authenticate(token, now)
        if row is None:
            return None
        if not row.may_write and request.method not in {"GET", "HEAD"}:
            raise ReadOnly
        if not request.META.get(ADMITTED):
            entry.require(request, row, now)
        if row.last_used_at is None or now - row.last_used_at > TOKEN_SEEN_EVERY:
            ApiToken.objects.filter(pk=row.pk).update(last_used_at=now)
        return row


api = NinjaAPI(
    title="gradingsite API",
    version="1",
    description="Submit finished agent sessions, read how each was graded, and ask what to work on next.",
    urls_namespace="api",
    docs=Pages(),
    auth=Bearer(),
)
answer_errors(api)

# The hook's --resend says so: somebody sends much again, and may not remember what was erased.
RESENT = "X-Gradingsite-Resent"
REWARD, GRADE = (tuple(schema.model_fields.keys() - SCALED) for schema in (ReadReward, GradeOut))
REFUSALS = frozenset({400, 401, 403, 410, 411, 413, 415, 422, 429, 507})


@api.post(
    "/sessions",
    response={201: ReceiptOut, 200: ReceiptOut, REFUSALS: ErrorOut},
    openapi_extra=multipart(),
    summary="Submit a finished session",
)
def submit_session(request: HttpRequest) -> Status[dict[str, Any]]:
    """Send the metadata and whatever the session left behind, in one multipart request.

    Sending the same again changes nothing; more evidence for a known session is added, and it is graded and settled
    again. Where something is wrong, the rest is stored, and the reply says what was expected, what came, what to do.
    A log in an unknown format is no error: it is stored, and a problem in the receipt says so.
    """
    submission = uploads.read(request)
    if submission.metadata is None:
        return _refusal(submission.problems)
    if request.headers.get(RESENT) and erased.is_erased(_agent(request).name, submission.metadata.session_id):
        got = "a session that was erased since it was first sent"
        return _error(410, "erased", "a session that the site may have lost", got, "leave it; it was erased on purpose")
    files = submission.files
    receipt = intake.submit(
        agent=_agent(request),
        metadata=submission.metadata,
        transcript=files.get("transcript"),
        journal=files.get("journal"),
        patch=files.get("patch"),
        facts=files.get("facts"),
        speaker=Speaker(token=_token(request), address=client_address(request.META)),
    )
    telemetry.also(session=receipt.session.external_id)
    problems = (*submission.problems, *receipt.problems)
    if any(problem.is_error for problem in problems):
        return _refusal(problems, stored=("metadata", *receipt.added), session=receipt.session)
    body = {
        "id": receipt.session.pk,
        "session_id": receipt.session.external_id,
        "created": receipt.created,
        "added": receipt.added,
        "reward": receipt.reward,
        "problems": problems,
    }
    return Status(201 if receipt.created else 200, body)


@api.get(
    "/sessions/{session}", response={200: SessionOut, frozenset({401, 404, 429}): ErrorOut}, summary="Read a session"
)
def read_session(request: HttpRequest, session: Path[int]) -> dict[str, Any]:
    """One of the token's own sessions by the id from its receipt, with its reward and how it came about."""
    row = Session.objects.with_people().filter(agent=_agent(request), pk=session).first()
    if row is None:
        raise Http404
    reward, grades, provenance = live(row), list(row.grades.all()), provenance_of(row)
    reader = calibrating.CalibrationReader()
    decides = next((grade for grade in grades if reward is not None and grade.pk == reward.grade_id), None)
    read = None if decides is None or reward is None else reader.calibrate(row, decides, reward.value)
    return {
        **{name: getattr(row, name) for name in ("id", "title", "model", "outcome", "outcome_reason", "history")},
        "session_id": row.external_id,
        "category": row.category and row.category.name,
        "category_given": provenance
        and {"by": provenance.origin, "why": provenance.why, "inferred": provenance.is_inferred},
        "harness": row.harness and row.harness.name,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "reward": reward and _with(reward, REWARD, read),
        "chain": reward.steps if reward else [],
        "grades": [_with(grade, GRADE, reader.calibrate(row, grade)) for grade in grades],
        "evidence": list(row.evidence.all()),
    }


@api.post(
    "/selections",
    response={200: SelectionOut, frozenset({401, 403, 404, 409, 422, 429}): ErrorOut},
    summary="Ask what to work on next",
)
def select(request: HttpRequest, payload: SelectionIn) -> Status[dict[str, Any]]:
    """Draws an arm by its chance of being the best and logs the decision. Only a finished session earns a reward."""
    samples = Agent.objects.filter(is_sample=True).values_list("name", flat=True)
    try:
        made = selection.select(
            **payload.dict(), agent=_agent(request).name, exempt_agents=tuple(samples), now=timezone.now()
        )
    except selection.NothingEligible as error:
        return _error(409, "nothing to choose from", "an arm that is eligible", str(error), "offer other work")
    except selection.TooManyOpen as error:
        return _too_many_open(error)
    except ValueError as error:
        return _error(422, "invalid selection", "a valid selection", str(error), AGAIN)
    fields = ("decision_id", "propensity", "eligible", "explanation", "posterior_version", "created")
    body = {name: getattr(made, name) for name in fields}
    return Status(200, {**body, "bandit": payload.bandit, "arm": made.arm.name})


@api.post(
    "/assignments",
    response={200: AssignmentOut, frozenset({401, 403, 409, 422, 429}): ErrorOut},
    summary="Ask which lessons to give",
)
def assign(request: HttpRequest, payload: AssignmentIn) -> Status[dict[str, Any]]:
    """Draws which of the lessons that match are given and which are held out, and logs each with its chance.

    What is held out by chance shows what a lesson causes; once that is known, few are. Ask before the session begins;
    asked again, the same decision_id gets the same answer, and lessons that are new to it are drawn and added.
    """
    now, lesson = timezone.now(), Bandit.objects.named("lesson")
    who = {"agent": _agent(request).name, "context": payload.context}
    decided = lessons.decided(lesson, now)
    try:
        drawn = holdout.assign(lesson.name, payload.decision_id, payload.lessons, **who, decided=decided, now=now)
    except selection.TooManyOpen as error:
        return _too_many_open(error)
    except holdout.Taken as error:
        return _error(409, "decision_id over", "an id of its own for each session, and then that", str(error), AGAIN)
    except ValueError as error:
        return _error(422, "invalid assignment", "a valid assignment", str(error), AGAIN)
    return Status(200, {"decision_id": drawn.decision_id, "lessons": list(lessons_of(drawn))})


@api.get("/token", response={200: TokenOut, frozenset({401, 429}): ErrorOut}, summary="Check a token")
def read_token(request: HttpRequest) -> dict[str, Any]:
    """Whose token this is and what may be done with it; and the checksum of the hook file that this site serves now."""
    row: ApiToken = request.auth  # type: ignore[attr-defined]
    return {
        "agent": row.agent.name,
        "scope": row.scope,
        "held_by": TokenScope(row.scope).words,
        "may_submit": row.may_write,
        "expires_at": row.expires_at,
        "hook_sha256": hook_checksum(request),
    }


@api.get("/judging", response={200: JudgingOut, frozenset({401, 429}): ErrorOut}, summary="Ask what a verdict costs")
def read_judging(request: HttpRequest) -> dict[str, Any]:
    """For whoever is about to hand in many old sessions: what judging them would cost, and which count as history.

    History is what ended before the agent's first token was made. For a week after a token was made it can be sent with
    `"judge": "none"`, so that nobody asks the judge until a person does, or `"judge": "backlog"`; it keeps its dates.
    """
    rubrics, window = Rubric.objects.in_force(), history.history_window(_token(request))
    rubric = rubrics.get(WorkKind.PRODUCTION) or next(iter(rubrics.values()), None)
    price = estimate(1, rubric) if rubric is not None and quota.is_configured() else None
    return {
        "verdict_usd": price and price.each_usd,
        "measured": price.measured if price else 0,
        "budget_usd": JudgePolicy.objects.current().daily_budget_usd,
        "history_before": window and window.before,
        "history_until": window and window.until,
    }


@api.get("/bandits/{name}", response={200: BanditOut, frozenset({401, 404, 429}): ErrorOut}, summary="Read a bandit")
def read_bandit(request: HttpRequest, name: Path[str]) -> dict[str, Any]:
    """What a bandit believes of each arm now, and what that rests on."""
    del request
    outlook = posterior_of(name, timezone.now())
    changes = outlook.posterior.changes
    broke = {} if changes is None else {arm: each.day for arm, each in changes.breaks.items()}
    arms = [
        {
            **{field: getattr(arm, field) for field in ("arm", "alpha", "beta", "mean", "low", "high", "evidence")},
            "share_of_next_100": outlook.share_of_next_100(arm.arm),
            "since": broke.get(arm.arm),
        }
        for arm in outlook.arms.values()
    ]
    return {"bandit": name, "posterior_version": outlook.posterior.version, "arms": arms}


def _with(row: Settlement | Grade, fields: Iterable[str], read: calibrating.Calibrated | None) -> dict[str, Any]:
    """These fields of a row, and what its value is read as on the judge's scale, where anything maps it."""
    columns = {name: getattr(row, name) for name in fields}
    return {**columns, "calibrated": read and read.value, "calibration_version": read and read.version}


def _token(request: HttpRequest) -> ApiToken:
    token: ApiToken = request.auth  # type: ignore[attr-defined]  # ninja puts what Bearer returned there
    return token


def _agent(request: HttpRequest) -> Agent:
    return _token(request).agent


def _error(status: int, error: str, expected: str, got: str, todo: str) -> Status[dict[str, Any]]:
    return Status(status, {"error": error, "expected": expected, "got": got, "todo": todo})


def _too_many_open(error: selection.TooManyOpen) -> Status[dict[str, Any]]:
    todo = "send one of those sessions with its decision_id, or ask again with the decision_id of one"
    return _error(409, "too many open decisions", "decisions that are used", str(error), todo)


def _refusal(
    problems: Sequence[Problem], *, stored: Sequence[str] = (), session: Session | None = None
) -> Status[dict[str, Any]]:
    """A 4xx for a submission with something wrong: the first problem on top, and what was stored all the same."""
    first = next(problem for problem in problems if problem.is_error)
    reply = _error(
        413 if first.code == TOO_LARGE else 422,
        f"{first.part}: {first.code}",
        first.expected,
        first.got,
        first.todo,
    )
    reply.value.update(stored=list(stored), id=session and session.pk, problems=list(problems))
    return reply
