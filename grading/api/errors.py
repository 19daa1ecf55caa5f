"""The API's replies to errors: JSON that says what was expected, what came and what to do."""

import logging
import uuid
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from bandit.models import UnknownArm, UnknownBandit
from grading import disk
from grading.api.uploads import UploadRefused
from grading.busy import trouble
from grading.evidence.store import Damaged
from grading.intake.token_quota import OverQuota

logger = logging.getLogger(__name__)

AGAIN = "correct it and send it again"


class WrongScope(Exception):
    """A token was used for what its scope does not allow. `expected` and `got` describe tokens."""

    def __init__(self, name: str, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.name, self.expected, self.got = name, expected, got


HANDLED = (
    AuthenticationError,
    WrongScope,
    UploadRefused,
    OverQuota,
    disk.NoRoom,
    Damaged,
    Http404,
    UnknownArm,
    UnknownBandit,
    ValidationError,
    HttpError,
    Exception,
)


def add_handlers(api: NinjaAPI) -> None:
    """Let `api` answer every exception of its operations by `reply`."""
    for exception in HANDLED:
        api.add_exception_handler(exception, reply)


def reply(request: HttpRequest, error: Any) -> HttpResponse:  # noqa: PLR0915 - one case for each error
    """The reply to an error (`ErrorOut`). For a bug, it has a number under which the log has the traceback."""
    headers: dict[str, str] = {}
    status, todo = 422, AGAIN
    match error:
        case AuthenticationError():
            status, name, expected = 401, "unauthorised", "Authorization: Bearer gs_… with a live token"
            sent = request.headers.get("Authorization")
            got = "an unknown, expired or revoked token" if sent else "no Authorization header"
            todo = "make a token on the page “Connect an agent”"
            headers["WWW-Authenticate"] = "Bearer"
        case WrongScope():
            status, name, expected, got = 403, error.name, error.expected, error.got
            todo = "make another token on the page “Connect an agent”"
        case UploadRefused():
            part = error.problem
            status, name, expected, got, todo = error.status, part.code, part.expected, part.got, part.todo
        case OverQuota():
            seconds = max(1, round((error.resets - timezone.now()).total_seconds()))
            status, name, expected = 429, "over quota", f"at most {error.limit:,} {error.what} a day with one token"
            got = f"{error.used:,} since midnight ({settings.TIME_ZONE})"
            todo = f"send it again after {error.resets.isoformat()}, or have TOKEN_DAILY_{error.what.upper()} raised"
            headers["Retry-After"] = str(seconds)
        case disk.NoRoom():
            status, name, expected = 507, "no room", "room on the site's disk"
            got, todo = "too little", "keep it and send it again later; the site's operator has to make room"
            headers["Retry-After"] = "600"
        case Damaged():
            logger.error("%s at %s", error, request.path)
            status, name, expected, got = 503, "damaged evidence", "earlier evidence as it was stored", str(error)
            todo = "keep it and send it again later; the site's operator has to restore what is damaged"
            headers["Retry-After"] = "600"
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
        case _ if outage := trouble(error):
            status, name, expected, got = 503, outage.name.lower(), "a site that can store what comes", outage.words
            todo, headers["Retry-After"] = f"send it again in {outage.seconds} s", str(outage.seconds)
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
