"""Writing audit events."""

from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

from grading.models.agents import ApiToken
from grading.models.audit import AuditEvent, AuditKind
from grading.plain import visible_text
from gradingsite.clients import client_address

CONSOLE = "the server’s console"
_request: ContextVar[HttpRequest | None] = ContextVar("request", default=None)


def remember_request(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that tells `record` which request is being answered, so that services need not pass it on."""

    def answer(request: HttpRequest) -> HttpResponse:
        token = _request.set(request)
        try:
            return get_response(request)
        finally:
            _request.reset(token)

    return answer


def record(
    kind: AuditKind, what: str, *, detail: str = "", who: str | None = None, request: HttpRequest | None = None
) -> AuditEvent:
    """Store an event. `what` is a clause, such as "made a token for bob".

    `request` is the request that is being answered, by default the current one; `who` is by default its `actor`. Texts
    may come from anybody: they are truncated, and invisible characters in them are made visible.
    """
    request = request or _request.get()
    return AuditEvent.objects.create(
        kind=kind,
        who=visible_text(actor(request) if who is None else who, 150),
        what=visible_text(what, 300),
        detail=visible_text(detail, 500),
        address=client_address(request.META)[:45] if request else "",
    )


def actor(request: HttpRequest | None = None) -> str:
    """Who sent the request (by default the current one): a username, or a token's name.

    Empty if nobody is signed in; CONSOLE if there is no request.
    """
    request = request or _request.get()
    if request is None:
        return CONSOLE
    token = getattr(request, "auth", None)
    if isinstance(token, ApiToken):
        return f"token {token}"
    user = getattr(request, "user", None)
    return str(user.get_username()) if user else ""
