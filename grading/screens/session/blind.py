"""Blind grading: hides the verdict of a session from a person until they have graded it or chosen to reveal it.

The desk and the session's page pass everything that could reveal the reward through here. Lists of sessions, exports
and the API do not hide rewards, since sorting and filtering would reveal them anyway.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any

from grading.models import Flag, Grade
from grading.monitoring.rule import quotes_verdict
from grading.reward.explain import StepState
from grading.screens.session.history import HistoryLine
from grading.vocabulary import Source

HIDDEN = "hidden until you grade"


def tiles(chain: Iterable[dict[str, Any]], grades: Iterable[Grade]) -> list[dict[str, Any]]:
    """The chain with the tiles of the judge and of people hidden, and no tile marked as deciding.

    The other tiles show only the detail of their own grade, since a step's text compares it with the verdict.
    """
    details = {grade.pk: grade.detail for grade in grades}
    hidden = {"value": None, "headline": "Hidden", "why": "Until you grade", "css": "hidden", "stale": ""}
    shown = []
    for tile in chain:
        if tile["source"] == Source.JUDGE or (tile["source"] == Source.HUMAN and tile["value"] is not None):
            shown.append({**tile, **hidden, "state": StepState.WAITING, "provisional": False})
        elif tile["value"] is not None:
            neutral = {"css": str(StepState.BEATEN), "state": StepState.BEATEN, "provisional": False}
            shown.append({**tile, **neutral, "why": details.get(tile["grade"], "")})
        else:
            shown.append(tile)
    return shown


def flags(raised: Iterable[Flag]) -> list[Flag]:
    """The flags, without the details of those whose rule quotes the verdict."""
    shown = []
    for flag in map(copy, raised):
        flag.detail = HIDDEN if quotes_verdict(flag.rule) else flag.detail
        shown.append(flag)
    return shown


def history(lines: Iterable[HistoryLine]) -> Iterator[HistoryLine]:
    """The history, with the results of grades, settlements and rewards hidden, and lines that are then equal once."""
    entry = None
    for line in lines:
        previous = entry
        entry = line
        if line.while_blind:
            entry = replace(line, what=f"{line.while_blind}: {HIDDEN}", detail="", source="")
        if entry != previous:
            yield entry
