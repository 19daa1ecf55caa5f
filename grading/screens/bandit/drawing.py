"""The draw, tried out: what a made-up decision would choose now, and what a hundred would. No row is written."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString

from bandit.core.thompson import draw, uniform
from bandit.selection import NothingEligible, preview
from grading.screens import charts
from grading.screens.bandit.asked import QueryRefused, shown

DRAWS = 100
MOST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialArm:
    """One arm: why it is expected so often, `expected` of a hundred, and how often a hundred draws came to it."""

    title: str
    numbers: Mapping[str, float]
    expected: float
    drawn: int
    picture: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDraw:
    """What the made-up decision `decision_id` would be. `chosen` is empty, and `sentences` say why, for no choice."""

    number: int
    decision_id: str
    chosen: str
    sentences: tuple[str, ...]
    arms: tuple[TrialArm, ...] = ()


def tried(bandit: str, text: str, titles: Mapping[str, str], now: dt.datetime) -> TrialDraw | None:
    """The draw number `text`; None for an empty one. Raises QueryRefused."""
    if not text.strip():
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:8]) <= MOST):
        raise QueryRefused(f"A try of the draw has a number from 1 to {MOST:,}; got {shown(text)}.")
    number, decision_id = int(text), f"preview-{int(text)}"
    try:
        choice, explained = preview(bandit, decision_id, now)
    except NothingEligible as nothing:
        return TrialDraw(number=number, decision_id=decision_id, chosen="", sentences=(str(nothing),))
    drawn = Counter(draw(choice.odds, uniform(bandit, f"{decision_id}/{n}")) for n in range(1, DRAWS + 1))
    most = max([*drawn.values(), *(DRAWS * chance for chance in choice.odds.values())])
    arms = [
        TrialArm(
            title=titles.get(name, name),
            numbers=explained["arms"][name],
            expected=DRAWS * chance,
            drawn=drawn[name],
            picture=charts.tally(titles.get(name, name), drawn[name], DRAWS * chance, most),
        )
        for name, chance in choice.odds.items()
    ]
    return TrialDraw(
        number=number,
        decision_id=decision_id,
        chosen=titles.get(choice.arm.name, choice.arm.name),
        sentences=tuple(explained["sentences"]),
        arms=tuple(sorted(arms, key=lambda each: (-each.expected, each.title))),
    )
