"""A bandit's buckets as columns: read once, and from then on kept up with the ledger.

After a reward some buckets are others, and the ledger's new rows say which: those alone are read again. It must have
grown since then, and nothing but that: the bandit's `history` is another once rows were taken out of it or buckets put
right, and the row that was its last must still be there, and be the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np
from django.db.models import QuerySet

from bandit.core.table import ABSTAINED, MOMENTS, Flags, Ints, RewardRows, RowKind, distinct
from bandit.ledger import GraderKey
from bandit.models import SUMS, Arm, Bandit, Bucket, Grader, LedgerEntry

# What a process remembers: the last columns of so many bandits, and rows made of them.
BANDITS, REMEMBERED = 32, 16
# With more ledger rows since then, or more buckets in doubt, all buckets are read.
MOST_ROWS, MOST_BUCKETS = 5_000, 500
KEY = ("arm_id", "grader_id", "effective_day")
ROW = tuple(field.attname for field in LedgerEntry._meta.concrete_fields)  # noqa: SLF001 - Django's documented API
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """The buckets that hold anything: their arm, grader and day's ordinal as `keys` (m, 3), and as `sums` (m, 6) the
    MOMENTS and how many are productive. `revision` is the bandit's; `history` and `row`, the last one (None where that
    is not known), are those of the ledger that they are of; `arms` are names and `graders` rows by their ids.
    """

    revision: int
    history: int | None
    row: Row | None
    keys: Ints
    sums: Ints
    arms: dict[int, str]
    graders: dict[int, Grader]

    def within(self, days: tuple[date, date]) -> Flags:
        """The buckets from the first to the last of these days."""
        first, last = (day.toordinal() for day in days)
        flags: Flags = (self.keys[:, 2] >= first) & (self.keys[:, 2] <= last)
        return flags

    @property
    def silent(self) -> list[int]:
        """The graders of abstentions."""
        return [pk for pk, grader in self.graders.items() if grader.source == ABSTAINED]


# By bandit.
_last: dict[int, Held] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What rows follow from. `bandit` at another revision is another bandit."""

    bandit: Bandit = field(compare=False)
    key: tuple[int, int]
    days: tuple[date, date]
    with_abstentions: bool


def rows(bandit: Bandit, days: tuple[date, date], *, with_abstentions: bool) -> RewardRows:
    """What the buckets of these days, the last included, hold; remembered until the bandit's revision is another.

    `bandit` is to be fresh from the database: its revision is believed. At 0 nothing was ever said, and nothing is
    remembered. Four queries at most.
    """
    key = (bandit.pk, bandit.revision)
    asked = Asked(bandit=bandit, key=key, days=days, with_abstentions=with_abstentions)
    return _rows(asked) if bandit.revision else _rows.__wrapped__(asked)


def productive(bandit: Bandit, days: tuple[date, date]) -> dict[str, int]:
    """How many productive rewards each arm has on these days, the last included."""
    held, counts = columns(bandit), dict[str, int]()
    within = held.within(days)
    for arm, n in zip(held.keys[within, 0].tolist(), held.sums[within, -1].tolist(), strict=True):
        counts[held.arms[arm]] = counts.get(held.arms[arm], 0) + n
    return counts


def abstentions(bandit: Bandit, days: tuple[date, date]) -> dict[str, int]:
    """How many observations of each arm could not be graded on these days, the last included; arms without any are
    left out.
    """
    held, counts = columns(bandit), dict[str, int]()
    within = held.within(days) & np.isin(held.keys[:, 1], held.silent)
    for arm, n in zip(held.keys[within, 0].tolist(), held.sums[within, 0].tolist(), strict=True):
        counts[held.arms[arm]] = counts.get(held.arms[arm], 0) + n
    return counts


def columns(bandit: Bandit) -> Held:
    """The bandit's buckets as they are: four queries at most, and none while its revision is the same."""
    held = _last.get(bandit.pk)
    if held is not None and bandit.revision and held.revision == bandit.revision:
        return held
    found = None if held is None else _kept_up(held, bandit)
    if found is None:
        last = last_row(bandit)
        keys, sums = _read(Bucket.objects.filter(bandit=bandit))
        found = _named(bandit, last, keys, sums, {})
    while len(_last) >= BANDITS:
        _last.pop(next(iter(_last)), None)
    _last[bandit.pk] = found
    return found


