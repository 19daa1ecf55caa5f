"""Numbers that hold as versioned rows: whoever appends one names the version it is to be, so a stale page is told."""


class StaleVersion(ValueError):
    """Another version came in between; look at what holds now, then decide again."""


def require_next(version: int, held: int, what: str) -> None:
    """Raises StaleVersion where `version` of `what` is not the one after `held`, which is 0 where there is none."""
    if version != held + 1:
        raise StaleVersion(
            f"this was to be version {version} of {what}, but the next one is {held + 1}: somebody changed it "
            "meanwhile. Nothing was saved; look at what is in force now, then decide again."
        )
