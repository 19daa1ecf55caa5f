"""Events for History: `record` writes one."""

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
    """Middleware: lets `record` know whose request is being answered, however deep the act that it records."""

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
    """Write down that somebody did something: `what` is a clause, as in "made a token for bob".

    `who` is the person or token behind `request`, the request that is being answered, unless it is said. Text may come
    from anybody: it is shortened, and what would not be seen in it is made visible.
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
    """A username, or a token by its agent and last characters; empty for nobody. Of the request being answered."""
    request = request or _request.get()
    if request is None:
        return CONSOLE
    token = getattr(request, "auth", None)
    if isinstance(token, ApiToken):
        return f"token {token}"
    user = getattr(request, "user", None)
    return str(user.get_username()) if user else ""
