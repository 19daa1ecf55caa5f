"""Every error of the API says what was expected, what came and what to do; none is a page or a traceback."""

import logging
import uuid
from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from bandit.models import UnknownArm, UnknownBandit
from grading.api.uploads import UploadRefused

logger = logging.getLogger(__name__)

AGAIN = "correct it and send it again"


def answer_errors(api: NinjaAPI) -> None:
    """Let `api` reply to everything that its operations raise."""
    for exception, reply in REPLIES.items():
        api.add_exception_handler(exception, reply)


def _reply(request: HttpRequest, status: int, **said: str) -> HttpResponse:
    """Replies with `said`: error, expected, got and todo."""
    del request
    return JsonResponse({**said, "stored": [], "id": None, "problems": []}, status=status)


def _no_token(request: HttpRequest, error: Exception) -> HttpResponse:
    del error
    response = _reply(
        request,
        401,
        error="unauthorised",
        expected="Authorization: Bearer gs_… with a live token",
        got="an unknown or revoked token" if request.headers.get("Authorization") else "no Authorization header",
        todo="make a token on the page “Connect an agent”",
    )
    response["WWW-Authenticate"] = "Bearer"
    return response


def _refused(request: HttpRequest, error: UploadRefused) -> HttpResponse:
    said = error.problem
    return _reply(request, error.status, error=said.code, expected=said.expected, got=said.got, todo=said.todo)


def _not_found(request: HttpRequest, error: Exception) -> HttpResponse:
    del error
    return _reply(
        request,
        404,
        error="not found",
        expected="the id of one of your own sessions, as its receipt gave it",
        got=request.path,
        todo="check the id, and whose token this is",
    )


def _unknown_arm(request: HttpRequest, error: Exception) -> HttpResponse:
    return _reply(request, 422, error="unknown arm", expected="the name of an arm", got=str(error), todo=AGAIN)


def _unknown_bandit(request: HttpRequest, error: Exception) -> HttpResponse:
    return _reply(request, 404, error="unknown bandit", expected="the name of a bandit", got=str(error), todo=AGAIN)


def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    first = error.errors[0]
    where = ".".join(str(step) for step in first["loc"])
    return _reply(
        request,
        422,
        error=f"invalid {where}",
        expected=str(first["msg"]),
        got=f"{len(error.errors)} invalid field(s), the first {where}",
        todo=AGAIN,
    )


def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return _reply(
        request, error.status_code, error="unreadable", expected="a valid request", got=str(error), todo=AGAIN
    )


def _bug(request: HttpRequest, error: Exception) -> HttpResponse:
    """A bug of ours. The caller gets a number, under which the log has the traceback, and nothing else."""
    incident = uuid.uuid4().hex[:12]
    logger.error("incident %s at %s", incident, request.path, exc_info=error)
    return _reply(
        request,
        500,
        error=f"incident {incident}",
        expected="no bug in the site",
        got="one",
        todo=f"send it again later, and tell the operator: the site's log explains incident {incident}",
    )


REPLIES: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
    AuthenticationError: _no_token,
    UploadRefused: _refused,
    Http404: _not_found,
    UnknownArm: _unknown_arm,
    UnknownBandit: _unknown_bandit,
    ValidationError: _invalid,
    HttpError: _http_error,
    Exception: _bug,
}
