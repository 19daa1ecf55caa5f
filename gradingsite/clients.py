"""The address that a request comes from: the socket's, or the one that a trusted proxy reports."""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any

from django.conf import settings


def client_address(environ: Mapping[str, Any]) -> str:
    """The client's normalized address, or an empty string if there is none, as on a Unix socket.

    X-Forwarded-For is read from its end, as far as TRUSTED_PROXIES wrote it. Anybody may have written its beginning.
    """
    address = normalize_address(environ.get("REMOTE_ADDR", ""))
    # Each proxy appends the address that called it. So the last part was written by the proxy at REMOTE_ADDR, the part
    # before by the proxy whose address is the last part, and so on.
    for part in reversed(str(environ.get("HTTP_X_FORWARDED_FOR", "")).split(",")):
        previous = normalize_address(part)
        if not (address and previous and is_proxy(address)):
            break
        address = previous
    return address


def is_proxy(address: str) -> bool:
    """Whether a normalized address is one of TRUSTED_PROXIES."""
    return any(ip_address(address) in ip_network(network) for network in settings.TRUSTED_PROXIES)


def normalize_address(text: str) -> str:
    """An IP address in canonical form, an IPv4-mapped IPv6 address as IPv4. Empty if `text` isn't an address."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return ""
    return str(getattr(address, "ipv4_mapped", None) or address)
