"""What the web server asks before it reads the body of a request."""

from typing import Any

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja.errors import AuthenticationError

from grading.api import uploads
from grading.api.errors import reply
from grading.api.uploads import UploadRefused
from grading.api.views import Bearer


def refusal_of(environ: dict[str, Any]) -> HttpResponse | None:
    """The reply to a request whose body is not to be read; None where it is. `environ` is as WSGI has it, its body yet
    to come.
    """
    request = WSGIRequest(environ)
    if not request.path.startswith(reverse("api:api-root")):
        return _refusal_of_page(request)
    close_old_connections()
    try:
        if Bearer()(request) is None:
            return reply(request, AuthenticationError())
    except Exception as error:  # noqa: BLE001  the API has a reply to each
        return reply(request, error)
    finally:
        close_old_connections()
    return None


def _refusal_of_page(request: HttpRequest) -> HttpResponse | None:
    """No page takes files."""
    try:
        uploads.length(request, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    except UploadRefused as error:
        return HttpResponse(f"{error.problem}\n", status=error.status, content_type="text/plain; charset=utf-8")
    return None
