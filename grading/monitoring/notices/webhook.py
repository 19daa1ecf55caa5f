"""Notices to a webhook: signed JSON. No redirects are followed, and some addresses are never called."""

import hashlib
import hmac
import ssl
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from django.conf import settings

from grading.models import Notice
from grading.models.notices import Webhook
from grading.monitoring.notices.outcomes import DeliveryRefused, Unreachable

SIGNATURE = "X-Gradingsite-Signature"
# Statuses of temporary refusals.
TEMPORARY = frozenset({408, 425, 429})
REDIRECT, CLIENT_ERROR, SERVER_ERROR = 300, 400, 500
# Where machines in a cloud get their own keys. Most such addresses are link-local; these are not.
METADATA = frozenset(map(ip_address, ("fd00:ec2::254", "100.100.100.200", "192.0.0.192")))


class ForbiddenAddress(OSError):
    """The host's address is never called: it is link-local, multicast or a cloud's metadata service."""


def check_address(address: str) -> None:
    """Raises ForbiddenAddress for an IP address that nothing is sent to."""
    ip = ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.is_link_local or ip.is_multicast or ip in METADATA:
        raise ForbiddenAddress(f"notices are never sent to {ip}")


class _Connection(HTTPConnection):
    """Checks the address that it has connected to, since a name may lead elsewhere a moment later."""

    def connect(self) -> None:
        super().connect()
        check_address(self.sock.getpeername()[0])


class _SecureConnection(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        check_address(self.sock.getpeername()[0])


class _GuardedHTTP(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Connection, req)


class _GuardedHTTPS(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        secure: Any = _SecureConnection
        return self.do_open(secure, req, context=ssl.create_default_context())


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would send a notice for one host to another."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


opener = build_opener(_NoRedirects)
# For addresses that an operator typed: an operator may not make this machine call any address.
guarded = build_opener(_NoRedirects, _GuardedHTTP, _GuardedHTTPS)


def send(notice: Notice, to: Webhook) -> None:
    """POST the notice's body. Raises DeliveryRefused or Unreachable.

    Errors don't contain the whole address, because it may have a secret in it. They don't contain the answer's body
    either, because it may come from a service that the operator has no access to.
    """
    body = notice.body.encode()
    headers = {"Content-Type": "application/json", "User-Agent": "gradingsite"}
    if to.secret:
        headers[SIGNATURE] = signature(body, to.secret)
    request = Request(to.url, data=body, headers=headers, method="POST")  # noqa: S310 - http(s) only
    # The environment's address was chosen by whoever runs the machine.
    sender = opener if notice.to is None else guarded
    try:
        with sender.open(request, timeout=settings.NOTIFY_TIMEOUT) as response:
            status = response.status
    except HTTPError as error:
        with error:
            raise _error_of(error.code, to) from error
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ForbiddenAddress):
            raise DeliveryRefused(f"{host(to.url)} was not called: {reason}") from error
        problem = getattr(reason, "strerror", None) or reason
        if isinstance(reason, HTTPException):
            problem = "its answer was not HTTP"
        raise Unreachable(f"{host(to.url)} could not be reached: {problem}") from error
    if status >= REDIRECT:
        raise _error_of(status, to)


def signature(body: bytes, secret: str) -> str:
    """The signature header: sha256=HMAC-SHA256(secret, body) in hex. The receiver computes the same and compares."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def host(url: str) -> str:
    """The host of an address, without path and query."""
    return urlsplit(url).hostname or ""


def _error_of(status: int, to: Webhook) -> Exception:
    """The exception for an answer with an HTTP status other than 2xx: DeliveryRefused, or Unreachable if temporary."""
    if status < CLIENT_ERROR:
        return DeliveryRefused(
            f"{host(to.url)} answered {status}, a redirect; expected 2xx. Use the address that it redirects to."
        )
    if status in TEMPORARY or status >= SERVER_ERROR:
        return Unreachable(f"{host(to.url)} answered {status}; expected 2xx")
    return DeliveryRefused(f"{host(to.url)} answered {status}; expected 2xx")
