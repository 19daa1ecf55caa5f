"""How many flagged sessions a week are usual."""

DAYS = 7
ALLOWED = 2


def is_too_often(count: int) -> bool:
    """Whether so many sessions that a rule flagged among those of DAYS days are more than would be usual."""
    return count > ALLOWED
