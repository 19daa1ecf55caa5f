"""The canonical form of pull requests' URLs."""

import re
from urllib.parse import urlsplit

SUB_PAGE = re.compile(r"(/(?:pull|pulls|merge_requests|pull-requests)/\d+)/.*$")


def pull_request(url: str) -> str:
    """The canonical URL of a pull request: lower case, without query, user name and sub-page.

    Raises ValueError if `url` isn't a URL.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    path = SUB_PAGE.sub(r"\1", parts.path.rstrip("/").lower())
    if parts.scheme not in {"http", "https"} or not host or not path:
        raise ValueError("expected the pull request's address, https://…")
    return f"https://{host}{path}"
