"""Every error of the API says what was expected, what came and what to do; none is a page or a traceback."""

import logging
import uuid
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from bandit.models import UnknownArm, UnknownBandit
from grading.api.uploads import UploadRefused

logger = logging.getLogger(__name__)

AGAIN = "correct it and send it again"
REPLIED = (
    AuthenticationError,
    UploadRefused,
    Http404,
    UnknownArm,
    UnknownBandit,
    ValidationError,
    HttpError,
    Exception,
)


def answer_errors(api: NinjaAPI) -> None:
    """Let `api` reply to everything that its operations raise."""
    for exception in REPLIED:
        api.add_exception_handler(exception, reply)


def reply(request: HttpRequest, error: Any) -> HttpResponse:
    """What the API says of an error: error, expected, got and todo. A bug is a number to the caller, under which the
    log has the traceback.
    """
    headers: dict[str, str] = {}
    status, todo = 422, AGAIN
    match error:
        case AuthenticationError():
            status, name, expected = 401, "unauthorised", "Authorization: Bearer gs_… with a live token"
            sent = request.headers.get("Authorization")
            got = "an unknown or revoked token" if sent else "no Authorization header"
            todo = "make a token on the page “Connect an agent”"
            headers["WWW-Authenticate"] = "Bearer"
        case UploadRefused():
            said = error.problem
            status, name, expected, got, todo = error.status, said.code, said.expected, said.got, said.todo
        case Http404():
            status, name, got = 404, "not found", request.path
            expected = "the id of one of your own sessions, as its receipt gave it"
            todo = "check the id, and whose token this is"
        case UnknownArm():
            name, expected, got = "unknown arm", "the name of an arm", str(error)
        case UnknownBandit():
            status, name, expected, got = 404, "unknown bandit", "the name of a bandit", str(error)
        case ValidationError():
            first = error.errors[0]
            where = ".".join(str(step) for step in first["loc"])
            name, expected = f"invalid {where}", str(first["msg"])
            got = f"{len(error.errors)} invalid field(s), the first {where}"
        case HttpError():
            status, name, expected, got = error.status_code, "unreadable", "a valid request", str(error)
        case _:
            incident = uuid.uuid4().hex[:12]
            logger.error("incident %s at %s", incident, request.path, exc_info=error)
            status, name, expected, got = 500, f"incident {incident}", "no bug in the site", "one"
            todo = f"send it again later, and tell the operator: the site's log explains incident {incident}"
    body: dict[str, Any] = {
        "error": name,
        "expected": expected,
        "got": got,
        "todo": todo,
        "stored": [],
        "id": None,
        "problems": [],
    }
    return JsonResponse(body, status=status, headers=headers)
