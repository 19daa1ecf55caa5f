"""What it does to the bandits that sessions get another category, before anything is saved."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from bandit.core.moves import ArmMove, moves
from bandit.core.posterior import Outlook
from bandit.core.table import RewardRow
from bandit.models import Arm, Bandit, LedgerEntry
from bandit.whatif import row_of, what_if_moved
from grading.models import Session
from grading.models.sessions import observation_of

CATEGORY = "category"
# More than these are not reckoned while somebody waits.
MOST, CHUNK = 5_000, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryPreview:
    """`arms` that move; `sessions` that an arm of the category bandit gains, by its name; `unknown` sessions without a
    reward, of which nothing moves; `read_anew` ones whose kind of work becomes another, by which they are read anew.
    `outlooks` has each bandit in which something moves, before and after.
    """

    arms: tuple[ArmMove, ...]
    outlooks: Mapping[str, tuple[Outlook, Outlook]]
    sessions: Mapping[str, int]
    without: int
    read_anew: int


def preview(wanted: Mapping[int, Arm], now: datetime) -> CategoryPreview:
    """What it would do that these sessions (by key) become of these categories.

    A session has the same reward in every bandit, so that what another one holds is what its category would get. A few
    queries for each 500 sessions and each bandit. Of ones whose kind of work changes the reward may change too; that
    is not reckoned here.
    """
    moved: dict[str, list[RewardRow]] = {}
    gained: dict[str, int] = {}
    without = read_anew = 0
    keys = list(wanted)[:MOST]
    for part in (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK)):
        observations = {observation_of(pk): pk for pk in part}
        live = LedgerEntry.objects.filter(observation__in=observations).live().select_related("bandit", "arm", "grader")
        entries: dict[str, list[LedgerEntry]] = {}
        for entry in live:
            entries.setdefault(entry.observation, []).append(entry)
        sessions = Session.objects.with_people().in_bulk(part)
        for observation, pk in observations.items():
            arm, session, own = wanted[pk].current, sessions.get(pk), entries.get(observation, [])
            if session is None or (session.category is not None and session.category.current == arm):
                continue
            gained[arm.name] = gained.get(arm.name, 0) + 1
            read_anew += session.work != _work(session, arm)
            without += not own
            for bandit, row in _rows(own, arm.name):
                moved.setdefault(bandit, []).append(row)
    names = Bandit.objects.that_learn().values_list("name", flat=True)
    touched = {CATEGORY: set(gained)}
    outlooks = {name: what_if_moved(name, moved, now) for name in names if name in moved or CATEGORY in moved}
    found = [move for name, pair in outlooks.items() for move in moves(name, *pair, touched=touched.get(name, ()))]
    return CategoryPreview(
        arms=tuple(move for move in found if move.is_shown or move.touched),
        outlooks=outlooks,
        sessions=gained,
        without=without,
        read_anew=read_anew,
    )


def _rows(entries: list[LedgerEntry], arm: str) -> list[tuple[str, RewardRow]]:
    """What a session's live rewards lose and gain by its being of that category."""
    found = []
    if entries:
        like = next((entry for entry in entries if entry.bandit.name == CATEGORY), entries[0])
        found.append((CATEGORY, replace(row_of(like, sign=1), arm=arm, context="", salience=100)))
    for entry in entries:
        bandit, row = entry.bandit.name, row_of(entry, sign=-1)
        found.append((bandit, row))
        if bandit != CATEGORY:
            found.append((bandit, replace(row_of(entry, sign=1), context=arm)))
    return found


def _work(session: Session, arm: Arm) -> object:
    before, session.category = session.category, arm
    try:
        return session.work
    finally:
        session.category = before
