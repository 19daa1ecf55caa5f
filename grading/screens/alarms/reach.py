"""The effect of an alarm's sessions on the bandits: posteriors with them, and without."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from django.utils.safestring import SafeString

from bandit import ledger
from bandit.core.moves import ArmMove, moves
from bandit.models import LedgerEntry, Selection
from bandit.whatif import HypotheticalReward, row_of_entry, what_if_changed, what_if_rows
from grading.models import Session
from grading.review import promises
from grading.screens.charts.posteriors import Beta, beliefs, climb

# Intervals between the points of the climb, each of which needs a posterior.
STEPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmOutlook:
    """The arm's mean in [0, 1] and share of the next 100 if the sessions counted as `label` says."""

    label: str
    css: str
    mean: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmReach:
    """The effect of an alarm's sessions on the arm that they move most, `arm` of `bandit`.

    `rewards` is the number of their rewards that this arm has. `outlooks` and `curves` show the arm without them, as
    now, and with all in full. `climb` shows its share of the next 100 by the number of sessions that count. `decisions`
    is the number of the bandit's decisions since the first of the rewards was recorded (`since`). `moves` has every
    visible move of an arm, in any bandit.
    """

    rewards: int
    since: dt.datetime
    bandit: str
    arm: str
    outlooks: tuple[ArmOutlook, ...]
    curves: SafeString
    climb: SafeString
    moves: tuple[ArmMove, ...]
    decisions: int
    decisions_for_arm: int

    @property
    def moves_in_bandit(self) -> list[ArmMove]:
        """The moves of arms in `bandit`."""
        return [move for move in self.moves if move.bandit == self.bandit]

    @property
    def moves_elsewhere(self) -> list[ArmMove]:
        """The moves of the sessions' own arms in other bandits."""
        return [move for move in self.moves if move.bandit != self.bandit and move.touched]

    @property
    def move_of_arm(self) -> ArmMove:
        """How the sessions move `arm`: before is without them, after is now."""
        return next(move for move in self.moves_in_bandit if move.arm == self.arm)


def load_reach(sessions: Sequence[Session], now: dt.datetime) -> AlarmReach | None:
    """The effect of these sessions, in the order in which they ended; None if they have none, not even if they counted
    in full.

    About ten queries for each bandit and each point of the climb.
    """
    live = [each for each in sessions if each.reward_value is not None]
    taken_out = promises.changes((session, None) for session in live)
    arm_moves: list[ArmMove] = []
    outlooks = {}
    for bandit, own in taken_out.items():
        current, without = what_if_changed(bandit, taken_out, now)
        outlooks[bandit] = (without, current)
        ran = {change.arm for change in own}
        arm_moves += [each for each in moves(bandit, without, current, touched=ran) if each.touched or each.is_shown]
    # In full, every reward counts as a person's does, whatever its source and standing.
    as_human = promises.changes((each, each.reward_value) for each in live)
    touched = _visible(arm_moves) or _visible(_moves_in_full(as_human, now))
    if not touched:
        return None
    # The arm of the category bandit that moves most; if none does, that of another bandit.
    worst = max(touched, key=lambda move: (move.bandit == "category", abs(move.share_moves), abs(move.mean_moves)))
    without, current = outlooks[worst.bandit]
    _current, in_full = what_if_changed(worst.bandit, {worst.bandit: as_human[worst.bandit]}, now)
    live_entries = ledger.live_entries(worst.bandit, [session.observation for session in live])
    entries = {
        entry.observation: entry for entry in live_entries if entry.arm.name == worst.arm and not entry.is_abstention
    }
    if not entries:  # the arm has none of their rewards yet, only abstentions
        return None
    since = min(entry.recorded_at for entry in entries.values())
    decided = Selection.objects.filter(bandit__name=worst.bandit, created__gte=since)
    rows = [entries[each.observation] for each in live if each.observation in entries]
    curves = [
        ("not at all", "without", without),
        ("as learned now", "held", current),
        ("in full", "full", in_full),
    ]
    posteriors = {css: each.arms[worst.arm] for _label, css, each in curves}
    actual = next(move for move in arm_moves if (move.bandit, move.arm) == (worst.bandit, worst.arm))
    return AlarmReach(
        rewards=len(rows),
        since=since,
        bandit=worst.bandit,
        arm=worst.arm,
        outlooks=tuple(
            ArmOutlook(label=label, css=css, mean=each.arms[worst.arm].mean, share=each.next_100(worst.arm))
            for label, css, each in curves
        ),
        curves=beliefs({css: Beta(alpha=each.alpha, beta=each.beta) for css, each in posteriors.items()}, worst.arm),
        climb=_climb(actual, rows, now),
        moves=tuple(arm_moves),
        decisions=decided.count(),
        decisions_for_arm=decided.filter(arm__name=worst.arm).count(),
    )


def _visible(arm_moves: Iterable[ArmMove]) -> list[ArmMove]:
    """The moves of the sessions' own arms that are large enough to show."""
    return [move for move in arm_moves if move.touched and move.is_shown]


def _moves_in_full(as_human: Mapping[str, Sequence[HypotheticalReward]], now: dt.datetime) -> list[ArmMove]:
    """How the sessions' own arms would move if their rewards counted as a person's do; `as_human` is by bandit."""
    arm_moves: list[ArmMove] = []
    for bandit, own in as_human.items():
        current, in_full = what_if_changed(bandit, {bandit: own}, now)
        arm_moves += moves(bandit, current, in_full, touched={change.arm for change in own})
    return arm_moves


def _climb(arm: ArmMove, entries: Sequence[LedgerEntry], now: dt.datetime) -> SafeString:
    """The arm's share of the next 100 without these rewards, with part of them, and with all."""
    total = len(entries)
    points = [(0, arm.share_before)]
    for count in sorted({ceil(total * step / STEPS) for step in range(1, STEPS)} - {0, total}):
        missing = [row_of_entry(entry, sign=-1) for entry in entries[count:]]
        _current, then = what_if_rows(arm.bandit, {arm.bandit: missing}, now)
        points.append((count, then.next_100(arm.arm)))
    points.append((total, arm.share_after))
    return climb(points)
