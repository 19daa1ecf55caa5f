"""Where a request comes from: its socket's address, or what a proxy that is trusted says."""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any

from django.conf import settings


def client_address(environ: Mapping[str, Any]) -> str:
    """The address of the client in its usual spelling; empty where there is none, as on a Unix socket.

    X-Forwarded-For is read from its end, as far as TRUSTED_PROXIES wrote it: whatever stands before that anybody may
    have written.
    """
    address = usual(environ.get("REMOTE_ADDR", ""))
    for part in reversed(str(environ.get("HTTP_X_FORWARDED_FOR", "")).split(",")):
        before = usual(part)
        if not (address and before and is_proxy(address)):
            break
        address = before
    return address


def is_proxy(address: str) -> bool:
    """Whether an address, in its usual spelling, is one of TRUSTED_PROXIES."""
    return any(ip_address(address) in ip_network(each) for each in settings.TRUSTED_PROXIES)


def usual(text: str) -> str:
    """An address in its usual spelling, an IPv4 one in IPv6's clothes as what it is; empty for what is none."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return ""
    return str(getattr(address, "ipv4_mapped", None) or address)
