"""Names of arms: one canonical spelling for each, and suggestions for misspelt ones."""

import difflib
import re
from collections.abc import Iterable


def canonical(text: str) -> str:
    """The one spelling of a name: lower case, every run of spaces, underscores, hyphens and NULs a single hyphen.

    >>> canonical(" Cross_Repo ")
    'cross-repo'
    """
    return re.sub(r"[\s\0_-]+", "-", text.strip().lower()).strip("-")


def printable(text: str) -> str:
    """`text` for a console, with control and invisible characters escaped."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def nearest(text: str, names: Iterable[str]) -> str | None:
    """The name most like `text`, or None if none is similar (difflib's ratio below .6)."""
    matches = difflib.get_close_matches(canonical(text), sorted(names), n=1)
    return matches[0] if matches else None
