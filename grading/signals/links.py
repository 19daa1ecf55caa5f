"""Addresses of pull requests, spelt in one way."""

import re
from urllib.parse import urlsplit

SUB_PAGE = re.compile(r"(/(?:pull|pulls|merge_requests|pull-requests)/\d+)/.*$")


def pull_request(url: str) -> str:
    """One spelling for one pull request: without query, user name, sub-page and upper case.

    Raises ValueError for what is no address.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    path = SUB_PAGE.sub(r"\1", parts.path.rstrip("/").lower())
    if parts.scheme not in {"http", "https"} or not host or not path:
        raise ValueError("expected the pull request's address, https://…")
    return f"https://{host}{path}"
