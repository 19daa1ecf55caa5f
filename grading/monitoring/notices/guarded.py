"""Calls to addresses that an operator typed: anywhere this machine reaches, but for addresses that no webhook has."""

import ssl
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from typing import Any
from urllib.request import HTTPHandler, HTTPSHandler, Request

# Where machines in a cloud ask for their own keys; most are link-local, these are not.
METADATA = frozenset(map(ip_address, ("fd00:ec2::254", "100.100.100.200", "192.0.0.192")))


class ForbiddenAddress(OSError):
    """The host's address is one that is never called: link-local, multicast or a cloud's metadata service."""


def check(address: str) -> None:
    """Raises ForbiddenAddress for an IP address that nothing is sent to."""
    ip = ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.is_link_local or ip.is_multicast or ip in METADATA:
        raise ForbiddenAddress(f"{ip} is an address that notices are never sent to")


class _Connection(HTTPConnection):
    """Looks at the address that it was connected to, whatever the name led to a moment before."""

    def connect(self) -> None:
        super().connect()
        check(self.sock.getpeername()[0])


class _SecureConnection(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        check(self.sock.getpeername()[0])


class GuardedHTTP(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Connection, req)


class GuardedHTTPS(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        secure: Any = _SecureConnection
        return self.do_open(secure, req, context=ssl.create_default_context())
