"""A trial of the draw: what a made-up decision would choose now, and what a hundred would. Stores nothing."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString

from bandit.core.thompson import draw, uniform
from bandit.selection import NothingEligible, preview
from grading.screens.bandit.query import QueryRefused, quoted
from grading.screens.charts import bars

DRAWS = 100
MAX_NUMBER, MAX_DIGITS = 1_000_000, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialArm:
    """One arm: its `numbers` (`selection.preview`), how often it is `expected` in a hundred draws, and was `drawn`."""

    title: str
    numbers: Mapping[str, float]
    expected: float
    drawn: int
    picture: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDraw:
    """What the made-up decision `decision_id` would be. If no arm can be chosen, `chosen` is empty."""

    number: int
    decision_id: str
    chosen: str
    sentences: tuple[str, ...]
    arms: tuple[TrialArm, ...] = ()


def try_draw(bandit: str, text: str, titles: Mapping[str, str], now: dt.datetime) -> TrialDraw | None:
    """The trial with the number `text`; None for an empty text. Raises QueryRefused."""
    if not text.strip():
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS and 0 < int(text) <= MAX_NUMBER):
        raise QueryRefused(f"The draw needs a number from 1 to {MAX_NUMBER:,}; got {quoted(text)}.")
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
            picture=bars.tally(titles.get(name, name), drawn[name], DRAWS * chance, most),
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
