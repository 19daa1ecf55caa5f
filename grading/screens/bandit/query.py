"""Query parameters of the page that cannot be read."""


class QueryRefused(ValueError):
    """A query parameter has no valid value. The message says what was expected, what came and what to do."""


def quoted(text: str) -> str:
    """What somebody typed, in quotes and at most 40 characters long."""
    return repr(text[:40])
