"""The effect of an arm's presence on a session's reward, in two designs that are never mixed.

*Causal*: presence was drawn, with a known chance. By intention to treat, every session counts in the group that it was
drawn for, whatever it then fetched, so that the groups differ by the draw alone; those that did fetch the arm may
differ in any way. The estimate, its interval and the e-value are those of `bandit.core.betting`, valid at every look.
*Observational*: presence was not drawn, and often came about because a session was in trouble: the difference shows
association, not what helped. It has no verdict. The caller passes residuals, reward − category mean + global mean.

    difference = m₁ − m₀        m = Σw·y/Σw        v = n/(n − 1)·Σw²(y − m)²/(Σw)²
    with (v₁ + v₀)² / (v₁²/(n₁ − 1) + v₀²/(n₀ − 1)) degrees of freedom    (Welch 1947)

This module decides which verdict is allowed. "Helps" and "harmful" need an e-value that is enough among all lessons
(`betting.evidence_threshold`), "negligible" an interval within ±.05, and each that the groups don't differ in their
share of missing rewards by more than chance.
"""

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bandit.core.betting import Bets, Draws, UnscoredShares, evidence_threshold
from bandit.core.estimate import Estimate, about, estimate, signed, weighted_mean
from bandit.core.table import Floats, Ints

ArmKey = TypeVar("ArmKey", bound=Hashable)


class StudyDesign(StrEnum):
    CAUSAL = "causal"
    OBSERVATIONAL = "observational"
    CANNOT_TELL = "cannot tell"


# The least sessions in the smaller group for a causal figure.
MIN_CAUSAL_SESSIONS = 15
# The least sessions and days in each group for any difference.
MIN_SESSIONS, MIN_DAYS = 5, 3
# The smallest effect of practical relevance; one that is surely smaller, either way, is negligible.
RELEVANT_EFFECT = 0.05
# The least firings in a window, and the difference in one window above which somebody should look at it.
MIN_FIRINGS, STRIKING_DIFFERENCE = 50, 0.15
# There is no verdict if the effect of the last days is surely less than this share of the overall one.
RECENT_DAYS, MIN_RECENT_SHARE = 28, 0.5
# Keeps the interval finite if all outcomes are equal.
MIN_VARIANCE = 1e-12
# How sentences describe each design.
DESIGN_TEXTS = {
    StudyDesign.CAUSAL: "Causal (random holdout)",
    StudyDesign.OBSERVATIONAL: "Observational (correlation, not cause)",
}


