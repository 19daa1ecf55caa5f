"""Where a fallback's number is put beside a judge's."""

from dataclasses import dataclass

from grading.core.vocabulary import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A fallback's number in [0, 1]: on the judge's scale where it `is_mapped`, else raw, on the fallback's own."""

    value: float
    is_mapped: bool


def place(arm: str, source: Source, version: str, view: str, value: float) -> Placed:  # noqa: ARG001 - what a map needs
    """What a fallback says of a session of that category, put on the judge's scale by the map in force.

    Without a map it stays raw: then only the difference to the judge, against what that usually is, says anything.
    """
    return Placed(value=value, is_mapped=False)
