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
from bandit.whatif import row_of_entry, what_if_rows
from grading import spending
from grading.evidence import ownership
from grading.intake.assessment import assess
from grading.judging import enqueuing, recomputing
from grading.models import Session, Settlement
from grading.review import queue
from grading.reward import rewards, sources
from grading.vocabulary import NO_REWARD, CostUnknown, Source


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
    """One regraded session: its reward before and after, the ledger rows that changed by bandit, and whether it was
    enqueued for the judge. `needs_facts`: its log was not read for facts before.

    Has the session's name and not its row: those of a whole site are in memory at once.
    """

    name: str
    before: RewardSnapshot
    after: RewardSnapshot
    ledger_rows: Mapping[str, tuple[RewardRow, ...]]
    is_enqueued: bool
    needs_facts: bool

    @property
    def changed(self) -> bool:
        return self.before != self.after


def preview(session: Session) -> Regraded:
    """What `regrade` would do: does it and rolls it back."""
    with transaction.atomic():
        done = regrade(session, with_facts=False)
        transaction.set_rollback(True)
    return done


def regrade(session: Session, *, with_facts: bool = True) -> Regraded:
    """Grade the session by every source, conclude its outcome and settle it again, in one transaction. Doing it twice
    changes nothing more.

    A verdict's score is computed again from the judge's dimensions. A ledger entry of an earlier version, whose key
    says less than today's, is replaced by one with the full key. The session is enqueued for the judge if it had an
    outcome without a reward and now has another, or if the new grades contest its verdict. Other verdicts stay.
    `with_facts`: also read its log for facts, if that was not done yet, and add up its tokens and cost.
    """
    with transaction.atomic():
        ownership.lock()
        changed = ownership.update([session])
        others = {each.pk: each for each in ownership.lock_sessions({session.pk, *changed})}
        locked = others.pop(session.pk)
        before = standing(rewards.live(locked), locked)
        last_entry: int = LedgerEntry.objects.aggregate(last=Max("pk"))["last"] or 0
        had_none = locked.outcome in NO_REWARD
        sources.grade(locked)
        needs_facts = sources.are_facts_missing(locked) or locked.cost_unknown == CostUnknown.NOT_READ
        if with_facts:
            spending.record(locked)
            if sources.are_facts_missing(locked):
                sources.read_facts(locked)
        recomputing.recompute(locked)
        is_enqueued = had_none and locked.outcome not in NO_REWARD and enqueuing.enqueue(locked) is not None
        rewards.settle(locked, renew=True)
        queue.recheck(locked)
        if enqueuing.read_again(locked) is not None:
            is_enqueued = True
            rewards.settle(locked)
        for other in others.values():
            assess(other, enqueue=False)
        # The new ledger entries, abstentions too: a scale may read them.
        rows_by_bandit: dict[str, list[RewardRow]] = {}
        for entry in LedgerEntry.objects.filter(pk__gt=last_entry).select_related("bandit", "arm", "grader"):
            sign = 1 if entry.op == LedgerEntry.Op.APPLY else -1
            rows_by_bandit.setdefault(entry.bandit.name, []).append(row_of_entry(entry, sign=sign))
        ledger_rows = {bandit: tuple(rows) for bandit, rows in rows_by_bandit.items()}
        after = standing(rewards.live(locked), locked)
        return Regraded(
            name=str(locked),
            before=before,
            after=after,
            ledger_rows=ledger_rows,
            is_enqueued=is_enqueued,
            needs_facts=needs_facts,
        )


def read_expired(session: Session, *, is_preview: bool = False) -> bool:
    """Store the facts and the cost of a session whose log is gone, as far as what was stored of it shows them. Returns
    whether they were missing.
    """
    with transaction.atomic():
        locked = next(iter(ownership.lock_sessions({session.pk})), None)
        was_not_read = locked is not None and locked.cost_unknown == CostUnknown.NOT_READ
        if locked is None or not (was_not_read or sources.are_facts_missing(locked)):
            return False
        if not is_preview:
            spending.record(locked)
            sources.read_facts(locked)
    return True


def standing(settlement: Settlement | None, session: Session) -> RewardSnapshot:
    """A snapshot of the session's settlement; without one, that of a session that was never graded."""
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
        for bandit, ledger_rows in each.ledger_rows.items():
            rows.setdefault(bandit, []).extend(ledger_rows)
    names = Bandit.objects.that_learn().values_list("name", flat=True)
    arm_moves: list[ArmMove] = []
    for name in names:
        arm_moves += moves(name, *what_if_rows(name, rows, now))
    return [move for move in arm_moves if move.is_shown]