class EffectVerdict(StrEnum):
    HELPS = "helps"
    HARMFUL = "harmful"
    NEGLIGIBLE = "negligible"
    OPEN = "open"
    INSUFFICIENT = "insufficient"

    @property
    def decides(self) -> bool:
        """Whether it settles the effect, so that the arm need not be held out any longer."""
        return self not in {EffectVerdict.OPEN, EffectVerdict.INSUFFICIENT}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trials:
    """Sessions as columns, all (n,): whether the arm was `present`, the `outcome`, the `day` as an ordinal.

    `weight` is above 0, by default 1 for each. Raises ValueError for columns of unequal length and outcomes that aren't
    finite.
    """

    present: NDArray[np.bool_]
    outcome: Floats
    day: Ints
    weight: Floats = field(default_factory=lambda: np.ones(1))

    def __post_init__(self) -> None:
        if self.weight.shape == (1,):
            object.__setattr__(self, "weight", np.full(self.present.shape, self.weight[0]))
        shapes = {column.shape for column in (self.present, self.outcome, self.day, self.weight)}
        if len(shapes) > 1 or self.present.ndim != 1:
            raise ValueError(f"expected columns of one length; got shapes {sorted(shapes)}")
        if not np.isfinite(self.outcome).all():
            raise ValueError("an outcome is a finite number; leave out what has none")

    @classmethod
    def from_draws(cls, draws: Draws) -> "Trials":
        """The draws that have an outcome, grouped as drawn and weighted by the inverse of their chance."""
        scored = draws.select(draws.scored)
        weight = 1 / np.where(scored.taken, scored.chance, 1 - scored.chance)
        return cls(present=scored.taken, outcome=scored.outcome, day=scored.day, weight=weight)

    def select(self, at: NDArray[np.bool_] | Ints) -> "Trials":
        """The sessions at these flags or indexes."""
        return Trials(present=self.present[at], outcome=self.outcome[at], day=self.day[at], weight=self.weight[at])

    def groups(self) -> tuple["Trials", "Trials"]:
        """The sessions with the arm, and those without."""
        return self.select(self.present), self.select(~self.present)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A period of `firings` sessions with the arm, and the difference over its days `first` to `last` (ordinals)."""

    first: int
    last: int
    firings: int
    difference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TreatmentEffect:
    """The mean reward with the arm less that without it, from `n` sessions with it on `days` days and `without` others.

    `difference` in units of reward is None if `kind` is "cannot tell". `windows` have at least MIN_FIRINGS firings
    each. `sentence` is the conclusion.
    For draws only: `evidence` is the e-value against no effect, 1 for no evidence; `unscored` the shares of draws
    without a reward; `more` roughly the number of further sessions that would decide an effect of .05, None if nothing
    is drawn any more.
    """

    kind: StudyDesign
    verdict: EffectVerdict
    n: int
    without: int
    days: int
    difference: Estimate | None
    windows: tuple[Window, ...]
    sentence: str
    evidence: float | None = None
    unscored: UnscoredShares | None = None
    more: int | None = None

    @property
    def striking(self) -> bool:
        """Whether the difference in a window is so large that somebody should look at it, whatever the verdict."""
        return any(abs(window.difference) > STRIKING_DIFFERENCE for window in self.windows)


def causal(draws: Draws, *, least: float, chance: float, bets: Bets | None = None) -> TreatmentEffect:
    """The effect of being drawn for an arm; "cannot tell" under 15 sessions with a reward in the smaller group.

    `least` is the e-value that "helps" and "harmful" need (`betting.evidence_threshold`), `chance` the chance that the
    next draw takes the arm. `bets` may be passed in if those on these draws were computed already.
    """
    bets = bets or Bets.from_draws(draws)
    verdict, why = verdict_on(draws, least=least, bets=bets)
    difference = None if verdict is EffectVerdict.INSUFFICIENT else bets.effect()
    effect = replace(
        _build_effect(StudyDesign.CAUSAL, verdict, Trials.from_draws(draws), difference),
        evidence=bets.evidence,
        unscored=draws.unscored(),
        more=bets.sessions_needed(RELEVANT_EFFECT, chance=chance, threshold=least) if 0 < chance < 1 else None,
    )
    if verdict is EffectVerdict.OPEN and not why:
        if effect.more is None:
            why = "the lesson is no longer withheld at random, so more sessions will not decide it"
        elif effect.more:
            why = f"about {about(effect.more)} more sessions would decide an effect of {RELEVANT_EFFECT:.2f}"
        else:
            why = f"there are enough sessions for an effect of {RELEVANT_EFFECT:.2f}, but a smaller effect needs more"
    return replace(effect, sentence=_sentence(effect, "by the draw", why))


def verdicts(drawn: Mapping[ArmKey, Draws]) -> dict[ArmKey, EffectVerdict]:
    """The verdict on each of several arms, given its draws. The more arms, the more evidence each verdict needs."""
    bets_on = {name: Bets.from_draws(draws) for name, draws in drawn.items()}
    least = evidence_threshold(bets.evidence for bets in bets_on.values())
    return {name: verdict_on(draws, least=least, bets=bets_on[name])[0] for name, draws in drawn.items()}


def verdict_on(draws: Draws, *, least: float, bets: Bets | None = None) -> tuple[EffectVerdict, str]:
    """The verdict that these draws allow, and why there is no stronger one, as text; "" if there is nothing to say.

    `least` and `bets` are those of `causal`. With too few rewarded sessions the verdict is INSUFFICIENT. It stays OPEN
    if the groups differ in missing rewards, if draws may have been picked, if recent days contradict it, or if more
    draws are needed.
    """
    if shortage := _describe_shortage(Trials.from_draws(draws), MIN_CAUSAL_SESSIONS):
        return EffectVerdict.INSUFFICIENT, shortage
    bets = bets or Bets.from_draws(draws)
    unscored = draws.unscored()
    if unscored.differ:
        shares = f"{100 * unscored.taken:.0f} % of those with it and {100 * unscored.held_out:.0f} % of those without"
        return EffectVerdict.OPEN, (
            f"{shares} have no reward, a difference beyond chance, so the missing rewards may differ too"
        )
    if unscored.are_chosen:
        return EffectVerdict.OPEN, (
            f"{100 * unscored.lost:.0f} % of its draws led to no session, so the agent may choose which draws to use"
        )
    if bets.evidence >= least:
        recent = Bets.from_draws(draws.select(draws.day > draws.day.max() - RECENT_DAYS))
        least_recent = MIN_RECENT_SHARE * bets.mean
        # Whether the recent effect is nearer to 0 than `least_recent`, or of the opposite sign; without outcomes, no.
        is_weaker = len(recent.x) and (recent.mean - least_recent) * bets.mean < 0
        if is_weaker and recent.excludes(least_recent):
            return EffectVerdict.OPEN, f"the last {RECENT_DAYS} days do not confirm it"
        return (EffectVerdict.HELPS if bets.mean > 0 else EffectVerdict.HARMFUL), ""
    if bets.excludes(RELEVANT_EFFECT) and bets.excludes(-RELEVANT_EFFECT):
        return EffectVerdict.NEGLIGIBLE, f"certainly less than {RELEVANT_EFFECT:.2f} in either direction"
    return EffectVerdict.OPEN, ""


def sessions_to_decide(*, chance: float, least: float) -> int | None:
    """Expected number of draws, each taking a new arm with this chance, until an effect of .05 has the e-value `least`.

    None if the chance is 0 or 1, so that nothing is drawn.
    """
    if not 0 < chance < 1:
        return None
    return Bets.from_draws(Draws.none()).sessions_needed(RELEVANT_EFFECT, chance=chance, threshold=least)


def per_protocol(draws: Draws) -> Estimate | None:
    """The difference among the heeded draws, weighted by inverse chances; None under 15 sessions in a group.

    Sessions that fetched the arm although it was held out are excluded, so that the groups also differ by whatever made
    those fetch it: this accompanies a verdict but isn't one.
    """
    trials = Trials.from_draws(draws.select(draws.heeded))
    return None if _describe_shortage(trials, MIN_CAUSAL_SESSIONS) else _difference(trials)


def observational(observed: Trials) -> TreatmentEffect:
    """The difference associated with a presence that wasn't drawn, without a verdict; "cannot tell" under 5 sessions
    with it or without.
    """
    shortage = _describe_shortage(observed, MIN_SESSIONS)
    verdict = EffectVerdict.INSUFFICIENT if shortage else EffectVerdict.OPEN
    effect = _build_effect(StudyDesign.OBSERVATIONAL, verdict, observed, None if shortage else _difference(observed))
    return replace(effect, sentence=_sentence(effect, "as it came", shortage))


def _build_effect(
    kind: StudyDesign, verdict: EffectVerdict, trials: Trials, difference: Estimate | None
) -> TreatmentEffect:
    """The effect with its counts and windows, without a sentence."""
    with_it, without = trials.groups()
    return TreatmentEffect(
        kind=kind if difference else StudyDesign.CANNOT_TELL,
        verdict=verdict,
        n=len(with_it.outcome),
        without=len(without.outcome),
        days=len(np.unique(with_it.day)),
        difference=difference,
        windows=tuple(_windows(trials)) if difference else (),
        sentence="",
    )


def _describe_shortage(trials: Trials, least: int) -> str:
    """What is missing for `least` sessions on MIN_DAYS days in each group, as text; "" for nothing."""
    for group, name in zip(trials.groups(), ("with", "without"), strict=True):
        rows, days = len(group.outcome), len(np.unique(group.day))
        if rows < least or days < MIN_DAYS:
            sessions, on_days = f"{rows} session{'s' * (rows != 1)}", f"{days} day{'s' * (days != 1)}"
            return f"{sessions} {name} it on {on_days}, but {least} sessions on {MIN_DAYS} days are needed"
    return ""


def _difference(trials: Trials) -> Estimate:
    """The weighted mean with the arm less that without, m₁ − m₀, with Welch's interval by the module's formulas.

    Each group needs at least two sessions.
    """
    with_it, without = trials.groups()
    m1, v1 = weighted_mean(with_it.outcome, with_it.weight)
    m0, v0 = weighted_mean(without.outcome, without.weight)
    n1, n0 = len(with_it.outcome), len(without.outcome)
    variance = max(v1 + v0, MIN_VARIANCE)
    freedom = max(variance**2 / max(v1**2 / (n1 - 1) + v0**2 / (n0 - 1), MIN_VARIANCE**2), 1.0)
    return estimate(m1 - m0, variance, freedom, least=-math.inf, most=math.inf)


def _windows(trials: Trials) -> Iterator[Window]:
    """Consecutive windows of whole days, each with at least MIN_FIRINGS firings, that is, sessions with the arm.

    A window ends with the first day on which it has enough firings, or with the last day of all if those after it
    are too few for another window. A window in which all sessions have the arm has no difference and is left out.
    """
    days, firings = np.unique(trials.day[trials.present], return_counts=True)
    by_day = np.argsort(trials.day, kind="stable")
    sorted_days = trials.day[by_day]
    remaining, in_window = int(firings.sum()), 0
    first = int(trials.day.min())
    for day, count in zip(days.tolist(), firings.tolist(), strict=True):
        remaining -= count
        in_window += count
        if in_window >= MIN_FIRINGS and (remaining >= MIN_FIRINGS or day == days[-1]):
            last = day if remaining else int(trials.day.max())
            # The window's sessions, in their original order: another order would change the bits of the sums.
            start, end = np.searchsorted(sorted_days, (first, last + 1))
            at = np.sort(by_day[start:end])
            present, weight = trials.present[at], trials.weight[at]
            if not present.all():
                weighted = trials.outcome[at] * weight
                means = [float(weighted[rows].sum() / weight[rows].sum()) for rows in (present, ~present)]
                yield Window(first=first, last=last, firings=int(present.sum()), difference=means[0] - means[1])
            first, in_window = day + 1, 0


def _sentence(effect: TreatmentEffect, how: str, why: str) -> str:
    """The conclusion as text: `how` sessions got the arm, and `why` there is no stronger verdict, "" for no reason."""
    if effect.difference is None:
        return f"Not enough data: {why}."
    verdict = "no verdict" if effect.verdict is EffectVerdict.OPEN else effect.verdict
    difference = effect.difference
    numbers = f"{signed(difference.mean)} (90 % interval {signed(difference.low)} to {signed(difference.high)})"
    sample = f"over {effect.n} sessions with it {how}, on {effect.days} days, and {effect.without} without"
    sentence = f"{DESIGN_TEXTS[effect.kind]}: {verdict}, {numbers} {sample}" + (f"; {why}." if why else ".")
    worst = max(effect.windows, key=lambda window: abs(window.difference), default=None)
    if worst is None or not effect.striking:
        return sentence
    days = f"{date.fromordinal(worst.first)} to {date.fromordinal(worst.last)}"
    return f"{sentence} Check the {worst.firings} sessions with it from {days}: {signed(worst.difference)}."
