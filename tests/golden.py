"""Golden numbers: what a formula gives, row by row, and the version by which stored grades say that it did.

A number may change, but never without the version: grades by two formulas must not pass for one another.
"""

import pytest


def hold(found: object, expected: object, *, version: str, at: str) -> None:
    """Fails where a formula gives something else than its table says. `at` is where the version is said."""
    if found != expected:
        pytest.fail(
            f"{version} gives {expected!r} here; now it gives {found!r}.\n"
            f"Stored grades say {version} and mean the numbers of this table. If the change is meant, raise the "
            f"version in {at}, then put the new version and its numbers into the table. If not, mend the formula.",
            pytrace=False,
        )


def hold_version(found: str, expected: str, *, at: str) -> None:
    """Fails where a table is another version's."""
    if found != expected:
        pytest.fail(
            f"This table is that of {expected}; {at} says {found}. Go through the numbers of the table, put in those "
            f"that changed, and then {found} as the version that they belong to.",
            pytrace=False,
        )


def hold_unversioned(found: object, expected: object, *, what: str) -> None:
    """The same for a formula whose numbers nothing stored names a version of."""
    if found != expected:
        pytest.fail(
            f"{what} gives {expected!r} here; now it gives {found!r}.\n"
            "No version is stored with such numbers: with the formula they change on every site at once. If that is "
            "meant, say so in CHANGELOG.md and put the new numbers into the table. If not, mend the formula.",
            pytrace=False,
        )
