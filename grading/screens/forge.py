"""URLs of commits and pull requests on forges. Agents report text: only an exact pull request URL on a known site
becomes a link.
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
    """The key, if it is the URL of a pull request on a known site; else ""."""
    return key if PULL_REQUEST.fullmatch(key) else ""


def pull_request_name(key: str) -> str:
    """The short name of a pull request, such as "contrib#641"; on an unknown site, its URL without the scheme."""
    match = PULL_REQUEST.fullmatch(key)
    return f"{match['repository'].rpartition('/')[2]}#{match['number']}" if match else key.removeprefix("https://")


def repository(keys: Iterable[str]) -> str:
    """The base URL of commits, if all these pull requests belong to one repository; else ""."""
    matches = [match for match in map(PULL_REQUEST.fullmatch, keys) if match]
    repositories = {(match["site"], match["repository"]) for match in matches}
    if len(repositories) != 1:
        return ""
    site, name = repositories.pop()
    return f"https://{site}/{name}/{COMMIT.get(site, 'commit')}/"


def commit(base: str, key: str) -> str:
    """The URL of a commit below `base`, as returned by `repository`; "" without a base or if the key is no hash."""
    return base + key if base and HASH.fullmatch(key) else ""
