"""One name for one thing (L13): how two spellings are told to be the same, and which name was probably meant."""

import difflib
import re
from collections.abc import Iterable

LONGEST_ID = 200


def canonical(text: str) -> str:
    """The one spelling of a name: lower case, every run of spaces, underscores, hyphens and NULs a single hyphen.

    >>> canonical(" Cross_Repo ")
    'cross-repo'
    """
    return re.sub(r"[\s\0_-]+", "-", text.strip().lower()).strip("-")


def printable(text: str) -> str:
    """`text` as a console may show it: whatever a terminal would obey, or would not show, is escaped."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def nearest(text: str, names: Iterable[str]) -> str | None:
    """The name most like `text`, or None where nothing comes near (difflib's ratio below .6)."""
    found = difflib.get_close_matches(canonical(text), sorted(names), n=1)
    return found[0] if found else None


def checked_id(decision_id: str) -> str:
    """The id as it came. Raises ValueError for one that is blank, over 200 characters long or not printable."""
    if not decision_id.strip() or not decision_id.isprintable() or len(decision_id) > LONGEST_ID:
        raise ValueError(
            f"a decision needs an id of the caller's own, so that a retry gets the same answer: 1 to {LONGEST_ID} "
            f"printable characters; got {decision_id[:50]!r}, {len(decision_id)} long"
        )
    return decision_id
