"""Addresses of work on the sites where code is kept. What an agent reports is text; only what has exactly the form of
a pull request on a known site becomes a link.
"""

import re
from collections.abc import Iterable

SITES = r"github\.com|gitlab\.com|codeberg\.org|bitbucket\.org"
NAME = r"[A-Za-z0-9][\w.-]{0,99}"
PULL_REQUEST = re.compile(
    rf"https?://(?P<site>{SITES})/(?P<repository>{NAME}(?:/{NAME}){{1,4}}?)"
    r"/(?:-/)?(?:pull|pulls|merge_requests|pull-requests)/(?P<number>[1-9]\d{0,9})",
    re.ASCII,
)
HASH = re.compile(r"[0-9a-f]{7,64}", re.ASCII)
COMMIT = {"bitbucket.org": "commits", "gitlab.com": "-/commit"}


def pull_request(key: str) -> str:
    """The address of a pull request, as it came; empty for anything else."""
    return key if PULL_REQUEST.fullmatch(key) else ""


def pull_request_name(key: str) -> str:
    """What people call it: "contrib#641"; the text as it came where it is none."""
    found = PULL_REQUEST.fullmatch(key)
    return f"{found['repository'].rpartition('/')[2]}#{found['number']}" if found else key


def repository(keys: Iterable[str]) -> str:
    """The start of the address of every commit, where all these pull requests are of one repository; else empty."""
    found = {(each["site"], each["repository"]) for key in keys if (each := PULL_REQUEST.fullmatch(key))}
    if len(found) != 1:
        return ""
    ((site, name),) = found
    return f"https://{site}/{name}/{COMMIT.get(site, 'commit')}/"


def commit(base: str, key: str) -> str:
    """The address of a commit below `base`, which is what `repository` gave; empty where either is missing."""
    return base + key if base and HASH.fullmatch(key) else ""
