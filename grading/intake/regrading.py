"""Grading anew what is stored, by the rules that hold now: old rows stay, and the ledger moves exactly.

What comes in: a session with its evidence. What comes out: what it was worth and is worth now, and the ledger's moves.
A preview does the very same and rolls it back, one session at a time, so that nobody waits for it for long.
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
    """What a session's reward was or is: `value` in [0, 1] or None for no reward, who decided, and at what weight.

    `why` names an abstention or an outcome without a reward, in plain words.
    """

    value: float | None = None
    source: str = ""
    weight: float = 0.0
    why: str = "never graded"

    @property
    def learned(self) -> float | None:
        """The value that a bandit learns; None where it learns nothing."""
        return self.value if self.weight > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Regraded:
    """One session graded anew: before, after, the rows that its bandits gain and lose, and whether a judge is asked.

    `name` is what people call the session: a whole site's are held at a time, so that its row is not.
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
        held, *others = sorted(ownership.lock_sessions({session.pk, *changed}), key=lambda each: each.pk != session.pk)
        before = standing(rewards.live(held), held)
        last: int = LedgerEntry.objects.aggregate(last=Max("pk"))["last"] or 0
        had_none = held.outcome in NO_REWARD
        sources.grade(held)
        judging.recompute(held)
        asked = had_none and held.outcome not in NO_REWARD and judging.enqueue(held) is not None
        rewards.settle(held, renew=True)
        review.recheck(held)
        if judging.read_again(held) is not None:
            asked = True
            rewards.settle(held)
        for other in others:
            assess(other, ask=False)
        # What the ledger moved since, abstentions too: a scale may read them.
        found: dict[str, list[RewardRow]] = {}
        for entry in LedgerEntry.objects.filter(pk__gt=last).select_related("bandit", "arm", "grader"):
            sign = 1 if entry.op == LedgerEntry.Op.APPLY else -1
            found.setdefault(entry.bandit.name, []).append(row_of(entry, sign=sign))
        ledger_moves = {bandit: tuple(rows) for bandit, rows in found.items()}
        after = standing(rewards.live(held), held)
        return Regraded(name=str(held), before=before, after=after, moved=ledger_moves, asked=asked)


def standing(settlement: Settlement | None, session: Session) -> RewardSnapshot:
    """What a settlement says, in short."""
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
    """What all of it together does to the bandits that learn: every arm that moves by a digit that is shown."""
    rows: dict[str, list[RewardRow]] = {}
    for each in done:
        for bandit, entries in each.moved.items():
            rows.setdefault(bandit, []).extend(entries)
    names = Bandit.objects.that_learn().values_list("name", flat=True)
    found = (move for name in names for move in moves(name, *what_if_moved(name, rows, now)))
    return [move for move in found if move.is_shown]
