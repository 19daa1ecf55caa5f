"""Sessions without a grade that are too frequent for chance: long runs of them, and too many ended by infrastructure.

Sessions that fail silently leave nothing to grade. If all of an arm's sessions suddenly can't be graded, or if
infrastructure ends them far more often than those of other arms, the missing grades may have been bad ones.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, groupby

LEVEL = 0.001
# For an arm with an open alarm the limit is this many times higher, so that the alarm does not come and go.
STAYING = 10
# In an arm's usual rate, the other arms' rate counts as much as this many of the arm's own sessions.
SHRINKAGE = 20
# The highest usual rate, so that an arm that was never graded is found as well.
MOST_USUAL = 0.5


class SessionEnding(StrEnum):
    """How a session ended. UNSCORED and INFRASTRUCTURE don't show how good it was."""

    GRADED = "graded"
    UNSCORED = "unscored"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSession:
    """A session's key, the arm that ran in it, and how it ended."""

    key: int
    arm: str
    ending: SessionEnding

    @property
    def is_missing(self) -> bool:
        return self.ending is not SessionEnding.GRADED


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """A run of `sessions` without a grade, of one arm; `arm` is None for a run over several arms.

    `usual` is the usual share of sessions without a grade, in (0, .5]. `others` is this share in the other arms, in
    [0, 1]; None for a run over several arms.
    """

    arm: str | None
    sessions: tuple[ObservedSession, ...]
    usual: float
    others: float | None

    @property
    def chance(self) -> float:
        """The probability that a graded session is followed by as many without a grade: usual^length."""
        return self.usual ** len(self.sessions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """An arm of whose `n` sessions infrastructure ended `died`, more often than in the other arms.

    There it ended `others_died` of `others` sessions. `p` is the p-value of Fisher's exact test, one-sided.
    """

    arm: str
    died: tuple[ObservedSession, ...]
    n: int
    others_died: int
    others: int
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StreakReport:
    """What is too frequent for chance. A session in a streak over several arms is in no other streak or excess."""

    streaks: tuple[Streak, ...]
    excesses: tuple[Excess, ...]


def find_streaks(sessions: Sequence[ObservedSession], open_alarms: Collection[str | None] = ()) -> StreakReport:
    """What is too frequent for chance in these sessions of one bandit, in order of time.

    `open_alarms`: the arms with an open alarm, and None if there is an alarm about several arms.
    """

    def level(arm: str | None) -> float:
        return LEVEL * STAYING if arm in open_alarms else LEVEL

    outages = _streaks_of_several_arms(sessions, level(None))
    keys_in_outages = {session.key for streak in outages for session in streak.sessions}
    outside_outages = [session for session in sessions if session.key not in keys_in_outages]
    arms = sorted({session.arm for session in outside_outages})
    # The level is divided by the number of comparisons.
    streaks = [streak for arm in arms for streak in _streaks_of_arm(arm, outside_outages, level(arm) / len(arms))]
    excesses = (_excess(arm, outside_outages, level(arm) / len(arms)) for arm in arms)
    return StreakReport(
        streaks=(*outages, *streaks), excesses=tuple(excess for excess in excesses if excess is not None)
    )


def _streaks_of_several_arms(sessions: Sequence[ObservedSession], level: float) -> list[Streak]:
    """Runs over the sessions of all arms that are too long for chance.

    They must be too long even without the sessions of the arm that has most sessions of the run.
    """
    missing_before = _missing_before(sessions)
    tries = len(sessions) - missing_before[-1] + 1
    streaks = []
    for start, run in _runs(sessions):
        usual = min(_share(missing_before[start], start), MOST_USUAL)
        streak = Streak(arm=None, sessions=run, usual=usual, others=None)
        ((_arm, most),) = Counter(session.arm for session in run).most_common(1)
        if _is_rare(streak, tries, level) and usual ** (len(run) - most) < level:
            streaks.append(streak)
    return streaks


def _streaks_of_arm(arm: str, sessions: Sequence[ObservedSession], level: float) -> list[Streak]:
    """Runs of the arm's own sessions that are too long for chance.

    The usual rate is that of the other arms up to the end of the run, and that of this arm before the run.
    """
    own = [session for session in sessions if session.arm == arm]
    position = {session.key: number for number, session in enumerate(sessions, start=1)}
    missing_before = _missing_before(sessions)
    own_missing_before = _missing_before(own)
    tries = len(own) - own_missing_before[-1] + 1
    streaks = []
    for start, run in _runs(own):
        # How many sessions of all arms, and of this arm, there are up to the end of the run.
        end, own_end = position[run[-1].key], start + len(run)
        others = _share(missing_before[end] - own_missing_before[own_end], end - own_end)
        usual = min((SHRINKAGE * others + own_missing_before[start]) / (SHRINKAGE + start), MOST_USUAL)
        streak = Streak(arm=arm, sessions=run, usual=usual, others=others)
        if _is_rare(streak, tries, level):
            streaks.append(streak)
    return streaks


def _is_rare(streak: Streak, tries: int, level: float) -> bool:
    """Whether the probability that any of `tries` possible runs is this long is below `level`.

    A run may begin after each graded session, so the probability is 1 − (1 − chance)^tries. If `level` applied to each
    run alone, a healthy site with fifty sessions a day would have a false alarm every two months.
    """
    return -math.expm1(tries * math.log1p(-streak.chance)) < level


def _excess(arm: str, sessions: Sequence[ObservedSession], level: float) -> Excess | None:
    """The excess of an arm whose sessions infrastructure ends more often than those of other arms; None if p ≥ level.

    Fisher's exact test, one-sided: `all_died` of all sessions were ended by infrastructure. If these were chosen at
    random, how probable is it that at least as many of them are this arm's?
    """
    own = [session for session in sessions if session.arm == arm]
    died = [session for session in own if session.ending is SessionEnding.INFRASTRUCTURE]
    all_died = sum(session.ending is SessionEnding.INFRASTRUCTURE for session in sessions)
    n, others = len(own), len(sessions) - len(own)
    if not died or not others:
        return None
    ln_ways = _ln_choose(len(sessions), all_died)
    p = math.fsum(
        math.exp(_ln_choose(n, k) + _ln_choose(others, all_died - k) - ln_ways)
        for k in range(max(len(died), all_died - others), min(n, all_died) + 1)
    )
    if p >= level:
        return None
    return Excess(arm=arm, died=tuple(died), n=n, others_died=all_died - len(died), others=others, p=p)


def _ln_choose(n: int, k: int) -> float:
    """The logarithm of the binomial coefficient n over k, which itself may have thousands of digits."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _runs(sessions: Sequence[ObservedSession]) -> list[tuple[int, tuple[ObservedSession, ...]]]:
    """The longest runs without a grade, each with the index of its first session."""
    runs: list[tuple[int, tuple[ObservedSession, ...]]] = []
    start = 0
    for is_missing, group in groupby(sessions, key=lambda session: session.is_missing):
        run = tuple(group)
        if is_missing:
            runs.append((start, run))
        start += len(run)
    return runs


def _missing_before(sessions: Iterable[ObservedSession]) -> list[int]:
    """How many of the first 0, 1, 2, … sessions have no grade."""
    return list(accumulate((session.is_missing for session in sessions), initial=0))


def _share(missing: int, n: int) -> float:
    """The estimated share of sessions without a grade, in (0, 1), by Laplace's rule: a half without sessions."""
    return (missing + 1) / (n + 2)
