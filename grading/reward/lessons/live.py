"""The live reward of each session in the bandit of categories."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from bandit.core.table import Floats, Ints
from bandit.models import MICRO, Bandit, LedgerEntry
from grading.models.sessions import session_of

CATEGORY = "category"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveRewards:
    """By session, in the order of their ids: its category's arm, its reward in millionths, and the ordinal of the day
    that this counts for; all (n,). `names` are those that arms go by now.
    """

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


def live_rewards() -> LiveRewards:
    """As they are: three queries, of which one reads the whole ledger. Large sites read their lessons in the worker."""
    bandit = Bandit.objects.named(CATEGORY)
    entries = LedgerEntry.objects.rewards().filter(bandit=bandit).live().order_by()
    rows = entries.values_list("observation", "arm_id", "value_micro", "effective_day").iterator()
    arms = bandit.arms.select_related("merged_into").order_by("pk")
    return LiveRewards(names={arm.pk: arm.current.name for arm in arms}, **_columns(rows))


def _columns(rows: Iterable[tuple[str, int, int, date]]) -> dict[str, Ints]:
    known = ((session_of(observation), arm, micro, day.toordinal()) for observation, arm, micro, day in rows)
    said = sorted(row for row in known if row[0] is not None)
    table = np.array(said, dtype=np.int64).reshape(len(said), 4)
    return dict(zip(("session", "arm", "micro", "day"), table.T, strict=True))
