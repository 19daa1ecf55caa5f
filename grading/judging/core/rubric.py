"""What a rubric must be before a judge is asked by it, and how two rubrics differ, in words. Pure."""

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
# What is wrong, by the field that it stands at: "title", "dimensions" (all of them), "dimensions-1-weight" (one field).
Problems = dict[str, str]


def problems(*, title: str, text: str, dimensions: Sequence[Row], bands: Sequence[Row], examples: int) -> Problems:
    """Everything that is wrong with a rubric as typed; empty where it can be saved.

    Rows have "name", "text" and "weight" (dimensions) or "low" (bands), as strings; the weights must sum to 1 within
    .001, the bands ascend from 0. `examples` is how many were chosen.
    """
    found: Problems = {}
    _need(found, "title", title, TITLE_LIMIT, "a title, for the list of rubrics")
    _need(found, "text", text, TEXT_LIMIT, "the instructions for the judge")
    found |= _rows("dimensions", dimensions, "weight", "a weight from 0 to 1, for example .25")
    for index, row in enumerate(dimensions):
        if NAME.fullmatch(row["name"].strip()) is None:
            found[f"dimensions-{index}-name"] = (
                f"Expected a name like goal_fit: small letters, digits and underscores, at most 40; got "
                f"“{row['name'].strip()[:60]}”."
            )
    if dimensions and not any(key.endswith("-weight") for key in found):
        total = sum(float(row["weight"]) for row in dimensions)
        if abs(total - 1) > WEIGHT_TOLERANCE:
            gap = round(1 - total, 6)
            repair = f"add {gap:g} to one of them" if gap > 0 else f"take {-gap:g} off one of them"
            found["dimensions"] = f"The weights must sum to 1; these sum to {total:g}: {repair}."
    found |= _rows("bands", bands, "low", "a score from 0 to 1 at which the band begins")
    for index, row in enumerate(bands):
        _need(found, f"bands-{index}-name", row["name"], BAND_NAME_LIMIT, "a name, for example useful")
    lows = [_share(row["low"]) for row in bands]
    if bands and lows[0] not in (None, 0):
        found["bands-0-low"] = f"The first band must begin at 0, so that every score is in one; got {bands[0]['low']}."
    for index, (before, low) in enumerate(pairwise(lows), start=1):
        if before is not None and low is not None and low <= before:
            found[f"bands-{index}-low"] = f"Bands ascend: expected more than {before:g}, got {low:g}."
    if examples > MOST_EXAMPLES:
        found["examples"] = f"Expected at most {MOST_EXAMPLES} examples, got {examples}; take some out."
    return found


def typed(row: Row, quantity: str) -> dict[str, Any]:
    """A checked row as it is stored; `quantity` is "weight" or "low"."""
    return {"name": row["name"].strip(), quantity: round(float(row[quantity]), 6), "text": row["text"].strip()}


def is_blank(row: Row) -> bool:
    """Whether nothing was typed into a row: it is left out, not wrong."""
    return not any(value.strip() for value in row.values())


def _rows(section: str, rows: Sequence[Row], quantity: str, expected: str) -> Problems:
    """What holds for dimensions and bands alike: some rows, not too many, numbers, texts, each name once."""
    found: Problems = {}
    if not 1 <= len(rows) <= MOST_ROWS:
        found[section] = f"Expected 1 to {MOST_ROWS} {section}, got {len(rows)}."
    seen: set[str] = set()
    for index, row in enumerate(rows):
        at = f"{section}-{index}"
        if _share(row[quantity]) is None:
            found[f"{at}-{quantity}"] = f"Expected {expected}; got “{row[quantity].strip()[:40]}”."
        _need(found, f"{at}-text", row["text"], ROW_TEXT_LIMIT, "words for the judge")
        name = row["name"].strip()
        if name and name in seen:
            found[section] = f"Each name may stand once; {name} stands twice: rename or remove one."
        seen.add(name)
    return found


def _share(text: str) -> float | None:
    """A number in [0, 1], or None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _need(found: Problems, at: str, text: str, limit: int, expected: str) -> None:
    length = len(text.strip())
    if not length:
        found[at] = f"Expected {expected}; got nothing."
    elif length > limit:
        found[at] = f"Expected at most {limit} characters, got {length}; shorten it."


# --- the difference ---------------------------------------------------------------------------------------------------


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """How `after` differs from `before`, a sentence each. Both have text, dimensions, bands and examples."""
    said = ["The instructions are worded differently."] * (before["text"] != after["text"])
    said += _changes("Dimension", before["dimensions"], after["dimensions"], "weight")
    said += _changes("Band", before["bands"], after["bands"], "low")
    old, new = before["examples"], after["examples"]
    if old and new and old != new:
        added, gone = sum(one not in old for one in new), sum(one not in new for one in old)
        some = f"Examples: {added} new, {gone} gone."
        said.append(some if added or gone else "Examples stand in another order.")
    elif old != new:
        shown, what = ("shown", new) if new else ("no longer shown", old)
        said.append(f"{len(what)} example{'s are' if len(what) > 1 else ' is'} {shown} to the judge.")
    return said


def _changes(noun: str, before: Sequence[Stored], after: Sequence[Stored], quantity: str) -> list[str]:
    old, new = ({row["name"]: row for row in rows} for rows in (before, after))
    said = [f"{noun} {name} is gone." for name in old if name not in new]
    for name, row in new.items():
        held = old.get(name)
        if held is None:
            said.append(f"{noun} {name} is new, {quantity} {weight(row[quantity])}.")
            continue
        if held[quantity] != row[quantity]:
            said.append(f"{noun} {name}: {quantity} {weight(held[quantity])} is now {weight(row[quantity])}.")
        if held["text"] != row["text"]:
            said.append(f"{noun} {name} is worded differently.")
    if not said and list(old) != list(new):
        said.append(f"{noun}s stand in another order.")
    return said
