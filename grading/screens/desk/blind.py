"""Blind first: what of a session is kept from a person until they have graded it or looked on purpose.

Everything that a page of the desk says of the reward goes through here, so that nothing in its source tells it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from grading.reward.explain import StepState
from grading.screens.session.history import HistoryLine
from grading.vocabulary import Source


def tiles(chain: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The chain with the judge's tile closed, and no tile filled: which one decides would tell something of it."""
    hidden = {"value": None, "headline": "Hidden", "why": "Until you grade", "css": "hidden", "stale": ""}
    closed = []
    for tile in chain:
        if tile["source"] == Source.JUDGE:
            closed.append({**tile, **hidden, "state": StepState.WAITING, "provisional": False})
        elif tile["state"] == StepState.DECIDES:
            neutral = {"css": str(StepState.BEATEN), "state": StepState.BEATEN, "provisional": False}
            closed.append({**tile, **neutral})
        else:
            closed.append(tile)
    return closed


def history(lines: Iterable[HistoryLine]) -> Iterator[HistoryLine]:
    """The history without what judges said and what was settled and learned."""
    for line in lines:
        if line.while_blind:
            yield replace(line, what=f"{line.while_blind}: hidden until you grade", detail="", source="")
        else:
            yield line
