"""What a new row of a column holds, where that is more than a constant. Migrations name these, so they never change."""


def first_caps() -> dict[str, float]:
    """What an agent says of itself amounts to no more than the prior, until pairs tell how far it is off."""
    return {"journal": 12.0}
