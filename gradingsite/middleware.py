"""Middleware: request ids, visible text in pages, and a 503 page while the database or the disk is unavailable."""

import logging
import sys
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.views import defaults

from grading.api.errors import reply
from grading.busy import Unavailable, trouble
from grading.plain import UNSEEN, visible_text
from gradingsite import telemetry

logger = logging.getLogger(__name__)

View = Callable[[HttpRequest], HttpResponse]


def add_request_id(get_response: View) -> View:
    """Give each request an id, which is also in its log lines and in its reply (X-Request-Id)."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request_id = uuid.uuid4().hex[:16]
        with telemetry.about(f"{request.method}", request=request_id):
            response = get_response(request)
        response.headers["X-Request-Id"] = request_id
        return response

    return middleware


def show_invisible_characters(get_response: View) -> View:
    """In pages, replace characters that hide or reorder text by their names, such as ⟨U+202E⟩."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not response.streaming and response.headers.get("Content-Type", "").startswith("text/html"):
            # UNSEEN matches \r, but \r\n is an ordinary end of a line.
            text = response.content.decode(response.charset).replace("\r\n", "\n")
            if UNSEEN.search(text):
                response.content = visible_text(text, lines=True)
        return response

    return middleware


class UnavailableMiddleware:
    """Answers 503 if a view failed because the database is busy or away, or the disk is full."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        problem = trouble(error)
        return None if problem is None else _unavailable(request, error, problem)


def server_error(request: HttpRequest) -> HttpResponse:
    """The handler of status 500. Answers 503 instead if the database or disk is unavailable.

    UnavailableMiddleware gets only the errors of views. This handler also gets others, such as those of a middleware
    that writes.
    """
    error = sys.exc_info()[1]
    problem = trouble(error)
    if error is None or problem is None:
        return defaults.server_error(request)
    return _unavailable(request, error, problem)


def _unavailable(request: HttpRequest, error: BaseException, problem: Unavailable) -> HttpResponse:
    """The reply with status 503: JSON from the API, otherwise a page. Logs a warning."""
    logger.warning("%s %s: %s (%s)", request.method, request.path, problem.title, error)
    if request.path.startswith("/api/"):
        return reply(request, error)
    page = loader.render_to_string("503.html", {"trouble": problem})
    return HttpResponse(page, status=503, headers={"Retry-After": str(problem.seconds), "Cache-Control": "no-store"})
