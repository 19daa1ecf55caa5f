"""Notices to a webhook: JSON, signed, no redirects followed."""

import hashlib
import hmac
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from django.conf import settings

from grading.models import Notice
from grading.monitoring.notices.outcomes import DeliveryRefused, Unreachable

SIGNATURE = "X-Gradingsite-Signature"
# Statuses by which a server says "not now".
LATER = frozenset({408, 425, 429})
REDIRECT, CLIENT_ERROR, SERVER_ERROR = 300, 400, 500


class _StayHere(HTTPRedirectHandler):
    """A redirect would send what was meant for one host to another."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


opener = build_opener(_StayHere)


def send(notice: Notice) -> None:
    """POST the row's body. Raises DeliveryRefused or Unreachable; neither names the address: it may hold a secret."""
    if not settings.NOTIFY_WEBHOOK:
        raise DeliveryRefused("no webhook is configured any more (NOTIFY_WEBHOOK)")
    body = notice.body.encode()
    headers = {"Content-Type": "application/json", "User-Agent": "gradingsite"}
    if settings.NOTIFY_WEBHOOK_SECRET:
        headers[SIGNATURE] = signature(body, settings.NOTIFY_WEBHOOK_SECRET)
    request = Request(settings.NOTIFY_WEBHOOK, data=body, headers=headers, method="POST")  # noqa: S310 - http(s) only
    try:
        with opener.open(request, timeout=settings.NOTIFY_TIMEOUT) as response:
            status = response.status
    except HTTPError as error:
        with error:
            raise _of_status(error.code) from error
    except (URLError, HTTPException, OSError) as error:
        raise Unreachable(f"{host()} could not be reached: {getattr(error, 'reason', error)}") from error
    if status >= REDIRECT:
        raise _of_status(status)


def signature(body: bytes, secret: str) -> str:
    """What the receiver computes over the raw body and compares: sha256=HMAC-SHA256(secret, body) in hex."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def host() -> str:
    """Where notices go, without path and query."""
    parts = urlsplit(settings.NOTIFY_WEBHOOK)
    return parts.hostname or ""


def _of_status(status: int) -> Exception:
    if status < CLIENT_ERROR:
        return DeliveryRefused(
            f"{host()} answered {status}, a redirect; expected 2xx. Set NOTIFY_WEBHOOK to the last address."
        )
    if status in LATER or status >= SERVER_ERROR:
        return Unreachable(f"{host()} answered {status}; expected 2xx")
    return DeliveryRefused(f"{host()} answered {status}; expected 2xx")
