"""The check that the web server makes before it reads the body of a request."""

from typing import Any

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.db import close_old_connections
from django.http import HttpResponse
from django.urls import reverse
from ninja.errors import AuthenticationError

from grading.api import uploads
from grading.api.errors import reply
from grading.api.uploads import UploadRefused
from grading.api.views import Bearer


def refusal_of(environ: dict[str, Any]) -> HttpResponse | None:
    """The reply to a request whose body must not be read; None to read it. `environ` is WSGI's, without the body."""
    request = WSGIRequest(environ)
    if not request.path.startswith(reverse("api:api-root")):  # a page, none of which accepts files
        try:
            uploads.length(request, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        except UploadRefused as error:
            return HttpResponse(f"{error.problem}\n", status=error.status, content_type="text/plain; charset=utf-8")
        return None
    close_old_connections()
    try:
        if Bearer()(request) is None:
            return reply(request, AuthenticationError())
    except Exception as error:  # noqa: BLE001  the API replies to every exception
        return reply(request, error)
    finally:
        close_old_connections()
    return None
