"""A preview of what changing the category of sessions would do to the bandits."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from bandit.core.moves import ArmMove, moves
from bandit.core.posterior import Outlook
from bandit.core.table import RewardRow
from bandit.models import Arm, Bandit, LedgerEntry
from bandit.whatif import row_of_entry, what_if_rows
from grading.models import Session
from grading.models.sessions import observation_of, work_of

CATEGORY = "category"
# A preview covers at most this many sessions.
MAX_SESSIONS, CHUNK = 5_000, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryPreview:
    """The effect of new categories on the bandits.

    `arms`: the arms that move. `outlooks`: each bandit in which something moves, before and after. `sessions`: how many
    each category gains, by name. `without`: the number of sessions without a reward, by which nothing moves.
    `read_anew`: the number whose kind of work changes, so that their evidence is read anew.
    """

    arms: tuple[ArmMove, ...]
    outlooks: Mapping[str, tuple[Outlook, Outlook]]
    sessions: Mapping[str, int]
    without: int
    read_anew: int


def preview(wanted: Mapping[int, Arm], now: datetime) -> CategoryPreview:
    """What giving these sessions (by key) these categories would do to the bandits.

    A session has the same reward in every bandit, so its reward in any of them is what the new category gets. A change
    of the kind of work may also change the reward, which isn't included. Only the first MAX_SESSIONS sessions are
    looked at. A few queries for each 500 sessions and each bandit.
    """
    moved_rows: dict[str, list[RewardRow]] = defaultdict(list)
    gained: Counter[str] = Counter()
    without = read_anew = 0  # as in `CategoryPreview`
    keys = list(wanted)[:MAX_SESSIONS]
    for start in range(0, len(keys), CHUNK):
        part = keys[start : start + CHUNK]
        observations = {observation_of(pk): pk for pk in part}
        live = LedgerEntry.objects.filter(observation__in=observations).live().select_related("bandit", "arm", "grader")
        entries: dict[str, list[LedgerEntry]] = defaultdict(list)
        for entry in live:
            entries[entry.observation].append(entry)
        sessions = Session.objects.with_people().in_bulk(part)
        for observation, pk in observations.items():
            arm = wanted[pk].current
            session = sessions.get(pk)
            own_entries = entries[observation]
            if session is None or (session.category is not None and session.category.current == arm):
                continue
            gained[arm.name] += 1
            if session.work != work_of(arm):
                read_anew += 1
            if not own_entries:
                without += 1
            for bandit, row in _rows(own_entries, arm.name):
                moved_rows[bandit].append(row)
    names = Bandit.objects.that_learn().values_list("name", flat=True)
    touched = {CATEGORY: set(gained)}
    # The category bandit may be the baseline of any other, which then moves too.
    outlooks = {
        name: what_if_rows(name, moved_rows, now) for name in names if name in moved_rows or CATEGORY in moved_rows
    }
    arm_moves: list[ArmMove] = []
    for name, (before, after) in outlooks.items():
        arm_moves += moves(name, before, after, touched=touched.get(name, ()))
    return CategoryPreview(
        arms=tuple(move for move in arm_moves if move.is_shown or move.touched),
        outlooks=outlooks,
        sessions=dict(gained),
        without=without,
        read_anew=read_anew,
    )


def _rows(entries: list[LedgerEntry], arm: str) -> list[tuple[str, RewardRow]]:
    """The rows that move a session's live rewards to the category `arm`, each with its bandit.

    In other bandits the category is only the context, which their baseline corrects for.
    """
    rows = []
    if entries:
        like = next((entry for entry in entries if entry.bandit.name == CATEGORY), entries[0])
        rows.append((CATEGORY, replace(row_of_entry(like, sign=1), arm=arm, context="", salience=100)))
    for entry in entries:
        bandit, row = entry.bandit.name, row_of_entry(entry, sign=-1)
        rows.append((bandit, row))
        if bandit != CATEGORY:
            rows.append((bandit, replace(row_of_entry(entry, sign=1), context=arm)))
    return rows
