"""What the address asks of the page, refused in words where it cannot be read."""


class QueryRefused(ValueError):
    """What was asked cannot be shown. The message says what was expected, what came and what to do."""


def shown(text: str) -> str:
    """What somebody typed, short enough to be said back."""
    return repr(text[:40])
