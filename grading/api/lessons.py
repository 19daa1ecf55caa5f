"""What a draw of lessons answers: each one with what to do, its chance, and why in words."""

from collections.abc import Iterator
from typing import Any

from bandit.holdout import Drawn


def lessons_of(drawn: Drawn) -> Iterator[dict[str, Any]]:
    """Each lesson of the decision as `LessonOut`: those that were drawn first, then those left out."""
    spelt = {name: text for text, name in drawn.names.items()}
    for row in drawn.rows:
        name = row.arm.current.name
        why = "taken: nothing is held out"
        if row.chance != 1:
            held_out = f"{round(100 * (1 - row.chance), 1):g} % are held out by chance, to see what it causes"
            why = f"taken: {held_out}" if row.taken else f"held out: {held_out}"
        asked = spelt.get(name, name)
        yield {"lesson": name, "asked": asked, "taken": row.taken, "chance": row.chance, "why": why}
    for name, reason in drawn.left_out.items():
        why = f"left out: {reason}"
        yield {"lesson": name, "asked": spelt[name], "taken": False, "chance": None, "why": why}
