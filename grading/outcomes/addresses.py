"""Addresses of repositories: checked and without secrets, as they are stored, shown and compared."""

import ipaddress
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from grading.signals.remotes import project_key

HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
SCP_FORM = re.compile(r"(?:([A-Za-z0-9._-]+)@)?([A-Za-z0-9.-]+):(?!//)(.+)")
URL_PATH = re.compile(r"/[\w.~/+-]{1,250}", re.ASCII)
SSH_USER = "git"


class BadAddress(ValueError):
    """The address cannot be followed. The message says what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a repository is. `url` has no password and no query. `host` is "" for a folder of this machine."""

    url: str
    protocol: str
    host: str = ""
    port: int = 0


def parse(text: str) -> Address:
    """The address that somebody entered. Raises BadAddress.

    >>> parse("https://ada:secret@forge.example/ada/engine.git?key=1").url
    'https://forge.example/ada/engine.git'
    >>> parse("git@forge.example:ada/engine").url
    'ssh://git@forge.example/ada/engine'
    """
    text = text.strip()
    if text.startswith("/"):
        return _parse_folder(text)
    if match := SCP_FORM.fullmatch(text):
        text = f"ssh://{match[1] or SSH_USER}@{match[2]}/{match[3].lstrip('/')}"
    parts = urlsplit(text)
    if parts.scheme == "file" and not parts.netloc:
        return _parse_folder(parts.path)
    if parts.scheme not in {"https", "ssh"}:
        raise BadAddress(f"expected an address that begins with https:// or ssh://, or a folder; got {text[:80]!r}")
    host = parts.hostname or ""
    try:
        port = parts.port
    except ValueError:
        raise BadAddress("expected a port from 1 to 65535") from None
    if not HOST.fullmatch(host) or not URL_PATH.fullmatch(parts.path) or ".." in parts.path.split("/"):
        raise BadAddress(f"expected a host and the path of a repository; got {text[:80]!r}")
    user = f"{parts.username or SSH_USER}@" if parts.scheme == "ssh" else ""
    if not re.fullmatch(r"([A-Za-z0-9_][A-Za-z0-9._-]*@)?", user):
        raise BadAddress("expected a user name of letters and digits before the @")
    host_and_port = f"{host}:{port}" if port else host
    url = f"{parts.scheme}://{user}{host_and_port}{parts.path}"
    default_port = 443 if parts.scheme == "https" else 22
    return Address(url=url, protocol=parts.scheme, host=host, port=port or default_port)


def _parse_folder(text: str) -> Address:
    path = Path(text)
    if not path.is_absolute() or "\x00" in text or "\n" in text:
        raise BadAddress("expected the full path of a folder")
    return Address(url=str(path.resolve()), protocol="file")


def pull_number(url: str, repository: str) -> str:
    """The number of the pull request at this address; "" unless it belongs to the repository at `repository`.

    >>> pull_number("https://github.com/ada/engine/pull/142", "ssh://git@github.com/Ada/Engine.git")
    '142'
    """
    base, _, number = url.rpartition("/pull/")
    is_own = project_key(base).lower() == project_key(repository).lower()  # links are stored in lower case
    return number if number.isdecimal() and is_own else ""


def resolve(address: Address) -> str:
    """The address's host with the only IP address at which git may contact it: "host:port:1.2.3.4". "" for a folder.

    git gets the IP address, because the name may have another IP address a moment later. Raises BadAddress if the host
    cannot be resolved, or has a link-local address, at which clouds hand out credentials.
    """
    if not address.host:
        return ""
    try:
        answers = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise BadAddress(f"the host {address.host} cannot be found: {error}") from None
    hosts = (str(socket_address[0]) for _family, _type, _protocol, _name, socket_address in answers)
    addresses = [ipaddress.ip_address(host.partition("%")[0]) for host in hosts]  # after "%" comes a zone
    if any(ip.is_link_local or ip.is_multicast or ip.is_unspecified for ip in map(_unmapped, addresses)):
        raise BadAddress(f"the host {address.host} has a link-local address, which is never contacted")
    first = addresses[0]
    ip = f"[{first}]" if isinstance(first, ipaddress.IPv6Address) else str(first)
    return f"{address.host}:{address.port}:{ip}"


def _unmapped(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IPv4 address inside an IPv6 address, if there is one; else the address itself."""
    return (ip.ipv4_mapped or ip) if isinstance(ip, ipaddress.IPv6Address) else ip
