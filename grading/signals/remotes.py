"""Remotes of repositories, in the one form by which sessions of the same project are recognised."""

import re

MAX_KEY = 300
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://([^/]*)(.*)")
# The short form of SSH addresses, which has a colon after the host.
SSH = re.compile(r"(?:[^/\\]*@)?([^/\\:@]+):(.*)")
PATH = re.compile(r"[A-Za-z]:[\\/]|[/\\~.]")
PORT = re.compile(r":\d*$")
INVISIBLE = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\udfff]+")


def project_key(remote: str) -> str:
    """The key of a project: host and path of a remote's URL, or else the last folder of a path. "" if nothing remains.

    User, password, port and query are left out: they may contain secrets, or differ by protocol.

    >>> project_key("https://ada:secret@Forge.example/ada/engine.git?key=1"), project_key("git@forge.example:a/b")
    ('forge.example/ada/engine', 'forge.example/a/b')
    >>> project_key("/home/ada/engine.git/"), project_key("file:///srv/engine"), project_key("ada/engine")
    ('engine', 'engine', 'ada/engine')
    """
    text = INVISIBLE.sub(" ", remote[: 4 * MAX_KEY].partition("?")[0]).strip()
    host, path = _split_host(text)
    folders = [part for part in re.split(r"[/\\]+", path) if part not in ("", ".", "..", "~")]
    if not host and PATH.match(path):
        folders = folders[-1:]
    if folders:
        folders[-1] = folders[-1].removesuffix(".git") or folders[-1]
    return "/".join(filter(None, [PORT.sub("", host), *folders]))[:MAX_KEY].strip()


def _split_host(remote: str) -> tuple[str, str]:
    """(host in lower case, "" if there is none; path) of a remote, which is a URL, an SSH address or a path."""
    if match := URL.match(remote):
        return match[1].rpartition("@")[2].lower(), match[2].partition("#")[0]
    if not PATH.match(remote) and (match := SSH.match(remote)):
        return match[1].lower(), match[2]
    return "", remote
