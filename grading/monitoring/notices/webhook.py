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
from grading.models.notices import Webhook
from grading.monitoring.notices.guarded import ForbiddenAddress, GuardedHTTP, GuardedHTTPS
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
guarded = build_opener(_StayHere, GuardedHTTP, GuardedHTTPS)


def send(notice: Notice, to: Webhook) -> None:
    """POST the row's body. Raises DeliveryRefused or Unreachable.

    Nothing names the whole address, which may hold a secret, nor what the
    answer held besides its status: the address may be of something that is none of the caller's business.
    """
    body = notice.body.encode()
    headers = {"Content-Type": "application/json", "User-Agent": "gradingsite"}
    if to.secret:
        headers[SIGNATURE] = signature(body, to.secret)
    request = Request(to.url, data=body, headers=headers, method="POST")  # noqa: S310 - http(s) only
    # What the environment names, whoever runs the machine has chosen.
    way = opener if notice.to is None else guarded
    try:
        with way.open(request, timeout=settings.NOTIFY_TIMEOUT) as response:
            status = response.status
    except HTTPError as error:
        with error:
            raise _of_status(error.code, to) from error
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ForbiddenAddress):
            raise DeliveryRefused(f"{host(to.url)} was not called: {reason}") from error
        words = getattr(reason, "strerror", None) or reason
        said = "its answer was no HTTP" if isinstance(reason, HTTPException) else words
        raise Unreachable(f"{host(to.url)} could not be reached: {said}") from error
    if status >= REDIRECT:
        raise _of_status(status, to)


def signature(body: bytes, secret: str) -> str:
    """What the receiver computes over the raw body and compares: sha256=HMAC-SHA256(secret, body) in hex."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def host(url: str) -> str:
    """Where notices go, without path and query."""
    return urlsplit(url).hostname or ""


def _of_status(status: int, to: Webhook) -> Exception:
    if status < CLIENT_ERROR:
        return DeliveryRefused(
            f"{host(to.url)} answered {status}, a redirect; expected 2xx. Use the address that it leads to."
        )
    if status in LATER or status >= SERVER_ERROR:
        return Unreachable(f"{host(to.url)} answered {status}; expected 2xx")
    return DeliveryRefused(f"{host(to.url)} answered {status}; expected 2xx")
