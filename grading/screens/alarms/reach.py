"""How far the sessions of an alarm have reached: what the bandits believe with them, and what they would without."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from django.utils.safestring import SafeString

from bandit import ledger
from bandit.core.moves import ArmMove, moves
from bandit.core.posterior import Outlook
from bandit.models import LedgerEntry, Selection
from bandit.whatif import row_of_entry, what_if_changed, what_if_rows
from grading.models import Session
from grading.review import promises
from grading.screens import charts

# Between the first session and the last: each is a posterior of its own.
STEPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What the arm would be if the sessions counted so: its mean in [0, 1] and its number of the next 100."""

    label: str
    css: str
    mean: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What `rewards` live rewards of an alarm's sessions do in the bandits.

    `arm`: the one that they move most, in `bandit`; `beliefs` in it without them, as it is now and with them in full.
    `moves`: every arm that they move by a digit shown. `climb`: the arm's number of the next 100 as they came, drawn.
    `decisions`: those of that bandit since the first of them was settled (`since`); `for_it`: how many chose the arm.
    """

    rewards: int
    since: dt.datetime
    bandit: str
    arm: str
    beliefs: tuple[Belief, ...]
    curves: SafeString
    climb: SafeString
    moves: tuple[ArmMove, ...]
    decisions: int
    for_it: int

    @property
    def here(self) -> list[ArmMove]:
        """The moves in the bandit of the arm."""
        return [move for move in self.moves if move.bandit == self.bandit]

    @property
    def elsewhere(self) -> list[ArmMove]:
        """The moves in other bandits: of the arms that these sessions ran."""
        return [move for move in self.moves if move.bandit != self.bandit and move.touched]

    @property
    def without(self) -> ArmMove:
        """The arm without the sessions, and now."""
        return next(move for move in self.here if move.arm == self.arm)


def load_reach(sessions: Sequence[Session], now: dt.datetime) -> Reach | None:
    """What these sessions, in the order in which they ended, have done; None where no bandit has learned from them.

    Some ten queries for each bandit and each step drawn.
    """
    live = [each for each in sessions if each.reward_value is not None]
    taken_out = promises.changes((session, None) for session in live)
    arm_moves: list[ArmMove] = []
    beliefs: dict[str, tuple[Outlook, Outlook]] = {}
    for bandit, own in taken_out.items():
        current, without = what_if_changed(bandit, taken_out, now)
        beliefs[bandit] = (without, current)
        ran = {change.arm for change in own}
        arm_moves += [each for each in moves(bandit, without, current, touched=ran) if each.touched or each.is_shown]
    touched = [move for move in arm_moves if move.touched and move.is_shown]
    if not touched:
        return None
    # Of what moves, the arm of the first bandit that people choose work by; else the one that moves most.
    worst = max(touched, key=lambda move: (move.bandit == "category", abs(move.share_moves), abs(move.mean_moves)))
    without, current = beliefs[worst.bandit]
    in_full = _in_full(worst.bandit, live, now)
    held_rows = ledger.live_entries(worst.bandit, [session.observation for session in live])
    entries = {
        entry.observation: entry for entry in held_rows if entry.arm.name == worst.arm and not entry.is_abstention
    }
    since = min(entry.recorded_at for entry in entries.values())
    decided = Selection.objects.filter(bandit__name=worst.bandit, created__gte=since)
    rows = [entries[each.observation] for each in live if each.observation in entries]
    curves = [
        ("not at all", "without", without),
        ("as learned now", "held", current),
        ("in full", "full", in_full),
    ]
    return Reach(
        rewards=len(rows),
        since=since,
        bandit=worst.bandit,
        arm=worst.arm,
        beliefs=tuple(
            Belief(label=label, css=css, mean=each.arms[worst.arm].mean, share=each.share_of_next_100(worst.arm))
            for label, css, each in curves
        ),
        curves=charts.beliefs({css: _beta(each, worst.arm) for _, css, each in curves}, worst.arm),
        climb=_climb(worst, rows, now),
        moves=tuple(arm_moves),
        decisions=decided.count(),
        for_it=decided.filter(arm__name=worst.arm).count(),
    )


def _in_full(bandit: str, sessions: Sequence[Session], now: dt.datetime) -> Outlook:
    """The outlook if every reward counted as a person's does, whatever its source and standing."""
    changes = promises.changes((each, each.reward_value) for each in sessions)
    _current, after = what_if_changed(bandit, {bandit: changes[bandit]}, now)
    return after


def _climb(arm: ArmMove, entries: Sequence[LedgerEntry], now: dt.datetime) -> SafeString:
    """The arm's number of the next 100 after the first few, and more, and all of these rewards."""
    total = len(entries)
    points = [(0, arm.share_before)]
    for count in sorted({ceil(total * step / STEPS) for step in range(1, STEPS)} - {0, total}):
        missing = [row_of_entry(entry, sign=-1) for entry in entries[count:]]
        _current, then = what_if_rows(arm.bandit, {arm.bandit: missing}, now)
        points.append((count, then.share_of_next_100(arm.arm)))
    points.append((total, arm.share_after))
    return charts.climb(points)


def _beta(outlook: Outlook, arm: str) -> charts.Beta:
    return charts.Beta(alpha=outlook.arms[arm].alpha, beta=outlook.arms[arm].beta)
