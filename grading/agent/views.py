"""Serving the hook file."""

import hashlib
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse

SOURCE = Path(__file__).with_name("submit_session.py")
PLACEHOLDER = '"http://127.0.0.1:8000"  # the site that served this file'


def submit_session(request: HttpRequest) -> HttpResponse:
    """The hook file as it is in the repository, with the address of this site. Holds no secret; needs no log-in."""
    response = HttpResponse(hook_for(site_address(request)), content_type="text/x-python; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="submit_session.py"'
    return response


def site_address(request: HttpRequest) -> str:
    return settings.SITE_URL.rstrip("/") or request.build_absolute_uri("/").rstrip("/")


def hook_for(address: str) -> str:
    return SOURCE.read_text().replace(PLACEHOLDER, f"{address!r}  # the site that served this file")


def hook_checksum(request: HttpRequest) -> str:
    """The SHA-256 of the hook file as it is served, in hexadecimal."""
    return hashlib.sha256(hook_for(site_address(request)).encode()).hexdigest()
