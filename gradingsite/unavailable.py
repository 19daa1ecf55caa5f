"""What a browser is told while the database is busy or away or the disk is full: a page that says so and when to try
again, and the status 503. The API has words of its own for it (`grading.api.errors`).
"""

import logging
import sys
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.views import defaults

from grading.api.errors import reply
from grading.busy import Unavailable, trouble

logger = logging.getLogger(__name__)


class UnavailableMiddleware:
    """Answers for views that could not write in time."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        found = trouble(error)
        return None if found is None else unavailable(request, error, found)


def server_error(request: HttpRequest) -> HttpResponse:
    """The site's last word on an error that no view raised: a middleware may have written too, a session's end say."""
    error = sys.exc_info()[1]
    found = trouble(error)
    return defaults.server_error(request) if error is None or found is None else unavailable(request, error, found)


def unavailable(request: HttpRequest, error: BaseException, found: Unavailable) -> HttpResponse:
    logger.warning("%s %s: %s (%s)", request.method, request.path, found.title, error)
    if request.path.startswith("/api/"):
        return reply(request, error)
    page = loader.render_to_string("503.html", {"trouble": found})
    return HttpResponse(page, status=503, headers={"Retry-After": str(found.seconds), "Cache-Control": "no-store"})
