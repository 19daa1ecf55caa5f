"""Regrading stored sessions by the current rules. Old rows stay, and the ledger changes exactly by the difference.

In: a session with its evidence. Out: its reward before and after, and the changes of the ledger. A preview does the
same and rolls it back, one session at a time, so that no lock is locked for long.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from bandit.core.moves import ArmMove, moves
from bandit.core.table import RewardRow
from bandit.models import Bandit, LedgerEntry
from bandit.whatif import row_of, what_if_moved
from grading import judging, review
from grading.evidence import ownership
from grading.intake.assessment import assess
from grading.models import Session, Settlement
from grading.reward import rewards, sources
from grading.vocabulary import NO_REWARD, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSnapshot:
    """A session's reward at one time: `value` in [0, 1] or None for no reward, the deciding source, and its weight.

    `why` describes an abstention or an outcome without a reward.
    """

    value: float | None = None
    source: str = ""
    weight: float = 0.0
    why: str = "never graded"

    @property
    def learned(self) -> float | None:
        """The value that a bandit learns, or None if it learns nothing."""
        return self.value if self.weight > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Regraded:
    """One regraded session: its reward before and after, the ledger rows that changed by bandit, and whether a judge
    was asked. Has the session's name and not its row, because those of a whole site are in memory at once.
    """

    name: str
    before: RewardSnapshot
    after: RewardSnapshot
    moved: Mapping[str, tuple[RewardRow, ...]]
    asked: bool

    @property
    def changed(self) -> bool:
        return self.before != self.after


def preview(session: Session) -> Regraded:
    """What `regrade` would do, by doing it and rolling it back."""
    with transaction.atomic():
        done = regrade(session)
        transaction.set_rollback(True)
    return done


def regrade(session: Session) -> Regraded:
    """Ask the sources again, read the outcome again, settle; all or nothing. Doing it twice changes nothing more.

    A verdict's score is computed anew from the dimensions that the judge gave. A reward from before the ledger's keys
    said who and what was seen is given anew under its full key. A judge is asked where the session was without a reward
    and no longer is, and again where the rules make something of it that contests its verdict: other verdicts hold.
    """
    with transaction.atomic():
        ownership.lock()
        changed = ownership.update([session])
        locked, *others = sorted(
            ownership.lock_sessions({session.pk, *changed}), key=lambda each: each.pk != session.pk
        )
        before = standing(rewards.live(locked), locked)
        last: int = LedgerEntry.objects.aggregate(last=Max("pk"))["last"] or 0
        had_none = locked.outcome in NO_REWARD
        sources.grade(locked)
        judging.recompute(locked)
        asked = had_none and locked.outcome not in NO_REWARD and judging.enqueue(locked) is not None
        rewards.settle(locked, renew=True)
        review.recheck(locked)
        if judging.read_again(locked) is not None:
            asked = True
            rewards.settle(locked)
        for other in others:
            assess(other, ask=False)
        # The new ledger entries, abstentions too: a scale may read them.
        rows_by_bandit: dict[str, list[RewardRow]] = {}
        for entry in LedgerEntry.objects.filter(pk__gt=last).select_related("bandit", "arm", "grader"):
            sign = 1 if entry.op == LedgerEntry.Op.APPLY else -1
            rows_by_bandit.setdefault(entry.bandit.name, []).append(row_of(entry, sign=sign))
        ledger_moves = {bandit: tuple(rows) for bandit, rows in rows_by_bandit.items()}
        after = standing(rewards.live(locked), locked)
        return Regraded(name=str(locked), before=before, after=after, moved=ledger_moves, asked=asked)


def standing(settlement: Settlement | None, session: Session) -> RewardSnapshot:
    """A snapshot of a settlement."""
    if settlement is None:
        return RewardSnapshot()
    why = ""
    if settlement.value is None:
        why = session.outcome_reason or settlement.reason
    elif settlement.source == Source.FLOOR:
        trajectory = session.grades.filter(source=Source.TRAJECTORY).order_by("-pk").first()
        why = "" if trajectory is None else trajectory.get_reason_display()
    return RewardSnapshot(value=settlement.value, source=settlement.source, weight=settlement.weight, why=why)


def effects(done: Iterable[Regraded], now: datetime) -> list[ArmMove]:
    """The arms of learning bandits that all regraded sessions together move by at least one displayed digit."""
    rows: dict[str, list[RewardRow]] = {}
    for each in done:
        for bandit, entries in each.moved.items():
            rows.setdefault(bandit, []).extend(entries)
    names = Bandit.objects.that_learn().values_list("name", flat=True)
    found = (move for name in names for move in moves(name, *what_if_moved(name, rows, now)))
    return [move for move in found if move.is_shown]
