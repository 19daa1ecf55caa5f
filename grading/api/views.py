"""The operations of the HTTP API, and its authentication by tokens."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils import timezone
from ninja import NinjaAPI, Path, Status
from ninja.security import HttpBearer

from bandit import holdout, selection
from bandit.models import Bandit
from bandit.reading import posterior_of
from grading import disk, intake
from grading.agent.views import hook_checksum
from grading.api import uploads
from grading.api.docs import Pages
from grading.api.errors import AGAIN, WrongScope, add_handlers
from grading.api.schemas import (
    AssignmentIn,
    AssignmentOut,
    BanditOut,
    ErrorOut,
    GradeOut,
    JudgingOut,
    OutcomeOut,
    OutcomesIn,
    OutcomesOut,
    ReadReward,
    ReceiptOut,
    SelectionIn,
    SelectionOut,
    SessionOut,
    TokenOut,
    multipart,
)
from grading.intake import erased, token_quota
from grading.intake.categories.provenance import provenance_of
from grading.intake.first_word import Speaker, history_window
from grading.intake.submission import TOO_LARGE, Line, Problem
from grading.judging.allowance import quota
from grading.judging.outlook.estimates import estimate
from grading.models import Agent, ApiToken, Grade, JudgePolicy, Rubric, Session, Settlement
from grading.models.agents import TokenScope
from grading.outcomes import recording
from grading.outcomes.recording import ReportedOutcome
from grading.plain import primary_key
from grading.reward import calibrating, lessons
from grading.reward.rewards import live
from grading.vocabulary import WorkKind
from gradingsite import telemetry
from gradingsite.clients import client_address
from gradingsite.server import ADMITTED

CALIBRATION_FIELDS = {"calibrated", "calibration_version"}
# How often `last_used_at` of a token is updated.
TOKEN_USE_INTERVAL = dt.timedelta(minutes=1)


class Bearer(HttpBearer):
    """Authenticates an agent's token, which is then `request.auth`, and counts the request against its quota.

    The web server does so before it reads a body (`grading.api.gate`): the request isn't counted again after that.
    """

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken | None:
        now = timezone.now()
        row = ApiToken.objects.authenticate(token, now)
        if row is None:
            return None
        _require_scope(request, TokenScope(row.scope))
        if not request.META.get(ADMITTED):  # otherwise the gate has counted it
            count_request(request, row, now)
        if row.last_used_at is None or now - row.last_used_at > TOKEN_USE_INTERVAL:
            ApiToken.objects.filter(pk=row.pk).update(last_used_at=now)
        return row


def _require_scope(request: HttpRequest, scope: TokenScope) -> None:
    """Raise WrongScope if a token of this scope may not send the request."""
    is_outcome = request.path.endswith("/outcomes")
    if scope is TokenScope.READ and request.method not in {"GET", "HEAD"}:
        raise WrongScope("reading only", "a token of the agent, its hook or its runner", "a token for reading only")
    if is_outcome and not scope.may_report_outcomes:
        raise WrongScope("no outcomes", "a token of a runner or of CI", f"a token held by {scope.words}")
    if scope is TokenScope.OUTCOMES and not is_outcome and request.path != reverse("api:read_token"):
        raise WrongScope("only outcomes", "a token that may read or submit sessions", f"a token held by {scope.words}")


def count_request(request: HttpRequest, token: ApiToken, now: dt.datetime) -> None:
    """Count a request against its token's quota. Raises UploadRefused, NoRoom or OverQuota, and then counts nothing."""
    size = 0
    if request.method not in {"GET", "HEAD"}:
        is_upload = request.path == reverse("api:submit_session")
        size = uploads.size(request) if is_upload else uploads.length(request, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        if is_upload and disk.is_short(size):
            raise disk.NoRoom
    token_quota.spend(token, size, now)


api = NinjaAPI(
    title="gradingsite API",
    version="1",
    description="Submit finished agent sessions, read how each was graded, and ask what to work on next.",
    urls_namespace="api",
    docs=Pages(),
    auth=Bearer(),
)
add_handlers(api)

# A header of the hook's --resend: the sender may not know which of its sessions were erased here.
RESENT = "X-Gradingsite-Resent"
REWARD, GRADE = (tuple(schema.model_fields.keys() - CALIBRATION_FIELDS) for schema in (ReadReward, GradeOut))
REFUSALS = frozenset({400, 401, 403, 410, 411, 413, 415, 422, 429, 507})


@api.post(
    "/sessions",
    response={201: ReceiptOut, 200: ReceiptOut, REFUSALS: ErrorOut},
    openapi_extra=multipart(),
    summary="Submit a finished session",
)
def submit_session(request: HttpRequest) -> Status[dict[str, Any]]:
    """Send the metadata and whatever the session left behind, in one multipart request.

    Sending the same again changes nothing. New evidence for a session that exists is added, and the session is graded
    and settled again. If something is wrong, the rest is stored, and the reply says what was expected, what came and
    what to do. A log in an unknown format is no error: it is stored, and a problem in the receipt says so.
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
    """One session of the token's agent, by the id from its receipt, with its reward and how that was computed."""
    row = Session.objects.with_people().filter(agent=_agent(request), pk=session).first()
    if row is None:
        raise Http404
    reward, grades, provenance = live(row), list(row.grades.all()), provenance_of(row)
    reader = calibrating.CalibrationReader()
    deciding = next((grade for grade in grades if reward is not None and grade.pk == reward.grade_id), None)
    calibrated = None if deciding is None or reward is None else reader.calibrate(row, deciding, reward.value)
    return {
        **{name: getattr(row, name) for name in ("id", "title", "model", "outcome", "outcome_reason", "history")},
        "session_id": row.external_id,
        "category": row.category and row.category.name,
        "category_given": provenance
        and {"by": provenance.origin, "why": provenance.why, "inferred": provenance.is_inferred},
        "harness": row.harness and row.harness.name,
        "project": row.project and row.project.name,
        "task": row.task,
        "facts": getattr(row, "facts", None),
        **{name: getattr(row, name) for name in ("tokens", "cost_micro", "cost_unknown")},
        "has_subscription": row.agent.has_subscription,
        "reported_cost_usd": row.cost_usd,
        "usage": list(row.usage.all()),
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "reward": reward and _with_calibration(reward, REWARD, calibrated),
        "chain": reward.steps if reward else [],
        "grades": [_with_calibration(grade, GRADE, reader.calibrate(row, grade)) for grade in grades],
        "evidence": list(row.evidence.all()),
        "outcomes": list(row.outcomes.latest_per_kind().values()),
    }


@api.post(
    "/sessions/{path:session}/outcomes",
    response={201: OutcomeOut, 200: OutcomeOut, frozenset({401, 403, 404, 422, 429}): ErrorOut},
    summary="Report what became of a session's work",
)
def report_outcome(request: HttpRequest, session: Path[Line], payload: ReportedOutcome) -> Status[Any]:
    """For CI and runners, never for the graded agent: whether the work passed, was merged, deployed or reverted.

    `session` is the agent's own id of the session, or the id from its receipt. What one token observed at one time is
    stored once. Of each kind the outcome observed last is in force. No outcome changes a reward.
    """
    row = _session_named(_agent(request), session)
    if row is None:
        raise Http404
    stored, is_new = recording.record(row, payload, **_reporter(request))
    return Status(201 if is_new else 200, stored)


@api.post(
    "/outcomes",
    response={200: OutcomesOut, frozenset({401, 403, 422, 429}): ErrorOut},
    summary="Report outcomes of many sessions",
)
def report_outcomes(request: HttpRequest, payload: OutcomesIn) -> dict[str, Any]:
    """As for one session. Each outcome is stored by itself; `problems` says which were not, and why."""
    agent, reporter = _agent(request), _reporter(request)
    counts, problems = Counter[str](), []
    for number, outcome in enumerate(payload.outcomes):
        row = _session_named(agent, outcome.session)
        if row is None:
            problems.append(f"outcomes[{number}]: expected the id of a session of {agent}; got {outcome.session!r}")
            continue
        _, is_new = recording.record(row, outcome, **reporter)
        counts["new" if is_new else "known"] += 1
    return {"new": counts["new"], "known": counts["known"], "problems": problems}


@api.post(
    "/selections",
    response={200: SelectionOut, frozenset({401, 403, 404, 409, 422, 429}): ErrorOut},
    summary="Ask what to work on next",
)
def select(request: HttpRequest, payload: SelectionIn) -> Status[dict[str, Any]]:
    """Draw an arm by its chance of being the best, and record the decision. Only a finished session earns a reward."""
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
    """Draw which of the matching lessons are given and which are held out, and record each with its chance.

    Sessions from which a lesson was held out show what it causes. Once that is known, it is rarely held out. Ask before
    the session begins. A repeated decision_id gets the same answer, and lessons that are new to it are drawn and added.
    """
    now, bandit = timezone.now(), Bandit.objects.named("lesson")
    who = {"agent": _agent(request).name, "context": payload.context}
    decided = lessons.decided(bandit, now)
    try:
        drawn = holdout.assign(bandit.name, payload.decision_id, payload.lessons, **who, decided=decided, now=now)
    except selection.TooManyOpen as error:
        return _too_many_open(error)
    except holdout.Taken as error:
        return _error(409, "decision_id over", "an id of its own for each session, and then that", str(error), AGAIN)
    except ValueError as error:
        return _error(422, "invalid assignment", "a valid assignment", str(error), AGAIN)
    return Status(200, {"decision_id": drawn.decision_id, "lessons": list(_drawn_lessons(drawn))})


@api.get("/token", response={200: TokenOut, frozenset({401, 429}): ErrorOut}, summary="Check a token")
def read_token(request: HttpRequest) -> dict[str, Any]:
    """The token's agent and scope, and the checksum of the hook file that this site serves now."""
    row = _token(request)
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
    """Before submitting many old sessions: what judging them would cost, and which of them count as history.

    History is every session that ended before the agent's first token was made. For a week after a token was made, such
    sessions can be sent with it, with their own dates, and with `"judge": "none"` to have none judged until a person
    asks for it, or `"judge": "backlog"`.
    """
    rubrics, window = Rubric.objects.in_force(), history_window(_token(request))
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
    """The bandit's posterior of each arm now, and the evidence behind it."""
    del request
    outlook = posterior_of(name, timezone.now())
    changes = outlook.posterior.changes
    break_days = {} if changes is None else {arm: each.day for arm, each in changes.breaks.items()}
    arms = [
        {
            **{field: getattr(arm, field) for field in ("arm", "alpha", "beta", "mean", "low", "high", "evidence")},
            "share_of_next_100": outlook.share_of_next_100(arm.arm),
            "since": break_days.get(arm.arm),
        }
        for arm in outlook.arms.values()
    ]
    return {"bandit": name, "posterior_version": outlook.posterior.version, "arms": arms}


def _with_calibration(
    row: Settlement | Grade, fields: Iterable[str], calibrated: calibrating.Calibrated | None
) -> dict[str, Any]:
    """These fields of a row, and its calibrated value, if there is one."""
    return {
        **{name: getattr(row, name) for name in fields},
        "calibrated": calibrated and calibrated.value,
        "calibration_version": calibrated and calibrated.version,
    }


def _drawn_lessons(drawn: holdout.Drawn) -> Iterator[dict[str, Any]]:
    """Each lesson of the decision as `LessonOut`: first those that were drawn, then those that were left out."""
    spelling = {name: text for text, name in drawn.names.items()}  # of the request, by the arm's name
    for row in drawn.rows:
        name = row.arm.current.name
        why = "taken: nothing is held out"
        if row.chance != 1:
            held_out = f"{round(100 * (1 - row.chance), 1):g} % are held out by chance, to see what it causes"
            why = f"taken: {held_out}" if row.taken else f"held out: {held_out}"
        lesson = {"lesson": name, "asked": spelling.get(name, name), "taken": row.taken, "chance": row.chance}
        yield {**lesson, "why": why}
    for name, reason in drawn.left_out.items():
        lesson = {"lesson": name, "asked": spelling[name], "taken": False, "chance": None}
        yield {**lesson, "why": f"left out: {reason}"}


def _session_named(agent: Agent, name: str) -> Session | None:
    """A session of the agent by the agent's own id, or else by the id of its receipt."""
    sessions = Session.objects.filter(agent=agent)
    return sessions.filter(external_id=name).first() or sessions.filter(pk=primary_key(name)).first()


def _reporter(request: HttpRequest) -> dict[str, Any]:
    """Who reports an outcome, and who therefore vouches for it."""
    token = _token(request)
    return {"source": f"token {token.pk}", "witness": token.witness}


def _token(request: HttpRequest) -> ApiToken:
    token: ApiToken = request.auth  # type: ignore[attr-defined]  # ninja sets it to what Bearer returned
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
    """A 4xx for a submission with problems: the first error, all problems, and the parts that were stored."""
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