def _kept_up(held: Held, bandit: Bandit) -> Held | None:
    """The buckets, where only those are read that the ledger's new rows are about; None where all are to be read."""
    found = since(bandit, held.history, held.row)
    if found is None:
        return None
    first, *new = found
    keys, sums = held.keys, held.sums
    if new:
        arms, graders, days = ({row[ROW.index(name)] for row in new} for name in KEY)
        in_doubt = Bucket.objects.filter(bandit=bandit, arm__in=arms, grader__in=graders, effective_day__in=days)
        if len(arms) * len(graders) * len(days) > MOST_BUCKETS:
            return None
        ordinals = [day.toordinal() for day in days]
        kept = ~(np.isin(keys[:, 0], [*arms]) & np.isin(keys[:, 1], [*graders]) & np.isin(keys[:, 2], ordinals))
        more, theirs = _read(in_doubt)
        keys, sums = np.concatenate((keys[kept], more)), np.concatenate((sums[kept], theirs))
    return _named(bandit, new[-1] if new else first, keys, sums, held.graders)


def since(bandit: Bandit, history: int | None, row: Row | None) -> list[Row] | None:
    """The bandit's ledger from that row on, which was its last under that `history`; None where that is not so, or
    where it is much. One query. `bandit` is to be fresh from the database.
    """
    if row is None or bandit.latest is None or history != bandit.history or bandit.latest - int(row[0]) > MOST_ROWS:
        return None
    found = list(LedgerEntry.objects.filter(bandit=bandit, pk__gte=row[0]).order_by("pk").values_list(*ROW))
    return found if found and found[0] == row else None


def last_row(bandit: Bandit) -> Row | None:
    """The last row of its ledger, by which `since` knows it again."""
    return LedgerEntry.objects.filter(pk=bandit.latest or 0, bandit=bandit).values_list(*ROW).first()


def _read(buckets: QuerySet[Bucket]) -> tuple[Ints, Ints]:
    return table(buckets.filter(n__gt=0).order_by().values_list(*KEY, *SUMS), SUMS)


def _named(bandit: Bandit, last: Row | None, keys: Ints, sums: Ints, known: Mapping[int, Grader]) -> Held:
    """With the arms as they are named now, and the graders, of which some are `known`."""
    new = set(np.unique(keys[:, 1]).tolist()) - known.keys()
    graders = {**known, **(Grader.objects.in_bulk(new) if new else {})}
    return Held(
        revision=bandit.revision,
        history=bandit.history,
        row=last,
        keys=keys,
        sums=sums,
        arms=arms_of(bandit),
        graders=graders,
    )


@lru_cache(maxsize=REMEMBERED)
def _rows(asked: Asked) -> RewardRows:
    held = columns(asked.bandit)
    flags = held.within(asked.days)
    if not asked.with_abstentions:
        flags &= ~np.isin(held.keys[:, 1], held.silent)
    return as_rows(held.keys[flags], held.sums[flags, : len(MOMENTS)], held.arms, held.graders)


def as_rows(keys: Ints, sums: Ints, arms: Mapping[int, str], graders: Mapping[int, Grader]) -> RewardRows:
    """Rows of these arms, graders and days (m, 3), and of these MOMENTS (m, 5)."""
    size = 1 + max(graders, default=0)
    pairs, pair = distinct(keys[:, 0] * size + keys[:, 1])
    numbers: dict[RowKind, int] = {}
    named = [
        numbers.setdefault(kind_of(arms[arm], graders[grader]), len(numbers))
        for arm, grader in (divmod(each, size) for each in pairs.tolist())
    ]
    return RewardRows(tuple(numbers), np.array(named, dtype=np.int64)[pair], keys[:, 2], sums)


def kind_of(arm: str, grader: Grader | GraderKey) -> RowKind:
    """What a reward of this arm and grader is named by in rows."""
    return RowKind(
        arm=arm,
        source=grader.source,
        stratum=grader.stratum,
        context=grader.context,
        salience=grader.salience,
        judge=judge_of(grader.model, grader.route, grader.rubric),
        version=grader.version,
        view=grader.view,
        witness=grader.witness,
        standing=grader.standing,
        agent=grader.agent,
    )


def judge_of(model: str, route: str, rubric: str) -> str:
    """A name for exactly this judge; "" where none is told."""
    return f"{model} {route} {rubric}".strip()


def table(found: Iterable[Sequence[Any]], names: Sequence[str]) -> tuple[Ints, Ints]:
    """Rows of a query for KEY and for sums of these names, as columns of either; sums may be decimals on PostgreSQL."""
    held = [(arm, grader, day.toordinal(), *map(int, sums)) for arm, grader, day, *sums in found]
    whole = np.array(held, dtype=np.int64).reshape(len(held), len(KEY) + len(names))
    return whole[:, : len(KEY)], whole[:, len(KEY) :]


def arms_of(bandit: Bandit) -> dict[int, str]:
    return dict(Arm.objects.filter(bandit=bandit).order_by().values_list("pk", "name"))


def forget() -> None:
    """Drop everything: in tests, where the same ids come again with other rows."""
    _last.clear()
    _rows.cache_clear()
