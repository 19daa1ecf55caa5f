"""Addresses for monitoring programs: liveness, readiness, and metrics for Prometheus."""

from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from grading.busy import trouble
from grading.health.readiness import metrics, readiness
from grading.judging.outlook.standing import standings
from grading.models import ApiToken
from grading.models.agents import TokenScope
from gradingsite.clients import normalize_address

# Headers that proxies add. A request with any of them comes from another machine.
FORWARDED = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via")
RETRY_SECONDS = "10"


@require_safe
def live(request: HttpRequest) -> JsonResponse:  # noqa: ARG001 - a view's signature
    """200 if this process answers at all. Runs no query."""
    return answer({"live": True})


@require_safe
def ready(request: HttpRequest) -> JsonResponse:  # noqa: ARG001 - a view's signature
    """200 if the site does its work, else 503 with the problems."""
    try:
        open_judges = [role for role, (_model, may_be_asked) in judges().items() if may_be_asked]
        state = readiness(timezone.now(), open_judges)
    except Exception as error:
        problem = trouble(error)
        if problem is None:
            raise
        return answer({"ready": False, "problems": [problem.title], "checks": {}}, status=503)
    body = {"ready": not state.problems, "problems": state.problems, "checks": state.checks}
    return answer(body, status=503 if state.problems else 200)


@require_safe
def figures(request: HttpRequest) -> HttpResponse:
    """Metrics for Prometheus. Allowed with a read-only token and, on a site of one machine, from that machine."""
    if not (is_local(request) or has_read_token(request)):
        response = HttpResponse("expected a token for reading only, as Authorization: Bearer gs_…\n", status=401)
        response["WWW-Authenticate"] = "Bearer"
        return response
    return HttpResponse(metrics(timezone.now(), judges()), content_type=CONTENT_TYPE_LATEST)


def judges() -> dict[str, tuple[str, bool]]:
    """The configured judges by role: (model, whether it may be asked). Two queries."""
    return {role: (standing.judge.model, not standing.quota.is_out) for role, standing in standings().items()}


def answer(body: dict[str, object], status: int = 200) -> JsonResponse:
    headers = {"Cache-Control": "no-store", **({"Retry-After": RETRY_SECONDS} if status != 200 else {})}  # noqa: PLR2004
    return JsonResponse(body, status=status, headers=headers)


def is_local(request: HttpRequest) -> bool:
    """Whether a request comes from this machine, on a site that is served to no other machine.

    A proxy on this machine has the same address, so nothing is local if the settings name one.
    """
    if settings.HTTPS or settings.SITE_URL or settings.TRUSTED_PROXIES:
        return False
    address = normalize_address(request.META.get("REMOTE_ADDR", ""))
    host = request.get_host().rpartition(":")[0] or request.get_host()
    is_here = bool(address) and ip_address(address).is_loopback and host in {"localhost", "127.0.0.1", "[::1]"}
    return is_here and not any(name in request.headers for name in FORWARDED)


def has_read_token(request: HttpRequest) -> bool:
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    row = ApiToken.objects.authenticate(secret) if kind.lower() == "bearer" and secret else None
    return row is not None and row.scope == TokenScope.READ
