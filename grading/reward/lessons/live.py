"""The live reward of each session in the bandit of categories: read once, and from then on kept up with the ledger."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit import buckets
from bandit.core.table import Floats, Ints
from bandit.models import MICRO, Bandit, LedgerEntry
from grading.models.sessions import session_of
from grading.remembered import Memory

CATEGORY = "category"
OBSERVATION = buckets.ROW.index("observation")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveRewards:
    """By session, in the order of their ids: its category's arm, its reward in millionths, and the ordinal of the day
    that this counts for; all (n,). `row` was the ledger's last then, and `names` are those that arms go by now.
    """

    row: buckets.Row | None
    names: Mapping[int, str]
    session: Ints
    arm: Ints
    micro: Ints
    day: Ints

    def of(
        self, sessions: Ints, offsets: Mapping[str, float], since: date = date.min
    ) -> tuple[NDArray[np.str_], Floats, Floats]:
        """Of each of these sessions (m,): the name that its category has now, "" without a reward since then; the
        offset of that; and the reward in [0, 1], NaN for none.
        """
        names = ["", *dict.fromkeys(self.names.values())]
        keys = np.array([*self.names], dtype=np.int64)
        number = np.array([names.index(name) for name in self.names.values()], dtype=np.int64)
        moved = np.array([offsets.get(name, 0.0) for name in names], dtype=np.float64)
        if not len(self.session):
            context = np.zeros(len(sessions), dtype=np.int64)
            reward = np.full(len(sessions), np.nan)
        else:
            at = np.searchsorted(self.session, sessions).clip(max=len(self.session) - 1)
            known = (self.session[at] == sessions) & (self.day[at] >= since.toordinal())
            context = np.where(known, number[np.searchsorted(keys, self.arm[at])], 0)
            reward = np.where(known, self.micro[at] / MICRO, np.nan)
        return np.array(names, dtype=np.str_)[context], moved[context], reward


_memory = Memory[tuple[int, int | None], LiveRewards](1)


def live_rewards() -> LiveRewards:
    """As they are: four queries, or three and one for what moved since."""
    bandit = Bandit.objects.named(CATEGORY)
    key = bandit.pk, bandit.history
    held = _memory.get(key)
    found = (held and _kept_up(bandit, held)) or _whole(bandit)
    _memory.put(key, found)
    arms = bandit.arms.select_related("merged_into").order_by("pk")
    return replace(found, names={arm.pk: arm.current.name for arm in arms})


def _whole(bandit: Bandit) -> LiveRewards:
    row = buckets.last_row(bandit)
    return LiveRewards(row=row, names={}, **_columns(_live(bandit, None)))


def _kept_up(bandit: Bandit, held: LiveRewards) -> LiveRewards | None:
    rows = buckets.since(bandit, bandit.history, held.row)
    if rows is None:
        return None
    if len(rows) == 1:
        return held
    moved = {row[OBSERVATION] for row in rows[1:]}
    gone = np.array([pk for each in moved if (pk := session_of(each)) is not None], dtype=np.int64)
    kept = ~np.isin(held.session, gone)
    new = _columns(_live(bandit, moved))
    at = np.searchsorted(held.session[kept], new["session"])
    merged: dict[str, Any] = {name: np.insert(getattr(held, name)[kept], at, each) for name, each in new.items()}
    return replace(held, row=rows[-1], **merged)


def _live(bandit: Bandit, observations: Iterable[str] | None) -> Iterable[tuple[str, int, int, date]]:
    entries = LedgerEntry.objects.rewards().filter(bandit=bandit)
    if observations is not None:
        entries = entries.filter(observation__in=sorted(observations))
    return entries.live().order_by().values_list("observation", "arm_id", "value_micro", "effective_day").iterator()


def _columns(rows: Iterable[tuple[str, int, int, date]]) -> dict[str, Ints]:
    known = ((session_of(observation), arm, micro, day.toordinal()) for observation, arm, micro, day in rows)
    said = sorted(row for row in known if row[0] is not None)
    table = np.array(said, dtype=np.int64).reshape(len(said), 4)
    return dict(zip(("session", "arm", "micro", "day"), table.T, strict=True))
