"""Validates a rubric, and describes how two rubrics differ. Pure."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from grading.reward.explain import weight

TITLE_LIMIT, TEXT_LIMIT, ROW_TEXT_LIMIT, NOTE_LIMIT = 120, 8000, 1000, 300
MOST_ROWS, MOST_EXAMPLES = 12, 6
WEIGHT_TOLERANCE = 0.001
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
BAND_NAME_LIMIT = 40

# A row as typed, and as stored: "name", "text" and a quantity ("weight" of a dimension, "low" of a band).
Row = Mapping[str, str]
Stored = Mapping[str, Any]
# Errors by the field that they are about: "title", "dimensions" (all of them), "dimensions-1-weight" (one field).
Problems = dict[str, str]


def problems(*, title: str, text: str, dimensions: Sequence[Row], bands: Sequence[Row], examples: int) -> Problems:
    """What is wrong with a submitted rubric; empty if it can be saved.

    Rows have "name", "text" and "weight" (dimensions) or "low" (bands), as strings; the weights must sum to 1 within
    .001, the bands ascend from 0. `examples` is how many were chosen.
    """
    errors: Problems = {}
    _require_text(errors, "title", title, TITLE_LIMIT, "a title, for the list of rubrics")
    _require_text(errors, "text", text, TEXT_LIMIT, "the instructions for the judge")
    errors |= _row_problems("dimensions", dimensions, "weight", "a weight from 0 to 1, for example .25")
    for index, row in enumerate(dimensions):
        if NAME.fullmatch(row["name"].strip()) is None:
            errors[f"dimensions-{index}-name"] = (
                f"Expected a name like goal_fit: small letters, digits and underscores, at most 40; got "
                f"“{row['name'].strip()[:60]}”."
            )
    if dimensions and not any(key.endswith("-weight") for key in errors):
        total = sum(float(row["weight"]) for row in dimensions)
        if abs(total - 1) > WEIGHT_TOLERANCE:
            gap = round(1 - total, 6)
            repair = f"add {gap:g} to one of them" if gap > 0 else f"take {-gap:g} off one of them"
            errors["dimensions"] = f"The weights must add up to 1, but they add up to {total:g}: {repair}."
    errors |= _row_problems("bands", bands, "low", "a score from 0 to 1 at which the band begins")
    for index, row in enumerate(bands):
        _require_text(errors, f"bands-{index}-name", row["name"], BAND_NAME_LIMIT, "a name, for example useful")
    lows = [_unit_number(row["low"]) for row in bands]
    if bands and lows[0] not in (None, 0):
        errors["bands-0-low"] = (
            f"The first band must begin at 0, so that every score is in a band; got {bands[0]['low']}."
        )
    for index, (before, low) in enumerate(pairwise(lows), start=1):
        if before is not None and low is not None and low <= before:
            errors[f"bands-{index}-low"] = (
                f"Bands must be in ascending order: expected more than {before:g}, got {low:g}."
            )
    if examples > MOST_EXAMPLES:
        errors["examples"] = f"Expected at most {MOST_EXAMPLES} examples, got {examples}. Remove some."
    return errors


def cleaned_row(row: Row, quantity: str) -> dict[str, Any]:
    """A valid submitted row as it is stored; `quantity` is "weight" or "low"."""
    return {"name": row["name"].strip(), quantity: round(float(row[quantity]), 6), "text": row["text"].strip()}


def is_blank(row: Row) -> bool:
    """Whether a submitted row is empty: such a row is ignored."""
    return not any(value.strip() for value in row.values())


def _row_problems(section: str, rows: Sequence[Row], quantity: str, expected: str) -> Problems:
    """What is wrong with dimensions or bands: their count, numbers, texts, and names that are not unique."""
    errors: Problems = {}
    if not 1 <= len(rows) <= MOST_ROWS:
        errors[section] = f"Expected 1 to {MOST_ROWS} {section}, got {len(rows)}."
    names: set[str] = set()
    for index, row in enumerate(rows):
        field = f"{section}-{index}"
        if _unit_number(row[quantity]) is None:
            errors[f"{field}-{quantity}"] = f"Expected {expected}; got “{row[quantity].strip()[:40]}”."
        _require_text(errors, f"{field}-text", row["text"], ROW_TEXT_LIMIT, "words for the judge")
        name = row["name"].strip()
        if name and name in names:
            errors[section] = f"Names must be unique, but {name} occurs twice. Rename or remove one."
        names.add(name)
    return errors


def _unit_number(text: str) -> float | None:
    """A number in [0, 1]. None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _require_text(errors: Problems, field: str, text: str, limit: int, expected: str) -> None:
    """Add an error for `field` if its text is blank or longer than `limit`."""
    length = len(text.strip())
    if not length:
        errors[field] = f"Expected {expected}; got nothing."
    elif length > limit:
        errors[field] = f"Expected at most {limit} characters, got {length}; shorten it."


# --- the difference ---------------------------------------------------------------------------------------------------


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """A sentence for each difference between two rubrics, given as mappings with "dimensions", "bands" and "examples".
    Changed wording is not mentioned.
    """
    lines = []
    lines += _changes("Dimension", before["dimensions"], after["dimensions"], "weight")
    lines += _changes("Band", before["bands"], after["bands"], "low")
    old, new = before["examples"], after["examples"]
    if old and new and old != new:
        added = sum(example not in old for example in new)
        removed = sum(example not in new for example in old)
        if added or removed:
            lines.append(f"Examples: {added} added, {removed} removed.")
        else:
            lines.append("The examples are in a different order.")
    elif new and not old:
        lines.append(f"{len(new)} example{'s are' if len(new) > 1 else ' is'} shown to the judge.")
    elif old and not new:
        lines.append(f"{len(old)} example{'s are' if len(old) > 1 else ' is'} no longer shown to the judge.")
    return lines


def _changes(noun: str, before: Sequence[Stored], after: Sequence[Stored], quantity: str) -> list[str]:
    """A sentence for each change between two lists of rows, matched by name.

    A row is called `noun` in the sentences. `quantity` is the key of its number.
    """
    old = {row["name"]: row for row in before}
    new = {row["name"]: row for row in after}
    lines = [f"{noun} {name} was removed." for name in old if name not in new]
    for name, row in new.items():
        previous = old.get(name)
        if previous is None:
            lines.append(f"{noun} {name} is new, {quantity} {weight(row[quantity])}.")
            continue
        if previous[quantity] != row[quantity]:
            lines.append(f"{noun} {name}: {quantity} {weight(previous[quantity])} is now {weight(row[quantity])}.")
    if not lines and list(old) != list(new):
        lines.append(f"{noun}s are in a different order.")
    return lines
