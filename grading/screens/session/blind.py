"""Blind first: what of a session is kept from a person until they have graded it or looked on purpose.

Everything that the desk and the session's page say of the reward goes through here, so that nothing in their source
tells it. Lists of many sessions, exports and the API show every reward: their order and their filters would tell it.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any

from grading import monitoring
from grading.models import Flag, Grade
from grading.reward.explain import StepState
from grading.screens.session.history import HistoryLine
from grading.vocabulary import Source

HIDDEN = "hidden until you grade"


def tiles(chain: Iterable[dict[str, Any]], grades: Iterable[Grade]) -> list[dict[str, Any]]:
    """The chain with the tiles of judge and people closed, and none filled: which one decides would tell something. The
    others have the text of their own `grades` alone, since a step also says how far it is from the verdict.
    """
    details = {grade.pk: grade.detail for grade in grades}
    hidden = {"value": None, "headline": "Hidden", "why": "Until you grade", "css": "hidden", "stale": ""}
    closed = []
    for tile in chain:
        if tile["source"] == Source.JUDGE or (tile["source"] == Source.HUMAN and tile["value"] is not None):
            closed.append({**tile, **hidden, "state": StepState.WAITING, "provisional": False})
        elif tile["value"] is not None:
            neutral = {"css": str(StepState.BEATEN), "state": StepState.BEATEN, "provisional": False}
            closed.append({**tile, **neutral, "why": details.get(tile["grade"], "")})
        else:
            closed.append(tile)
    return closed


def flags(raised: Iterable[Flag]) -> list[Flag]:
    """The flags, without the text of those that tell something of the verdict."""
    shown = []
    for flag in map(copy, raised):
        flag.detail = HIDDEN if monitoring.quotes_verdict(flag.rule) else flag.detail
        shown.append(flag)
    return shown


def history(lines: Iterable[HistoryLine]) -> Iterator[HistoryLine]:
    """The history without what judges and people said, and what was settled and learned."""
    for line in lines:
        if line.while_blind:
            yield replace(line, what=f"{line.while_blind}: {HIDDEN}", detail="", source="")
        else:
            yield line
